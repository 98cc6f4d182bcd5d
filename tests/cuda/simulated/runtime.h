// The state of a simulated CUDA runtime, and what simulated libraries on top of it use.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "tests/cuda/simulated/memory.h"
#include "tests/cuda/simulated/streams.h"

namespace trainscope::simulated {

// What the process asked for, since it began. `host_waits` are those for streams and events, and
// copies into pageable memory, which wait.
struct Counts {
  std::int64_t launches = 0;
  std::int64_t copies = 0;
  std::int64_t fills = 0;
  std::int64_t matmuls = 0;
  std::int64_t host_waits = 0;
  std::int64_t stream_waits = 0;
  std::int64_t graphs = 0;
  std::int64_t graph_launches = 0;
  std::int64_t allocations = 0;
};

// TRAINSCOPE_SIMULATED_SEED: 0, the default, runs all work as late as is allowed; another number
// tells when and in which order. TRAINSCOPE_SIMULATED_REPORT: a file for the counts, as JSON, when
// the process ends.
struct Runtime {
  Runtime();
  ~Runtime();

  const std::uint64_t seed;
  Memory memory;
  Streams streams;
  Counts counts;

  // Queues work of the device.
  void add(cudaStream_t stream, Work work);
};
// One a process; not for several threads at once.
Runtime& runtime();

}  // namespace trainscope::simulated
