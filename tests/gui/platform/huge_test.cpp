// Runs beyond every size that a run has: a message in the panels or the run itself, in little
// memory.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "gui/panels/panels.h"
#include "profiler/store/crc32.h"
#include "tests/cli/program_runner.h"
#include "tests/engine/bundle/plan_tools.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;
using test::WindowDriver;
using trainscope::test::TemporaryFolder;

constexpr std::uintmax_t kGiB = std::uintmax_t{1} << 30;
constexpr std::uint64_t kManyRows = std::uint64_t{1} << 40;
constexpr std::size_t kMostFileBytes = std::size_t{1} << 26;  // of those that are read here

// While it lives the process cannot get more than so many bytes of memory of its own; files that
// are mapped are not.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::uintmax_t more_bytes) {
    ::getrlimit(RLIMIT_DATA, &before_);
    rlimit limit = before_;
    limit.rlim_cur = std::min<rlim_t>(before_.rlim_max, now() + more_bytes);
    REQUIRE(::setrlimit(RLIMIT_DATA, &limit) == 0);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  static std::uintmax_t now() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
      std::istringstream words(line);
      std::string name;
      std::uintmax_t kilobytes = 0;
      if (words >> name >> kilobytes && name == "VmData:") return kilobytes * 1024;
    }
    FAIL("the system does not say how much memory the process has");
    return 0;
  }
  rlimit before_ = {};
};

// A run's folder of its own for a case, which may have more written into it.
struct Copy {
  explicit Copy(const fs::path& run) { fs::copy(run, path(), fs::copy_options::recursive); }
  fs::path path() const { return folder / "run"; }

  TemporaryFolder folder;
};

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void look_at_all(WindowDriver& window) {
  for (const Panel& panel : all_panels()) {
    window.app().show_only(panel.id);
    window.step(2);
    CHECK_FALSE(window.items().items().empty());
  }
}

template <typename T>
T number_at(const std::string& bytes, std::size_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof(T));
  return number;
}
template <typename T>
void put_number(std::string& bytes, std::size_t offset, T number) {
  std::memcpy(bytes.data() + offset, &number, sizeof(T));
}

// plan.bin: a header of 32 bytes (sections at 12, bytes of the file at 16, hash at 24), and 32 of
// each section (kind at 0, offset at 8, rows at 16). The header's hash is right again.
constexpr std::size_t kHeaderBytes = 32;
void seal_plan(std::string& bytes, std::uint64_t file_bytes) {
  put_number<std::uint64_t>(bytes, 16, file_bytes);
  put_number<std::uint64_t>(bytes, 24, 0);
  const auto sections = number_at<std::uint32_t>(bytes, 12);
  const std::string_view head(bytes.data(), kHeaderBytes * (sections + 1));
  put_number(bytes, 24, hash_bytes(std::as_bytes(std::span(head))));
}
std::size_t section_at(const std::string& bytes, std::uint32_t kind) {
  std::size_t at = kHeaderBytes;
  while (number_at<std::uint32_t>(bytes, at) != kind) at += kHeaderBytes;
  return at;
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("huge runs: files of 100 GiB are refused, or read as far as they say something") {
  const MemoryLimit limit(kGiB);
  struct Case {
    std::string file;
    Topic topic;
  };
  const Case cases[] = {{"manifest.json", Topic::kSource},
                        {"metrics.jsonl", Topic::kMetrics},
                        {"stages/stages.json", Topic::kStages},
                        {"plan.bin", Topic::kPlan},
                        {"events.cols", Topic::kProfile}};
  for (const Case& each : cases) {
    INFO(each.file);
    const Copy run(test::image_run().folder());
    fs::resize_file(run.path() / each.file, 100 * kGiB);
    WindowDriver window(run.path());
    look_at_all(window);
    CHECK_FALSE(window.workbench().run()->message(each.topic).empty());
  }
}

TEST_CASE("huge runs: stages and their logs of 100 GiB") {
  const MemoryLimit limit(kGiB);
  for (const char* ending : {".onnx", ".rewrites.jsonl"}) {
    INFO(ending);
    const Copy run(test::image_run().folder());
    for (const fs::directory_entry& entry : fs::directory_iterator(run.path() / "stages")) {
      if (entry.path().string().ends_with(ending)) fs::resize_file(entry.path(), 100 * kGiB);
    }
    WindowDriver window(run.path());
    window.workbench().request("graph.compare_model");
    look_at_all(window);
    CHECK_FALSE(window.workbench().run()->message(Topic::kStages).empty());
  }
}

TEST_CASE(
    "huge runs: a plan that says that it has 2^40 rows, in a file as it is and one of 100 GiB") {
  const MemoryLimit limit(kGiB);
  constexpr std::uint32_t kBuffers = 7;
  for (const bool is_there : {false, true}) {
    INFO(is_there);
    const Copy run(test::image_run().folder());
    std::string bytes = read_file(run.path() / "plan.bin", kMostFileBytes);
    const std::uint64_t file_bytes = is_there ? 100 * kGiB : bytes.size();
    const std::size_t section = section_at(bytes, kBuffers);
    const auto offset = number_at<std::uint64_t>(bytes, section + 8);
    const std::uint64_t rows = is_there ? (file_bytes - offset) / sizeof(PlanBuffer) : kManyRows;
    put_number<std::uint64_t>(bytes, section + 16, rows);
    seal_plan(bytes, file_bytes);
    write_bytes(run.path() / "plan.bin", bytes);
    fs::resize_file(run.path() / "plan.bin", file_bytes);
    WindowDriver window(run.path());
    look_at_all(window);
    const std::string message = window.workbench().run()->message(Topic::kPlan).text;
    CHECK(message.find(is_there ? "more than the allowed" : "not inside the file") !=
          std::string::npos);
  }
}

TEST_CASE("huge runs: a chunk of a profile that says that it has 2^32 - 1 events") {
  const MemoryLimit limit(kGiB);
  const Copy run(test::image_run().folder());
  constexpr std::size_t kChunk = 32;  // the first begins there; its count is 4 bytes behind, and
  std::string bytes = read_file(run.path() / "events.cols", kMostFileBytes);
  put_number<std::uint32_t>(bytes, kChunk + 4, 0xFFFF'FFFF);
  const std::string_view head(bytes.data() + kChunk, 20);  // ... the checksum of its head 20
  put_number(bytes, kChunk + 20, profiler::crc32(std::as_bytes(std::span(head))));
  write_bytes(run.path() / "events.cols", bytes);
  WindowDriver window(run.path());
  look_at_all(window);
  CHECK(window.workbench().run()->message(Topic::kProfile).text.find("4294967295 events") !=
        std::string::npos);
}

TEST_CASE("huge runs: a manifest and metrics with the greatest numbers") {
  const MemoryLimit limit(kGiB);
  const Copy run(test::image_run().folder());
  for (const char* kind : {"step", "evaluation"}) {
    std::ofstream(run.path() / "metrics.jsonl", std::ios::app)
        << R"({"kind":")" << kind
        << R"(","step":9223372036854775807,"loss":1.7e308,"accuracy":1.0,"examples":9223372036854775807,)"
        << R"("learning_rate":1.7e308,"gradient_norm":1.7e308,"step_ms":1.7e308,)"
        << R"("samples":9223372036854775807,"milliseconds":1.7e308,"tokens":9223372036854775807})"
        << "\n";
  }
  WindowDriver window(run.path());
  look_at_all(window);
  CHECK(window.workbench().run()->metrics().steps.back().step == 9223372036854775807);
}

