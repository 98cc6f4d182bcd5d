// Calls of NCCL, with errors as statuses of a device.
#include "kernels/cuda/ranks/nccl_ranks.h"

#include <cstddef>
#include <optional>

#include "kernels/cuda/ranks/nccl.h"

namespace trainscope::cuda {
namespace {

// None: NCCL has no such type.
std::optional<ncclDataType_t> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kF16:
      return ncclFloat16;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
    case DType::kU8:
      return ncclUint8;
    default:
      return std::nullopt;
  }
}

cudaStream_t stream_of(const CallContext& call) {
  return static_cast<cudaStream_t>(call.native_stream);
}

std::size_t count_of(std::int64_t elements) { return static_cast<std::size_t>(elements); }

}  // namespace

// Rank 0 makes the id, which all others hear of through their hosts; where it cannot, all zeros
// say so, or they would wait for it.
std::unique_ptr<NcclRanks> NcclRanks::make(Communicator& host, std::string* why_not) {
  *why_not = load_nccl();
  ncclUniqueId id = {};
  const bool makes_id = host.rank() == 0 && why_not->empty();
  const ncclResult_t made = makes_id ? nccl().unique_id(&id) : ncclSuccess;
  if (made != ncclSuccess) *why_not = nccl().error_text(made, "ncclGetUniqueId");
  const DeviceStatus told = host.broadcast({}, id.internal, sizeof id.internal, DType::kU8, 0);
  if (!told.done()) *why_not = told.message;
  std::int32_t ready = why_not->empty() ? 1 : 0;
  const DeviceStatus counted = host.all_reduce({}, &ready, &ready, 1, DType::kI32);
  if (why_not->empty() && !counted.done()) *why_not = counted.message;
  if (why_not->empty() && ready != host.size()) *why_not = "NCCL does not begin on another rank";
  if (!why_not->empty()) return nullptr;
  ncclComm_t communicator = nullptr;
  const ncclResult_t begun = nccl().init_rank(&communicator, host.size(), id, host.rank());
  if (begun != ncclSuccess) {
    *why_not = nccl().error_text(begun, "ncclCommInitRank");
    return nullptr;
  }
  return std::unique_ptr<NcclRanks>(new NcclRanks(host, communicator));
}

// After a failure others may never come to what is queued.
NcclRanks::~NcclRanks() {
  if (failure_.empty()) {
    (void)nccl().destroy(communicator_);
  } else {
    (void)nccl().abort(communicator_);
  }
}

void NcclRanks::give_up(std::string_view why) {
  if (failure_.empty()) failure_ = why;
  host_.give_up(why);
}

template <class Queue>
DeviceStatus NcclRanks::queued(const char* what, std::int64_t elements, DType dtype, Queue queue) {
  if (!failure_.empty()) return {.code = DeviceStatus::Code::kFailed, .message = failure_};
  const std::string text =
      std::string(what) + " of " + std::to_string(elements) + " " + std::string(name_of(dtype));
  const std::optional<ncclDataType_t> type = nccl_type(dtype);
  if (!type) {
    return {.code = DeviceStatus::Code::kBadInput, .message = text + ": NCCL has no such type"};
  }
  ncclResult_t status = ncclSuccess;
  (void)nccl().async_error(communicator_, &status);
  if (status == ncclSuccess) status = queue(*type);
  if (status == ncclSuccess) return {};
  failure_ = nccl().error_text(status, text);
  const bool refused = status == ncclInvalidArgument || status == ncclInvalidUsage;
  return {.code = refused ? DeviceStatus::Code::kBadInput : DeviceStatus::Code::kFailed,
          .message = failure_};
}

DeviceStatus NcclRanks::all_reduce(const CallContext& call, const void* from, void* to,
                                   std::int64_t elements, DType dtype) {
  return queued("ncclAllReduce", elements, dtype, [&](ncclDataType_t type) {
    return nccl().all_reduce(from, to, count_of(elements), type, ncclSum, communicator_,
                             stream_of(call));
  });
}

DeviceStatus NcclRanks::reduce_scatter(const CallContext& call, const void* from, void* to,
                                       std::int64_t elements, DType dtype) {
  return queued("ncclReduceScatter", elements, dtype, [&](ncclDataType_t type) {
    return nccl().reduce_scatter(from, to, count_of(elements), type, ncclSum, communicator_,
                                 stream_of(call));
  });
}

DeviceStatus NcclRanks::all_gather(const CallContext& call, const void* from, void* to,
                                   std::int64_t elements, DType dtype) {
  return queued("ncclAllGather", elements, dtype, [&](ncclDataType_t type) {
    return nccl().all_gather(from, to, count_of(elements), type, communicator_, stream_of(call));
  });
}

DeviceStatus NcclRanks::broadcast(const CallContext& call, void* data, std::int64_t elements,
                                  DType dtype, int root) {
  return queued("ncclBroadcast", elements, dtype, [&](ncclDataType_t type) {
    return nccl().broadcast(data, data, count_of(elements), type, root, communicator_,
                            stream_of(call));
  });
}

DeviceStatus NcclRanks::send(const CallContext& call, const void* data, std::int64_t elements,
                             DType dtype, int to) {
  return queued("ncclSend", elements, dtype, [&](ncclDataType_t type) {
    return nccl().send(data, count_of(elements), type, to, communicator_, stream_of(call));
  });
}

DeviceStatus NcclRanks::receive(const CallContext& call, void* data, std::int64_t elements,
                                DType dtype, int from) {
  return queued("ncclRecv", elements, dtype, [&](ncclDataType_t type) {
    return nccl().receive(data, count_of(elements), type, from, communicator_, stream_of(call));
  });
}

}  // namespace trainscope::cuda
