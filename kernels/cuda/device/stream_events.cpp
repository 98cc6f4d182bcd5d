// Rings of events.
#include "kernels/cuda/device/stream_events.h"

#include "kernels/cuda/device/cuda_error.h"

namespace trainscope::cuda {

StreamEvents::~StreamEvents() {
  for (const Moment& moment : moments_) {
    if (moment.event != nullptr) (void)cudaEventDestroy(moment.event);
  }
}

DeviceStatus StreamEvents::start(cudaStream_t stream) {
  stream_ = stream;
  moments_.resize(kKept);
  for (Moment& moment : moments_) {
    const cudaError_t error = cudaEventCreateWithFlags(&moment.event, cudaEventDisableTiming);
    if (error != cudaSuccess) return status_of(error, "cudaEventCreateWithFlags");
  }
  return {};
}

std::int64_t StreamEvents::record(bool captured, DeviceStatus* status) {
  const std::int64_t ticket = ++last_ticket_;
  Moment& moment = moments_[static_cast<std::size_t>(ticket) % kKept];
  moment.ticket = ticket;
  moment.captured = captured;
  *status = status_of(cudaEventRecord(moment.event, stream_), "cudaEventRecord");
  return ticket;
}

}  // namespace trainscope::cuda
