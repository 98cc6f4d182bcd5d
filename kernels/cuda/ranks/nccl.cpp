// NCCL by dlopen: a machine with one GPU need not have it.
#include "kernels/cuda/ranks/nccl.h"

#include "kernels/cuda/support/library.h"

namespace trainscope::cuda {
namespace {

Nccl& functions_of_nccl() {
  static Nccl functions;
  return functions;
}

void find_all(Library& library, Nccl& found) {
  library.find("ncclGetVersion", found.version);
  library.find("ncclGetErrorString", found.error_string);
  library.find("ncclGetUniqueId", found.unique_id);
  library.find("ncclCommInitRank", found.init_rank);
  library.find("ncclCommGetAsyncError", found.async_error);
  library.find("ncclCommAbort", found.abort);
  library.find("ncclCommDestroy", found.destroy);
  library.find("ncclAllReduce", found.all_reduce);
  library.find("ncclReduceScatter", found.reduce_scatter);
  library.find("ncclAllGather", found.all_gather);
  library.find("ncclBroadcast", found.broadcast);
  library.find("ncclSend", found.send);
  library.find("ncclRecv", found.receive);
}

}  // namespace

std::string Nccl::error_text(ncclResult_t status, const std::string& what) const {
  return what + ": status " + std::to_string(static_cast<int>(status)) + " (" +
         error_string(status) + ")";
}

std::string load_nccl(const char* file) {
  if (functions_of_nccl().version != nullptr) return {};
  Library library("NCCL", file);
  Nccl found;
  find_all(library, found);
  if (!library.fault().empty()) return library.fault();
  functions_of_nccl() = found;
  return {};
}

const Nccl& nccl() { return functions_of_nccl(); }

}  // namespace trainscope::cuda
