// The moments of one stream: CUDA events in a ring, found by the tickets that the engine holds.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// Tickets count the records of the stream from 1. A ring forgets the oldest: who asks for a ticket
// that is gone gets a later moment of the same stream, which is after it too.
class StreamEvents {
 public:
  struct Moment {
    cudaEvent_t event = nullptr;
    std::int64_t ticket = 0;
    bool captured = false;  // part of a list of work: it is never done by itself
  };

  // So many moments are kept apart. No event is made later: a steady step allocates nothing.
  static constexpr std::size_t kKept = 1024;

  StreamEvents() = default;
  ~StreamEvents();
  StreamEvents(const StreamEvents&) = delete;
  StreamEvents& operator=(const StreamEvents&) = delete;

  DeviceStatus start(cudaStream_t stream);
  cudaStream_t stream() const { return stream_; }

  // The moment after all that the stream was given; its ticket even where the status is a failure.
  std::int64_t record(bool captured, DeviceStatus* status);
  std::int64_t last_ticket() const { return last_ticket_; }
  // The moment of a ticket, or a later one.
  const Moment& at(std::int64_t ticket) const {
    return moments_[static_cast<std::size_t>(ticket) % kKept];
  }

 private:
  cudaStream_t stream_ = nullptr;
  std::int64_t last_ticket_ = 0;
  std::vector<Moment> moments_;
};

}  // namespace trainscope::cuda
