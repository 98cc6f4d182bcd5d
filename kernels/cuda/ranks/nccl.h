// NVIDIA's NCCL: its functions in one table, found when ranks first ask for it.
#pragma once

#include <nccl.h>

#include <string>

namespace trainscope::cuda {

// Each function has the name that the library has it under.
struct Nccl {
  decltype(&::ncclGetVersion) version = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetUniqueId) unique_id = nullptr;
  decltype(&::ncclCommInitRank) init_rank = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclCommDestroy) destroy = nullptr;
  decltype(&::ncclAllReduce) all_reduce = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&::ncclAllGather) all_gather = nullptr;
  decltype(&::ncclBroadcast) broadcast = nullptr;
  decltype(&::ncclSend) send = nullptr;
  decltype(&::ncclRecv) receive = nullptr;

  // "ncclAllReduce of 120 f32: status 3 (internal error)".
  std::string error_text(ncclResult_t status, const std::string& what) const;
};

// Loads the library `file`, once. Empty when it did, else why not.
std::string load_nccl(const char* file = "libnccl.so.2");
// The table, which is loaded.
const Nccl& nccl();

}  // namespace trainscope::cuda
