// Questions that a researcher has, answered in at most six actions from opening, on three runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "engine/bundle/reader.h"
#include "engine/machine/machine_file.h"
#include "gui/app/workspaces.h"
#include "gui/views/model_nodes.h"
#include "profiler/advise/reasons.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

// Counts what a user does: a chord, a click, a typed word each.
class Walk : public WindowDriver {
 public:
  using WindowDriver::WindowDriver;
  void press(std::string_view chord) {
    ++actions;
    key(chord);
  }
  bool pick(std::string_view path) {
    ++actions;
    return click(path);
  }
  void write(std::string_view text) {
    ++actions;
    type(text);
  }
  void turn(std::string_view path, float turns) {
    ++actions;
    wheel(path, turns);
    step();
  }
  // Whether the inspector says this.
  bool tells(std::string_view part) const {
    const auto shown = items().below("inspector/inspector/");
    return std::ranges::any_of(
        shown, [&](const Item* item) { return item->label.find(part) != std::string::npos; });
  }
  // The same of a sentence, which may be broken into lines.
  bool explains(std::string_view sentence) const {
    std::string text;
    for (const Item* item : items().below("inspector/inspector/")) text += item->label + ' ';
    return text.find(sentence) != std::string::npos;
  }
  int actions = 0;
};

const std::filesystem::path& run_of(int i) {
  if (i == 0) return test::text_run().folder();
  return i == 1 ? test::image_run().folder() : test::branched_run().folder();
}

const ModelArguments kSmallWords = {
    {"layers", std::int64_t{2}},     {"heads", std::int64_t{2}},
    {"embedding", std::int64_t{16}}, {"feed-forward", std::int64_t{32}},
    {"vocab", std::int64_t{32}},     {"context", std::int64_t{8}}};
const ModelArguments kSmallPatches = {
    {"layers", std::int64_t{2}},     {"heads", std::int64_t{2}},
    {"embedding", std::int64_t{16}}, {"feed-forward", std::int64_t{32}},
    {"image", std::int64_t{16}},     {"patch", std::int64_t{4}},
    {"classes", std::int64_t{10}}};

// Whether what writes the buffer first is a node: of parameters, states, constants and batches the
// record says what kind of value they start as.
bool names_its_node(const PlanView& plan, const PlanBuffer& buffer) {
  return std::ranges::any_of(plan.nodes, [&](const PlanNode& node) {
    return plan.text(node.name) == plan.text(buffer.producer);
  });
}

// A model of the catalogue, and how it is trained.
using Words = std::vector<std::string>;
struct Training {
  Words model;
  Words flags;
};
const Training kTrainings[] = {
    {{"gpt2", "--layers", "2", "--heads", "2", "--embedding", "16", "--vocab", "32", "--context",
      "32"},
     {"--batch", "8", "--seq", "32"}},
    {{"vit", "--embedding", "32", "--heads", "2", "--feed-forward", "64", "--layers", "2",
      "--image", "32", "--patch", "4", "--classes", "10"},
     {"--batch", "16"}},
    {{"unet", "--image", "32", "--width", "8", "--depth", "2"}, {"--batch", "8"}}};

// A run in the folder "run" of `folder`, with its model beside it.
void train(const Training& training, const trainscope::test::TemporaryFolder& folder,
           const Words& more) {
  const std::string model = (folder / "model.onnx").string();
  Words words = {"model"};
  words.insert(words.end(), training.model.begin(), training.model.end());
  words.insert(words.end(), {"-o", model});
  REQUIRE(trainscope::test::run(words).exit_code == 0);
  words = {"train",     model,       "--data",
           "synthetic", "--threads", "2",
           "-q",        "--run-dir", (folder / "run").string()};
  words.insert(words.end(), training.flags.begin(), training.flags.end());
  words.insert(words.end(), more.begin(), more.end());
  REQUIRE(trainscope::test::run(words).exit_code == 0);
}

struct Fitted {
  std::int64_t before = 0;  // bytes of the arena
  std::int64_t now = 0;
  bool is_nearest = false;  // the least that there is a plan for was offered

