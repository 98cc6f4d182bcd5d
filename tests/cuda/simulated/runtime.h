// The state of a simulated CUDA runtime, and what simulated libraries on top of it use.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

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
  std::map<std::string, std::int64_t> launches_of = {};  // kernels by their mangled names
};

// A call of the runtime that gives a stream work.
enum class CallKind : std::uint8_t { kKernel, kCopy, kSet, kGraph };
struct WorkFacts {
  CallKind kind = CallKind::kKernel;
  std::string name = "a kernel of a library";  // mangled
  unsigned blocks[3] = {1, 1, 1};
  unsigned threads[3] = {1, 1, 1};
  std::uint64_t bytes = 0;     // of a copy or set
  std::uint8_t copy_kind = 0;  // as CUPTI numbers them: 1 to the device, 2 to the host, 8 within
};

// One piece of work that has run. Nodes of a graph have the correlation of its launch.
struct RanWork {
  const WorkFacts& facts;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;  // 0: launched by itself
  std::uint64_t node = 0;
  std::uint64_t begin_ns = 0;  // of runtime_ns()
  std::uint64_t end_ns = 0;
};

// What a tracing library is told of.
class RuntimeObserver {
 public:
  virtual ~RuntimeObserver() = default;
  virtual void called(const WorkFacts& facts, std::uint32_t correlation, std::uint64_t begin_ns,
                      std::uint64_t end_ns) = 0;
  virtual void waited(std::uint64_t begin_ns, std::uint64_t end_ns) = 0;
  virtual void allocated(std::uint64_t address, std::uint64_t bytes, bool is_release) = 0;
  virtual void ran(const RanWork& work) = 0;
  // Nodes by numbers that no other has: the graph's in the upper half.
  virtual void node_created(std::uint64_t node) = 0;
  virtual void node_cloned(std::uint64_t original, std::uint64_t clone) = 0;
};
constexpr std::uint64_t node_number(std::uint32_t graph, std::size_t node) {
  return std::uint64_t{graph} << 32 | node;
}
// Nanoseconds of the clock below, which never stands still here.
std::uint64_t runtime_ns();
// The time of day, until somebody gives another one.
void runtime_takes_clock(std::uint64_t (*now_ns)());
// Whether the device has done all that it was given.
bool runtime_is_idle();
// TRAINSCOPE_SIMULATED_REFUSE=NAME: this function fails, of cudaLaunchKernel, cudaMemcpyAsync,
// cudaGraphLaunch and cublasLtMatmul. Whether it is the one.
bool runtime_refuses(std::string_view function);

// TRAINSCOPE_SIMULATED_SEED: 0, the default, runs all work as late as is allowed; another number
// tells when and in which order. TRAINSCOPE_SIMULATED_FIRST=N: of a graph's work that is ready,
// that of stream N (7 is the first that a program makes) runs first. TRAINSCOPE_SIMULATED_REPORT: a
// file for the counts, as JSON, when the process ends, and for whether somebody traces then.
// TRAINSCOPE_SIMULATED_DROP_WAIT=N: the N-th cudaStreamWaitEvent of the process, from 1 on, is
// lost. Also: TRAINSCOPE_SIMULATED_ORDER (order_log.h).
struct Runtime {
  Runtime();
  ~Runtime();

  const std::uint64_t seed;
  const std::int64_t dropped_wait;  // 0: none
  Memory memory;
  Streams streams;
  Counts counts;
  RuntimeObserver* observer = nullptr;  // null: nobody traces

  // Queues work of the device, for one call.
  void add(cudaStream_t stream, Work work, const WorkFacts& facts = {});
  // Queues a graph, for one call.
  void add_graph(cudaStream_t stream, std::shared_ptr<const Graph> graph);
  std::uint32_t next_graph() { return ++graphs_; }

 private:
  std::uint32_t call(const WorkFacts& facts, std::uint64_t begin_ns);

  // Of the graph that runs; 0: none.
  struct Running {
    std::uint32_t graph = 0;
    std::uint32_t correlation = 0;
    std::size_t node = 0;
  } running_;
  std::uint32_t graphs_ = 0;
  std::uint32_t calls_ = 0;
};
// One a process; not for several threads at once.
Runtime& runtime();

}  // namespace trainscope::simulated
