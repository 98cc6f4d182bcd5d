// Every number that a panel draws is the one that its twin on the command line prints.
#include "tests/gui/platform/twins.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/file.h"
#include "engine/core/numbers.h"
#include "engine/machine/machine_file.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/panels.h"
#include "gui/views/model_nodes.h"
#include "gui/views/past_nodes.h"
#include "profiler/analysis/breakdown.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/drawn_numbers.h"

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

// Nodes that passes took away: one that a pass had made, and one of the model.
void add_gone_things(RunData& run, std::vector<std::string>& things) {
  const std::vector<PastNode> past = past_nodes(run);
  if (!past.empty()) {
    const PastNode& node = past[past.size() / 2];
    things.push_back(fmt::format("node@{}:{}", run.stages()[node.stage].label, node.name));
  }
  const std::vector<GoneNode> gone = gone_nodes(run);
  const auto imported = std::ranges::find_if(gone, [](const GoneNode& n) { return !n.op.empty(); });
  if (imported != gone.end()) things.push_back("model:" + imported->name);
}

// Of the inspector, for things of each kind.
int check_inspector(WindowDriver& window, Twins& twins) {
  const Panel& panel = *panel_named("inspector");
  int paired = 0;
  window.app().show_only("inspector");
  std::vector<std::string> things = things_of(*window.workbench().run()->plan());
  add_gone_things(*window.workbench().run(), things);
  for (const std::string& name : things) {
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
    check_texts(window);
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
  if (window.workbench().run()->machine() != nullptr) {
    window.app().show_only("roofline");
    window.step(2);
    CHECK(window.items().below("main/roofline/roof/").size() >= 2);
  }
  if (window.workbench().run()->events() != nullptr) {
    window.app().show_only("timeline");
    window.step(2);
    CHECK(window.has("main/timeline/counter/loss/greatest"));
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
  const std::filesystem::path machine = folder / "machine.json";
  write_file_atomic(machine, machine_json(test::small_machine()).dump());
  CHECK(check_run(recorded(folder, "gpt2/model.onnx",
                           {"--steps", "4", "--recompute", "1", "--profile", "steps=2:4",
                            "--machine", machine.string()})) > 200);
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
  // Times are of the worker's own run; then the same steps again, from what there was before.
  Twins twins;
  const std::string& measured = window.items().find("main/budget/worker/step/measured")->fact;
  twins.answer(measured.substr(0, measured.find(" | ")));
  std::filesystem::remove_all(run);
  std::filesystem::rename(before, run);
  CHECK(check_numbers(window, *panel_named("budget"), twins, "main/budget/worker/") == 7);
}

TEST_CASE("twins: what is drawn is the number, rounded as its unit is, in every panel") {
  WindowDriver window(test::text_run().folder());
  int numbers = 0;
  for (const Panel& panel : all_panels()) {
    INFO(panel.id);
    window.app().show_only(panel.id);
    window.settle();
    check_texts(window);
    for (const Item& item : window.items().items()) {
      if (item.kind != ItemKind::kNumber || item.fact.empty()) continue;
      check_drawn(window, item, item.fact.substr(item.fact.rfind('|') + 1), item.number);
      ++numbers;
    }
  }
  CHECK(numbers > 150);
}

TEST_CASE("twins: drawn numbers are taken apart, whatever their unit") {
  const auto value = [](std::string_view text) { return test::drawn_number(text)->value; };
  CHECK(value("1.5 KiB") == 1536.0);
  CHECK(value("12 345") == 12345.0);
  CHECK(value("-1 234 567") == -1234567.0);
  CHECK(value("+3") == 3.0);
  CHECK(value("250 ns") == doctest::Approx(2.5e-7));
  CHECK(value("12.34 %") == doctest::Approx(0.1234));
  CHECK(value("2.0 MiB·calls") == 2097152.0);
  CHECK(test::drawn_number("1.235 ms")->half_digit == doctest::Approx(5e-7));
  CHECK(test::drawn_number("-1.977e+31")->half_digit == doctest::Approx(5e27));
  CHECK(test::drawn_number("3.40 GB/s")->unit.counted_in == "B/s");
  for (const char* wrong : {"", "—", "ms", "1 23", "12 parsecs"}) {
    CHECK_FALSE(test::drawn_number(wrong).has_value());
  }
  for (const char* text : {"a step of 12.3 ms", "3 B", "75.0 %", "1.0 µs, then", "4 MiB·calls"}) {
    CHECK(test::says_quantity(text));
  }
  for (const char* text :
       {"20 steps", "f32[4,8]", "/h.0/mlp", "thread 0", "share %", "2 threads"}) {
    CHECK_FALSE(test::says_quantity(text));
  }
  CHECK(test::unit_of_fact("/rows/3/gflops").counted_in == "FLOP/s");
  CHECK(test::unit_of_fact("/rows/3/flops").counted_in == "FLOP");
  CHECK(test::unit_of_fact("/stages/3/counters/offloaded_bytes").counted_in.empty());
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
