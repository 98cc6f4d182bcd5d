// Times the training steps of a workload.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "engine/op_times.h"
#include "engine/run/bench/bench_workloads.h"
#include "engine/run/timed_steps.h"

namespace trainscope {

struct BenchOptions {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;      // 0 for models without one
  std::int64_t steps = 0;         // timed ones
  DeviceHandle device = nullptr;  // null: the CPU
  int threads = 1;
  std::uint64_t seed = 0;
  KernelChoice kernels = KernelChoice::kFastest;
  SameBits same_bits = SameBits::kSameThreads;
  bool optimizer_in_backward = false;
  std::int64_t loss_chunks = 1;
  bool skip_ignored = false;
  std::string skip_padding = {};  // the input that says which tokens are real
  StepPrecision precision = StepPrecision::kF32;
  std::vector<std::string> disabled = {};  // passes to leave out
  OpOrder order = OpOrder::kMemory;
  std::optional<BatchTileOptions> batch_tiles = {};
  RecomputeOptions recompute = {};
  std::filesystem::path costs = {};  // these two as CompileOptions has them
  Machine machine = default_machine();
  std::filesystem::path op_times = {};  // where the time of each op goes; empty: not measured
  bool paired = false;  // the step without recomputation too, in turn with the one asked for
};

struct BenchResult {
  std::vector<double> step_ms;        // in the order of the steps
  std::vector<double> plain_step_ms;  // when paired: without recomputation
  std::int64_t flops_per_step = 0;    // as training_flops counts them
  std::int64_t parameters = 0;
  std::int64_t arena_bytes = 0;
  std::int64_t persistent_bytes = 0;
  std::int64_t used_bytes = 0;  // of the arena
  std::int64_t host_arena_bytes = 0;
  std::int64_t used_host_bytes = 0;
  double first_loss = 0.0;
  double last_loss = 0.0;
  std::optional<RecomputeSummary> recompute;
  std::vector<OpTime> ops;  // with BenchOptions::op_times
  StepSplit measured_step;  // the median of the steps in which they were measured
};

// The workload's steps, compiled, each on one synthetic batch. Of the options `steps`, `op_times`
// and `paired` do not matter.
TimedSteps workload_steps(const BenchWorkload& workload, const BenchOptions& options);

// A step is forward, backward and update on one synthetic batch. A few steps before the timed ones
// bring caches and threads up. Throws kUsage when a size does not suit the workload; a paired run
// kMismatch when the losses of the two differ.
BenchResult run_bench(const BenchWorkload& workload, const BenchOptions& options);

// Floating-point operations of a training step on a forward graph: 2 for each multiply-add of a
// matmul or convolution, once forward and once for each input that needs a gradient.
// Everything else counts nothing.
std::int64_t training_flops(const Graph& forward);

// The smallest, the middle (mean of both for an even number) and the largest of at least one.
struct Spread {
  double least = 0.0;
  double median = 0.0;
  double most = 0.0;
};
Spread spread_of(const std::vector<double>& values);

}  // namespace trainscope
