// What is read on threads for the window, and what stays while a run grows.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gui/data/run_data.h"
#include "tests/gui/made_run.h"

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;
using test::compiled;
using test::MadeRun;

TEST_CASE("run_data: what is read ahead is what is read when it is asked for") {
  const MadeRun made("ahead", *compiled("gpt2", test::kSmallText));
  const auto ahead = RunData::open(made.folder());
  const auto asked = RunData::open(made.folder());
  const std::size_t last = asked->stages().size() - 1;
  ahead->read_ahead();
  ahead->read_ahead();  // once of a source
  REQUIRE(ahead->history() != nullptr);
  CHECK(ahead->history()->history().size() == asked->history()->history().size());
  for (const std::size_t stage : {std::size_t{0}, last / 2, last}) {
    REQUIRE(ahead->graph(stage) != nullptr);
    CHECK(ahead->graph(stage)->order().size() == asked->graph(stage)->order().size());
  }
  REQUIRE(ahead->fates().size() == asked->fates().size());
  for (const Fate& fate : asked->fates()) {
    if (!fate.thing.is_node) continue;
    const Fate* same = ahead->node_fate(fate.thing.name);
    REQUIRE(same != nullptr);
    CHECK(same->kind == fate.kind);
  }
}

TEST_CASE("run_data: two stages are held against each other on a thread, for who does not wait") {
  const MadeRun made("ahead", *compiled("gpt2", test::kSmallText));
  for (const bool reads_ahead : {false, true}) {
    INFO(reads_ahead);
    const auto ahead = RunData::open(made.folder());
    const auto asked = RunData::open(made.folder());
    const std::size_t last = asked->stages().size() - 1;
    if (reads_ahead) ahead->read_ahead();
    CHECK(ahead->reads_diff(last, last / 2));
    while (ahead->reads_diff(last, last / 2)) std::this_thread::yield();
    const Graph* graph = ahead->graph(last / 2);
    REQUIRE(graph != nullptr);
    CHECK(graph->order().size() == asked->graph(last / 2)->order().size());
    const StageDiff* diff = ahead->diff(last / 2, last);
    REQUIRE(diff != nullptr);
    CHECK(diff->nodes == asked->diff(last / 2, last)->nodes);
    CHECK_FALSE(ahead->reads_diff(last / 2, last));
    CHECK_FALSE(ahead->reads_diff(0, last + 1));  // there is none
  }
}

TEST_CASE("run_data: files that are damaged while they are read ahead are messages, too") {
  const MadeRun made("ahead", *compiled("mlp"));
  const auto data = RunData::open(made.folder());
  REQUIRE_FALSE(data->stages().empty());
  for (const auto& file : fs::recursive_directory_iterator(made.folder())) {
    const bool is_of_stage = file.path().parent_path().filename() == "stages";
    if (is_of_stage && file.is_regular_file()) fs::resize_file(file.path(), 10);
  }
  data->read_ahead();
  while (data->reads_diff(0, 1)) std::this_thread::yield();
  while (data->is_reading_ahead()) std::this_thread::yield();
  CHECK(data->diff(0, 1) == nullptr);
  CHECK(data->history() == nullptr);
  CHECK(data->graph(0) == nullptr);
  CHECK_FALSE(data->message(Topic::kStages).empty());
}

TEST_CASE("run_data: a step more leaves what was made of stages and of the profile") {
  MadeRun made("grows", *compiled("mlp"));
  const auto run = RunData::open(made.folder());
  const auto pointers = [&run] {
    const std::size_t last = run->stages().size() - 1;
    const Graph& model = *run->graph(0);
    const auto serial = static_cast<std::uint32_t>(model.node(model.first()).serial);
    return std::vector<const void*>{run->history(),         run->graph(last),
                                    run->diff(0, last),     run->fates().data(),
                                    run->times(),           run->calls_by(profiler::GroupBy::kCall),
                                    run->measured_memory(), run->entries_of(serial).data()};
  };
  const std::vector<const void*> before = pointers();
  REQUIRE(std::ranges::count(before, nullptr) <= 1);
  std::ofstream(made.folder() / kRunMetricsFile, std::ios::app)
      << R"({"kind":"step","step":6,"loss":0.5,"learning_rate":0.1,"gradient_norm":null,)"
      << R"("step_ms":2.0,"samples":8,"tokens":0})" << '\n';
  REQUIRE(run->refresh());
  CHECK(pointers() == before);
  made.resume(*compiled("lenet"), 3, "");  // another session is of another plan
  REQUIRE(run->refresh());
  CHECK(run->times()->calls.size() == run->plan()->calls.size());
  CHECK(run->graph(run->stages().size() - 1)->order().size() ==
        static_cast<std::size_t>(run->stages().back().record.nodes_after));
}

}  // namespace
}  // namespace trainscope::gui
