// One runtime a process.
#include "tests/cuda/simulated/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace trainscope::simulated {
namespace {

// 0 where the variable is not set.
std::uint64_t number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

}  // namespace

Runtime::Runtime() : seed(number_of("TRAINSCOPE_SIMULATED_SEED")), streams(seed) {}

Runtime::~Runtime() {
  const char* path = std::getenv("TRAINSCOPE_SIMULATED_REPORT");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
  if (file == nullptr) return;
  const auto line = [file](const char* name, std::int64_t count, const char* end) {
    std::fprintf(file, "\"%s\": %lld%s", name, static_cast<long long>(count), end);
  };
  std::fputs("{", file);
  line("launches", counts.launches, ", ");
  line("copies", counts.copies, ", ");
  line("fills", counts.fills, ", ");
  line("matmuls", counts.matmuls, ", ");
  line("host_waits", counts.host_waits, ", ");
  line("stream_waits", counts.stream_waits, ", ");
  line("graphs", counts.graphs, ", ");
  line("graph_launches", counts.graph_launches, ", ");
  line("allocations", counts.allocations, ", ");
  line("most_device_bytes", static_cast<std::int64_t>(memory.most_device_bytes()), "}\n");
  std::fclose(file);
}

void Runtime::add(cudaStream_t stream, Work work) {
  streams.add(*reinterpret_cast<Stream*>(stream), [this, work = std::move(work)] {
    memory.open();
    work();
    memory.close();
  });
}

Runtime& runtime() {
  static Runtime state;
  return state;
}

}  // namespace trainscope::simulated
