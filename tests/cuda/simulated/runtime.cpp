// One runtime a process.
#include "tests/cuda/simulated/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace trainscope::simulated {
namespace {

// 0 where the variable is not set.
std::uint64_t number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

std::uint64_t time_of_day_ns() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return std::uint64_t{1'000'000'000} * static_cast<std::uint64_t>(now.tv_sec) +
         static_cast<std::uint64_t>(now.tv_nsec);
}

struct RunningClock {
  std::uint64_t (*now_ns)() = &time_of_day_ns;
  std::uint64_t last_ns = 0;  // that it was read at
};
RunningClock& running_clock() {
  static RunningClock clock;
  return clock;
}

}  // namespace

std::uint64_t runtime_ns() {
  RunningClock& clock = running_clock();
  const std::uint64_t ns = clock.now_ns();
  clock.last_ns = ns > clock.last_ns ? ns : clock.last_ns + 1;
  return clock.last_ns;
}

void runtime_takes_clock(std::uint64_t (*now_ns)()) { running_clock() = {.now_ns = now_ns}; }

bool runtime_is_idle() { return runtime().streams.are_idle(); }

bool runtime_refuses(std::string_view function) {
  const char* const refused = std::getenv("TRAINSCOPE_SIMULATED_REFUSE");
  return refused != nullptr && function == refused;
}

Runtime::Runtime()
    : seed(number_of("TRAINSCOPE_SIMULATED_SEED")),
      dropped_wait(static_cast<std::int64_t>(number_of("TRAINSCOPE_SIMULATED_DROP_WAIT"))),
      streams(seed, number_of("TRAINSCOPE_SIMULATED_FIRST")) {}

Runtime::~Runtime() {
  const char* path = std::getenv("TRAINSCOPE_SIMULATED_REPORT");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return;
  const auto line = [file](const char* name, std::int64_t count, const char* end) {
    std::fprintf(file, "\"%s\": %lld%s", name, static_cast<long long>(count), end);
  };
  std::fputs("{", file);
  line("launches", counts.launches, ", ");
  std::fputs("\"launches_of\": {", file);
  const char* separator = "";
  for (const auto& [name, count] : counts.launches_of) {
    std::fputs(separator, file);
    line(name.c_str(), count, "");
    separator = ", ";
  }
  std::fputs("}, ", file);
  line("copies", counts.copies, ", ");
  line("fills", counts.fills, ", ");
  line("matmuls", counts.matmuls, ", ");
  line("host_waits", counts.host_waits, ", ");
  line("stream_waits", counts.stream_waits, ", ");
  line("graphs", counts.graphs, ", ");
  line("graph_launches", counts.graph_launches, ", ");
  line("allocations", counts.allocations, ", ");
  line("is_traced", observer == nullptr ? 0 : 1, ", ");
  line("most_device_bytes", static_cast<std::int64_t>(memory.most_device_bytes()), "}\n");
  std::fclose(file);
}

std::uint32_t Runtime::call(const WorkFacts& facts, std::uint64_t begin_ns) {
  const std::uint32_t correlation = ++calls_;
  if (observer != nullptr) observer->called(facts, correlation, begin_ns, runtime_ns());
  return correlation;
}

void Runtime::add(cudaStream_t handle, Work work, const WorkFacts& facts) {
  const std::uint64_t called_ns = runtime_ns();
  Stream& stream = *reinterpret_cast<Stream*>(handle);
  if (stream.capture != nullptr && observer != nullptr) {
    const Graph& graph = *stream.capture->graph;
    observer->node_created(node_number(graph.number, graph.nodes.size()));
  }
  const std::uint32_t correlation = call(facts, called_ns);
  streams.add(stream, [this, facts, correlation, number = stream.number, work = std::move(work)] {
    memory.open();
    const std::uint64_t begin_ns = runtime_ns();
    work();
    const std::uint64_t end_ns = runtime_ns();
    memory.close();
    if (observer == nullptr) return;
    const bool is_node = running_.graph != 0;
    observer->ran({.facts = facts,
                   .stream = number,
                   .correlation = is_node ? running_.correlation : correlation,
                   .graph = running_.graph,
                   .node = is_node ? node_number(running_.graph, running_.node) : 0,
                   .begin_ns = begin_ns,
                   .end_ns = end_ns});
  });
}

void Runtime::add_graph(cudaStream_t stream, std::shared_ptr<const Graph> graph) {
  const std::uint32_t correlation = call({.kind = CallKind::kGraph}, runtime_ns());
  Work replay = [this, correlation, graph = std::move(graph)] {
    running_ = {.graph = graph->number, .correlation = correlation};
    streams.run(*graph, [this](std::size_t node) { running_.node = node; });
    running_ = {};
  };
  streams.add(*reinterpret_cast<Stream*>(stream), std::move(replay), "replay");
}

Runtime& runtime() {
  static Runtime state;
  return state;
}

}  // namespace trainscope::simulated