TEST_SUITE_END();

// What takes seconds of a processor.
TEST_SUITE_BEGIN("processes");

// A profile in which most steps have no calls, and the last has all of them.
TEST_CASE("huge runs: two million steps whose last one alone has calls") {
  const Copy run(test::text_run().folder());
  const std::size_t calls = RunReader::open(run.path()).plan().value().view().calls.size();
  std::vector<profiler::Event> events;
  constexpr std::uint32_t kSteps = 2'000'000;
  for (std::uint32_t step = 1; step < kSteps; ++step) {
    events.push_back({.begin_ns = std::int64_t{10} * step,
                      .value = 5,
                      .id = step,
                      .kind = profiler::EventKind::kStep});
  }
  std::vector<profiler::Event> last = test::steps_of(calls, 1);
  for (profiler::Event& event : last) {
    event.begin_ns += std::int64_t{10} * kSteps;
    if (event.kind == profiler::EventKind::kStep) event.id = kSteps;
    events.push_back(event);
  }
  test::write_profile(run.path(), events);
  const MemoryLimit limit(kGiB);
  WindowDriver window(run.path());
  look_at_all(window);
  CHECK(window.workbench().run()->message(Topic::kProfile).text.find("too many to look at") !=
        std::string::npos);
}

TEST_CASE("huge runs: two million steps of metrics") {
  const Copy run(test::plain_run().folder());
  constexpr std::int64_t kSteps = 2'000'000;
  fmt::memory_buffer lines;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    fmt::format_to(std::back_inserter(lines),
                   R"({{"kind":"step","step":{},"loss":{},"learning_rate":0.1,)"
                   R"("gradient_norm":null,"step_ms":2.0,"samples":4,"tokens":0}})"
                   "\n",
                   step, 5.0 / static_cast<double>(step));
  }
  write_bytes(run.path() / "metrics.jsonl", fmt::to_string(lines));
  const MemoryLimit limit(2 * kGiB);
  WindowDriver window(run.path());
  CHECK(window.items().find("main/overview/card/steps")->number == static_cast<double>(kSteps));
  look_at_all(window);
}

TEST_CASE("huge runs: a graph of 200,000 nodes, each with a call and a buffer") {
  constexpr int kNodes = 200'000;
  const Copy run(test::plain_run().folder());
  const Folder folder = Folder::open(run.path());
  write_plan_file(chain_plan(kNodes), folder / "plan.bin");
  Graph graph;
  Builder build(graph, shared_ops());
  build.set_provenance({.sources = SourceNames({"/chain"}), .pass = "import"});
  ValueId value = build.input("x", {.dtype = DType::kF32, .shape = {2, 8}});
  for (int i = 0; i < kNodes; ++i) value = build("Relu", {value});
  graph.outputs = {value};
  const StageRecord imported = RunReader::open(run.path()).stages().front();
  write_onnx(graph, run.path() / "stages" / imported.file);
  const MemoryLimit limit(4 * kGiB);
  WindowDriver window(run.path());
  look_at_all(window);
  CHECK(window.workbench().run()->plan()->calls.size() == kNodes);
  window.workbench().request("select stage:" + imported.name);
  window.workbench().request("panel graph");
  window.step(3);
  REQUIRE(window.workbench().run()->graph(0) != nullptr);
  CHECK(window.workbench().run()->graph(0)->node_count() == kNodes);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