  double share() const { return static_cast<double>(now) / static_cast<double>(before); }
};
// The walk to a plan in 60 % of the memory, or the nearest one that there is, and on with it.
Fitted made_to_fit(const Training& training) {
  const trainscope::test::TemporaryFolder folder;
  train(training, folder, {"--steps", "1"});
  Fitted fitted;
  fitted.before = RunReader::open(folder / "run").plan().value().view().arena().bytes;
  Walk walk(folder / "run");
  REQUIRE(walk.pick("main/overview/ask/fit"));
  walk.settle();
  REQUIRE(walk.pick("main/budget/budget"));
  walk.write("60%");
  walk.press("Enter");
  walk.settle();
  fitted.is_nearest = walk.has("main/budget/nearest");
  if (fitted.is_nearest) REQUIRE(walk.pick("main/budget/nearest"));
  walk.settle();
  REQUIRE(walk.pick("main/budget/run"));
  walk.settle();
  CHECK(walk.actions <= 6);
  const RunReader after = RunReader::open(folder / "run");
  REQUIRE(after.manifest().sessions.size() == 2);
  CHECK(after.metrics().steps.size() == 21);
  fitted.now = after.plan().value().view().arena().bytes;
  const Item* measured = walk.items().find("main/budget/worker/arena/measured");
  REQUIRE(measured != nullptr);
  CHECK(measured->number == static_cast<double>(fitted.now));
  return fitted;
}

// The walk to what limits the node that takes longest, which tells all that is known of each of
// its calls: these.
std::vector<profiler::RoofReason> reasons_of_slowest(const std::filesystem::path& run) {
  INFO(run.string());
  std::vector<profiler::RoofReason> reasons;
  Walk walk(run);
  walk.press("F4");
  REQUIRE(walk.pick("main/kernels/table/row/0/"));
  walk.step(2);
  CHECK(walk.tells("of a step"));
  const PlanLinks& links = *walk.workbench().links();
  const PlanView& plan = links.plan();
  const std::uint32_t node = links.node_of_serial(walk.workbench().selection().node);
  REQUIRE(node != kNoRow);
  for (const std::uint32_t call : links.calls_of_node(node)) {
    const profiler::CallTime& time = walk.workbench().run()->times()->calls[call];
    reasons.push_back(profiler::roof_reason(
        *walk.workbench().run()->machine(), plan, plan.calls[call],
        1e-9 * static_cast<double>(time.sum()) / static_cast<double>(time.runs)));
    const profiler::RoofReason& reason = reasons.back();
    INFO(reason.bound, "; ", reason.reason);
    REQUIRE_FALSE(reason.bound.empty());
    CHECK(walk.explains(reason.bound));
    CHECK(walk.explains(reason.reason));
  }
  if (!walk.tells("chosen")) walk.turn("inspector/inspector/scroll", -4.0F);
  CHECK(walk.tells("chosen"));  // its kernel
  CHECK(walk.actions <= 6);
  return reasons;
}

