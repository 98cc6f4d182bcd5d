// Every number that a panel draws is the one that its twin on the command line prints.
#include "tests/gui/platform/twins.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/numbers.h"
#include "engine/core/text.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/panels.h"
#include "profiler/analysis/breakdown.h"
#include "tests/cli/program_runner.h"

namespace trainscope::gui {
namespace {

using test::check_numbers;
using test::Twins;
using test::WindowDriver;
using trainscope::test::TemporaryFolder;

// Of each kind of thing some, by name: of each phase the nodes of its first, middle and last call.
std::vector<std::string> things_of(const PlanView& plan) {
  const auto middle = [](const auto& rows) { return rows[rows.size() / 2]; };
  std::vector<std::string> things = {
      "buffer:5", "call:7", fmt::format("value:{}", plan.text(middle(plan.values).name)),
      fmt::format("kernel:{}", profiler::kernel_of(plan, middle(plan.calls)))};
  for (const PlanPhase phase : {PlanPhase::kForward, PlanPhase::kBackward, PlanPhase::kUpdate}) {
    std::vector<std::string> nodes;
    for (const PlanCall& call : plan.calls) {
      if (call.phase != phase || call.node == kNoRow) continue;
      nodes.push_back(fmt::format("node:{}", plan.text(plan.nodes[call.node].name)));
    }
    REQUIRE_FALSE(nodes.empty());
    things.insert(things.end(), {nodes.front(), middle(nodes), nodes.back()});
  }
  return things;
}

// Of the inspector, for things of each kind.
int check_inspector(WindowDriver& window, Twins& twins) {
  const Panel& panel = *panel_named("inspector");
  int paired = 0;
  window.app().show_only("inspector");
  for (const std::string& name : things_of(*window.workbench().run()->plan())) {
    INFO(name);
    REQUIRE(window.workbench().select_named(name));
    window.step(2);
    const int numbers = check_numbers(window, panel, twins);
    CHECK(numbers > 0);
    paired += numbers;
  }
  return paired;
}

// Of all panels, and of the lists and ranges that some have.
int check_run(const std::filesystem::path& run) {
  WindowDriver window(run);
  Twins twins;
  int paired = check_numbers(window, *panel_named("overview"), twins, "status/");
  CHECK(paired == 2);  // the last step and its loss
  window.workbench().request("select call:3");
  const auto look_at = [&](std::string_view id) {
    INFO(id);
    window.app().show_only(id);
    window.settle();
    paired += check_numbers(window, *panel_named(id), twins);
  };
  for (const Panel& panel : all_panels()) look_at(panel.id);
  for (std::size_t i = 0; i < kColorings; ++i) {
    window.workbench().request("graph.color");
    window.step();
    look_at("graph");
  }
  for (const char* command : {"memory.gaps", "memory.idle", "memory.process"}) {
    window.workbench().request(command);
    window.step();
    look_at("memory");
  }
  if (window.workbench().run()->events() != nullptr) {
    window.workbench().request("timeline.next_step");
    window.step();
    look_at("timeline");
  }
  return paired + check_inspector(window, twins);
}

// Trained and profiled by the program.
std::filesystem::path recorded(const TemporaryFolder& folder, const char* model,
                               const std::vector<std::string>& more) {
  std::vector<std::string> words = {"train",
                                    trainscope::test::test_model(model).string(),
                                    "--data",
                                    "synthetic",
                                    "--threads",
                                    "2",
                                    "-q",
                                    "--run-dir",
                                    (folder / "run").string()};
  words.insert(words.end(), more.begin(), more.end());
  const trainscope::test::Finished finished = trainscope::test::run(words);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return folder / "run";
}

TEST_SUITE_BEGIN("processes");

TEST_CASE("twins: numbers of all panels, of a run of a text model that recomputes") {
  const TemporaryFolder folder;
  CHECK(check_run(recorded(folder, "gpt2/model.onnx",
                           {"--steps", "4", "--recompute", "1", "--profile", "steps=2:4"})) > 200);
}
TEST_CASE("twins: numbers of all panels, of a run of an image model with validation") {
  const TemporaryFolder folder;
  CHECK(check_run(recorded(folder, "lenet/model.onnx",
                           {"--steps", "6", "--eval-every", "3", "--profile", "steps=3:6"})) > 150);
}
TEST_CASE("twins: numbers of all panels, of a run that was resumed, its second session profiled") {
  const TemporaryFolder folder;
  const std::filesystem::path run =
      recorded(folder, "llama/model.onnx", {"--steps", "6", "--session-steps", "2"});
  const trainscope::test::Finished finished =
      trainscope::test::run({"train", "--resume", run.string(), "--profile", "steps=+2:4", "-q"});
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK(check_run(run) > 150);
}
TEST_CASE("twins: numbers of all panels, of a run without a profile") {
  const TemporaryFolder folder;
  CHECK(check_run(recorded(folder, "mlp/model.onnx", {"--steps", "3"})) > 60);
}

TEST_CASE("twins: the peak of a model that nobody has trained is what `plan` prints of it") {
  const TemporaryFolder folder;
  const std::string file = (folder / "model.onnx").string();
  REQUIRE(trainscope::test::run({"model", "mlp", "-o", file}).exit_code == 0);
  WindowDriver window(file);
  Twins twins;
  CHECK(check_numbers(window, *panel_named("overview"), twins, "main/overview/card/") == 2);
}

TEST_CASE("twins: numbers of a model with open sizes are those of the same sizes") {
  const TemporaryFolder folder;
  const std::string file = (folder / "model.onnx").string();
  REQUIRE(trainscope::test::run({"model", "gpt2", "--layers", "1", "--embedding", "16", "--heads",
                                 "2", "--vocab", "32", "--context", "8", "-o", file})
              .exit_code == 0);
  WindowDriver window({});
  window.workbench().open(file, {.batch = 3, .shapes = {{"sequence", {7}}}});
  window.settle();
  Twins twins;
  CHECK(check_numbers(window, *panel_named("overview"), twins, "main/overview/") > 5);
}

TEST_CASE("twins: two runs beside each other, in Kernels, Roofline and Runs") {
  const TemporaryFolder a;
  const TemporaryFolder b;
  const std::filesystem::path run =
      recorded(a, "gpt2/model.onnx", {"--steps", "4", "--profile", "steps=2:4"});
  WindowDriver window(run);
  window.workbench().open(recorded(b, "gpt2/model.onnx",
                                   {"--steps", "4", "--recompute", "2", "--profile", "steps=2:4"}));
  window.workbench().activate(0);
  Twins twins;
  window.app().show_only("kernels");
  window.settle();
  REQUIRE(window.click("main/kernels/beside"));
  window.step();
  REQUIRE(window.click("main/kernels/beside/menu/1"));
  window.settle();
  const auto columns = [&](std::string_view name) {
    return std::ranges::count_if(window.items().items(), [&](const Item& item) {
      return item.kind == ItemKind::kNumber && item.path.ends_with(name);
    });
  };
  CHECK(columns("/other_ms") > 10);
  CHECK(columns("/more_ms") > 10);
  CHECK(check_numbers(window, *panel_named("kernels"), twins) > 50);
  window.app().show_only("roofline");
  window.settle();
  CHECK(columns("/other_gflops") > 10);
  CHECK(check_numbers(window, *panel_named("roofline"), twins) > 50);
  window.app().show_only("runs");
  window.settle();
  CHECK(check_numbers(window, *panel_named("runs"), twins) > 50);
}

TEST_CASE("twins: a worker's line is what the command line prints that it was started with") {
  const TemporaryFolder folder;
  const std::filesystem::path run = recorded(folder, "gpt2/model.onnx", {"--steps", "3"});
  const std::filesystem::path before = folder / "before";
  std::filesystem::copy(run, before, std::filesystem::copy_options::recursive);
  WindowDriver window(run);
  window.app().show_only("budget");
  window.settle();
  for (const char* button : {"main/budget/level/1", "main/budget/run"}) {
    REQUIRE(window.click(button));
    window.settle();
  }
  std::vector<double> step_ms;
  for (const StepRecord& step : RunReader::open(run).metrics().steps) {
    if (step.step > 4) step_ms.push_back(step.step_ms);  // the worker's first one warms up
  }
  REQUIRE(step_ms.size() == 19);
  CHECK(window.items().find("main/budget/worker/step/measured")->number == median(step_ms));
  CHECK(window.items().find("main/budget/worker/resident/measured")->number > 0.0);
  // The same steps again, from what there was before.
  std::filesystem::remove_all(run);
  std::filesystem::rename(before, run);
  Twins twins;
  CHECK(check_numbers(window, *panel_named("budget"), twins, "main/budget/worker/") == 4);
}

TEST_CASE("twins: what is drawn is the number, rounded as its unit is") {
  WindowDriver window(test::text_run().folder());
  window.key("F4");
  window.step();
  int numbers = 0;
  for (const Item& item : window.items().items()) {
    if (item.kind != ItemKind::kNumber || !item.value.ends_with(" ms")) continue;
    const auto shown = parse_number(item.value.substr(0, item.value.size() - 3));
    REQUIRE(shown.has_value());
    CHECK(std::abs(*shown - item.number) <= 0.0005 + 1e-12);
    ++numbers;
  }
  CHECK(numbers > 20);
}

TEST_CASE("twins: the points that a filter leaves, sorted, are rows of the same expression") {
  WindowDriver window(test::text_run().folder());
  Twins twins;
  window.app().show_only("roofline");
  window.step();
  window.click("main/roofline/by/op");
  window.click("main/roofline/points/column/intensity");
  window.click("main/roofline/filter");
  window.type("phase==backward");
  window.step(2);
  CHECK(check_numbers(window, *panel_named("roofline"), twins) > 10);
  window.click("main/roofline/points/column/intensity");
  window.step(2);
  CHECK(check_numbers(window, *panel_named("roofline"), twins) > 10);
}

TEST_CASE("twins: gaps and what is alive are the arena, as `inspect --memory` has them") {
  WindowDriver window(test::text_run().folder());
  Twins twins;
  window.app().show_only("memory");
  window.workbench().request("memory.gaps");
  window.step(2);
  int paired = 0;
  for (const char* key : {"P", "Home", "End"}) {
    window.key(key);
    window.step(2);
    const std::string line = panel_named("memory")->twin(window.workbench());
    const Json& printed = twins.answer(line);
    double free = 0.0;
    for (const Json& gap : printed.at("gaps").as_array()) free += gap.at("bytes").as_number();
    CHECK(free == window.items().find("main/memory/free")->number);
    CHECK(printed.at("arena_bytes").as_number() - printed.at("live_bytes").as_number() == free);
    paired += check_numbers(window, *panel_named("memory"), twins, "main/memory/gaps/");
  }
  CHECK(paired > 3);
}

TEST_CASE("twins: the command line of a sorted, filtered table prints the same rows") {
  WindowDriver window(test::text_run().folder());
  Twins twins;
  window.app().show_only("kernels");
  window.step();
  window.click("main/kernels/by/op");
  window.click("main/kernels/table/column/bytes");
  window.click("main/kernels/filter");
  window.type("phase==backward");
  window.step(2);
  CHECK(check_numbers(window, *panel_named("kernels"), twins) > 10);
  window.click("main/kernels/table/column/bytes");
  window.step(2);
  CHECK(check_numbers(window, *panel_named("kernels"), twins) > 10);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
