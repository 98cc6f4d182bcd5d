// Buffers that CUPTI filled on an H200, against what NVIDIA's own decoder read in them there.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "profiler/cupti/activity_decoder.h"
#include "profiler/cupti/activity_join.h"

namespace trainscope::profiler::test {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/h200/activity";

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> buffers() {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".bin") found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

// A line a record, as make.py writes it. Names of kernels are pointers of the process that recorded
// them: they are not followed.
class Lines final : public ActivitySink {
 public:
  void kernel(const KernelRecord& r) override {
    begin("kernel", r.kind) << r.begin << ' ' << r.end << ' ' << r.stream << ' ' << r.correlation
                            << ' ' << r.graph_node << ' ' << r.graph << ' ' << r.grid[0] << ' '
                            << r.block[0] << ' ' << r.registers << '\n';
  }
  void copy(const CopyRecord& r) override {
    begin("copy", r.kind) << r.begin << ' ' << r.end << ' ' << r.stream << ' ' << r.correlation
                          << ' ' << r.graph_node << ' ' << r.graph << ' ' << int{r.copy_kind} << ' '
                          << r.bytes << '\n';
  }
  void set(const SetRecord& r) override {
    begin("set", r.kind) << r.begin << ' ' << r.end << ' ' << r.stream << ' ' << r.correlation
                         << ' ' << r.graph_node << ' ' << r.graph << ' ' << r.bytes << '\n';
  }
  void graph(const GraphRecord& r) override {
    begin("graph", r.kind) << r.begin << ' ' << r.end << ' ' << r.stream << ' ' << r.correlation
                           << ' ' << r.graph << '\n';
  }
  void api_call(const ApiRecord& r) override {
    const bool is_driver = r.kind == ActivityKind::kDriverCall;
    begin(is_driver ? "driver_call" : "runtime_call", r.kind)
        << r.begin << ' ' << r.end << ' ' << r.callback << ' ' << r.thread << ' ' << r.correlation
        << '\n';
  }
  void external_correlation(const ExternalCorrelationRecord& r) override {
    begin("external_correlation", r.kind) << r.external << ' ' << r.correlation << '\n';
  }
  void synchronization(const SynchronizationRecord& r) override {
    begin("synchronization", r.kind) << r.begin << ' ' << r.end << ' ' << r.type << ' ' << r.stream
                                     << ' ' << r.correlation << '\n';
  }
  void overhead(const OverheadRecord& r) override {
    begin("overhead", r.kind) << r.begin << ' ' << r.end << ' ' << r.overhead << '\n';
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostream& begin(const char* type, ActivityKind kind) {
    text_ << type << ' ' << offset_ << ' ';
    offset_ += record_bytes(kind);
    return text_;
  }

  std::ostringstream text_;
  std::size_t offset_ = 0;
};

TEST_CASE("activity decoder: real buffers hold what NVIDIA's decoder found in them") {
  const std::vector<std::filesystem::path> found = buffers();
  CHECK(found.size() >= 3);
  for (const std::filesystem::path& path : found) {
    CAPTURE(path.filename().string());
    const std::string bytes = contents(path);
    Lines lines;
    const ActivityReading reading =
        decode_activities(std::as_bytes(std::span(bytes.data(), bytes.size())), lines);
    CHECK(reading.fault == "");
    CHECK(reading.read_bytes == bytes.size());
    CHECK(lines.text() == contents(std::filesystem::path(path).replace_extension(".txt")));
  }
}

}  // namespace
}  // namespace trainscope::profiler::test