bool is_value_of(const PlanView& plan, std::string_view name) {
  return std::ranges::any_of(plan.values,
                             [&](const PlanValue& value) { return plan.text(value.name) == name; });
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("walk: which op holds the peak?") {
  for (int i = 0; i < 3; ++i) {
    INFO(i);
    Walk walk(run_of(i));
    REQUIRE(walk.pick("main/overview/ask/peak"));
    walk.step(2);
    const PlanView& plan = *walk.workbench().run()->plan();
    const Selection& selected = walk.workbench().selection();
    REQUIRE(selected.buffer < plan.buffers.size());
    // It is alive when most bytes are, and no other that a node makes is larger then.
    const std::uint32_t time = memory_peak(plan).time;
    const std::vector<std::uint32_t> alive = alive_at(plan, time);
    CHECK(std::ranges::find(alive, selected.buffer) != alive.end());
    CHECK(names_its_node(plan, plan.buffers[selected.buffer]));
    for (const std::uint32_t other : alive) {
      if (!names_its_node(plan, plan.buffers[other])) continue;
      CHECK(plan.buffers[other].bytes <= plan.buffers[selected.buffer].bytes);
    }
    CHECK(walk.tells(plan.text(plan.buffers[selected.buffer].label)));
    CHECK(walk.actions <= 6);
  }
}

TEST_CASE("walk: which pass made this node?") {
  for (int i = 0; i < 3; ++i) {
    INFO(i);
    Walk walk(run_of(i));
    const PlanView& plan = *walk.workbench().run()->plan();
    const PlanNode& node = plan.nodes[plan.nodes.size() / 2];
    walk.press("Ctrl+P");
    walk.write(plan.text(node.name));
    walk.press("Enter");
    walk.step(2);
    CHECK(walk.workbench().selected_name() == "node:" + std::string(plan.text(node.name)));
    CHECK(walk.tells("made by"));
    CHECK(walk.tells(plan.text(node.pass)));
    CHECK(walk.actions <= 6);
  }
}

TEST_CASE("walk: why is this op slow?") {
  // So fast that every call of the made profiles is far from its roof.
  Machine fast = test::small_machine();
  const Rate rate{.one = 1e13, .all = 1e13};
  fast.flops_per_second[DType::kF32] = rate;
  fast.levels = {{.name = "memory", .bytes = 1 << 30, .read = rate, .write = rate, .copy = rate}};
  const Json machine = machine_json(fast);
  const test::MadeRun runs[] = {
      test::MadeRun("slow-text", *test::compiled("gpt2", test::kSmallText), 3, machine),
      test::MadeRun("slow-image", *test::compiled("lenet"), 3, machine),
      test::MadeRun("slow-patches", *test::compiled("vit", kSmallPatches), 3, machine)};
  for (const test::MadeRun& run : runs) {
    for (const profiler::RoofReason& reason : reasons_of_slowest(run.folder())) {
      CHECK_FALSE(reason.reason.empty());
    }
  }
}

TEST_CASE("walk: why is this op slow, in steps that were timed on a machine that was measured?" *
          doctest::test_suite("processes")) {
  const trainscope::test::TemporaryFolder roofs;
  const std::string machine = (roofs / "machine.json").string();
  REQUIRE(trainscope::test::run({"doctor", "--roofs", "--roof-seconds", "0.002", "--roof-memory",
                                 "32MiB", "--threads", "2", "--out", machine})
              .exit_code == 0);
  for (const Training& training : kTrainings) {
    const trainscope::test::TemporaryFolder folder;
    train(training, folder, {"--steps", "4", "--profile", "steps=2:4", "--machine", machine});
    for (const profiler::RoofReason& reason : reasons_of_slowest(folder / "run")) {
      CHECK(reason.share > 0.0);
    }
  }
}

TEST_CASE("walk: where did my Gelu go?") {
  const test::MadeRun words("words", *test::compiled("bert", kSmallWords));
  const test::MadeRun patches("patches", *test::compiled("vit", kSmallPatches));
  for (const std::filesystem::path& folder :
       {test::text_run().folder(), words.folder(), patches.folder()}) {
    std::vector<std::string> looked_for;  // one of each fate, and every Gelu
    std::set<std::string> fates;
    const std::unique_ptr<RunData> model = RunData::open(folder);
    for (const GoneNode& node : gone_nodes(*model)) {
      if (is_value_of(*model->plan(), node.name)) continue;  // which is found first
      const bool is_new = fates.insert(node.fate.substr(0, node.fate.find(','))).second;
      if (is_new || node.op == "Gelu") looked_for.push_back(node.name);
    }
    REQUIRE_FALSE(looked_for.empty());
    for (const std::string& name : looked_for) {
      INFO(folder.string(), " ", name);
      Walk walk(folder);
      walk.press("Ctrl+P");
      walk.write(name);
      walk.press("Enter");
      walk.step(2);
      CHECK(walk.workbench().selected_name() == "model:" + name);
      const Fate* fate = model->node_fate(name);
      REQUIRE(fate != nullptr);
      CHECK(walk.tells("Where it went"));
      CHECK(walk.tells(trainscope::name_of(fate->kind)));
      walk.press("F1");
      walk.step(2);
      // The graph says the same, and leads to what does its work now.
      const bool has_heir =
          std::ranges::any_of(fate->now, [&](const NamedThing& thing) { return thing.is_node; });
      if (fate->kind == FateKind::kInside && has_heir) {
        REQUIRE(walk.pick("main/graph/follow"));
        CHECK(walk.workbench().selected_name() == "node:" + fate->now.front().name);
      }
      CHECK(walk.actions <= 6);
    }
  }
}

TEST_CASE("walk: make it fit in 60 % and train on" * doctest::test_suite("processes")) {
  for (const Training& training : kTrainings) {
    INFO(training.model[0]);
    const Fitted fitted = made_to_fit(training);
    CHECK_FALSE(fitted.is_nearest);
    CHECK(fitted.share() <= 0.6);
  }
}

TEST_CASE("walk: what cannot fit in 60 % is offered the nearest, and trains on with that" *
          doctest::test_suite("processes")) {
  // Most of its bytes are parameters and their states.
  const Fitted fitted = made_to_fit({{"gpt2", "--layers", "1", "--heads", "2", "--embedding", "32",
                                      "--vocab", "64", "--context", "8"},
                                     {"--batch", "4", "--seq", "8"}});
  CHECK(fitted.is_nearest);
  CHECK(fitted.share() > 0.6);
  CHECK(fitted.share() < 1.0);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
