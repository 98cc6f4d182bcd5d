// Questions that a researcher has, answered in at most six actions from opening, on runs of models
// that are made here; on recorded ones: recorded_walks_test.cpp.
#include "tests/gui/platform/walks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/machine/machine_file.h"
#include "tests/cli/program_runner.h"

namespace trainscope::gui {
namespace {

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

const test::MadeRun& words_run() {
  static const test::MadeRun run("words", *test::compiled("bert", kSmallWords));
  return run;
}
const test::MadeRun& patches_run() {
  static const test::MadeRun run("patches", *test::compiled("vit", kSmallPatches));
  return run;
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("walk: which op holds the peak?") {
  for (int i = 0; i < 3; ++i) test::walk_to_peak(run_of(i));
}

TEST_CASE("walk: which pass made this node?") {
  for (int i = 0; i < 3; ++i) test::walk_to_pass(run_of(i));
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
    for (const profiler::RoofReason& reason : test::walk_to_slowest(run.folder())) {
      CHECK_FALSE(reason.reason.empty());
    }
  }
}

TEST_CASE("walk: where did my Gelu go?") {
  struct Spelling {
    const std::filesystem::path& run;
    std::vector<std::string> ops;
  };
  const std::vector<std::string> by_erf = {"Div", "Erf", "Add", "Mul", "Mul"};
  const Spelling spellings[] = {
      {test::text_run().folder(), {"Mul", "Pow", "Mul", "Add", "Mul", "Tanh", "Add", "Mul"}},
      {words_run().folder(), by_erf},
      {patches_run().folder(), by_erf}};
  for (const Spelling& spelling : spellings)
    CHECK(test::walk_to_gelu(spelling.run) == spelling.ops);
}

TEST_CASE("walk: where did my Gelu go, which the model has as one op?") {
  const trainscope::test::TemporaryFolder folder;
  trainscope::test::write_model(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float[4,2] x) => (float[4,3] logits)"
      " <float[2,2] w = {0.1,0.2,0.3,-0.1}, float[2,3] v = {0.1,0.2,0.3,-0.1,-0.2,0.4}>"
      " { h = MatMul(x, w)  a = Gelu<approximate = \"tanh\">(h)  logits = MatMul(a, v) }",
      folder / "model.onnx");
  test::Walk walk(folder / "model.onnx");
  REQUIRE(walk.workbench().run()->plan() != nullptr);
  walk.press("Ctrl+P");
  walk.write("Gelu");
  walk.press("Enter");
  walk.step(2);
  const PlanLinks& links = *walk.workbench().links();
  const std::uint32_t selected = links.node_of_serial(walk.workbench().selection().node);
  REQUIRE(selected != kNoRow);
  CHECK(links.plan().text(links.plan().nodes[selected].op) == "Gelu");
  CHECK(walk.tells("made by"));
  CHECK(walk.tells("import"));
  CHECK(walk.tells("stems from"));
  CHECK(walk.actions <= test::kMostActions);
}

TEST_CASE("walk: where did this node of my model go?") {
  for (const test::MadeRun* run : {&test::text_run(), &words_run(), &patches_run()}) {
    const std::vector<std::string> names = test::nodes_of_each_fate(run->folder());
    REQUIRE_FALSE(names.empty());
    for (const std::string& name : names) test::walk_to_fate(run->folder(), name);
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
