// Models that are compiled while the window is drawn.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/file.h"
#include "gui/app/bookmarks.h"
#include "gui/app/commands.h"
#include "gui/panels/panels.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;
using trainscope::test::TemporaryFolder;

TEST_SUITE_BEGIN("gui");

TEST_CASE("window: a model is compiled while the window is drawn, and can be given up") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "model.onnx";
  const ModelArguments deep{{"blocks", std::vector<std::int64_t>{12, 12, 12}},
                            {"width", std::int64_t{4}},
                            {"image", std::int64_t{16}},
                            {"stem", std::string("cifar")}};
  write_file_atomic(file, onnx_bytes(build_model("resnet", deep, 1)));
  for (const auto& [gives_up, by_mouse] : {std::pair{false, false}, {true, true}, {true, false}}) {
    INFO(gives_up, by_mouse);
    WindowDriver window({});
    window.workbench().open(file);
    window.step();
    REQUIRE(window.workbench().is_opening());
    const auto says = [&](std::string_view text) {
      return std::ranges::any_of(window.items().items(), [&](const Item& item) {
        return item.label.find(text) != std::string::npos;
      });
    };
    CHECK(says("Compiling model.onnx"));
    if (by_mouse) REQUIRE(window.click("main/overview/stop_opening"));
    if (gives_up && !by_mouse) {
      window.key("Ctrl+P");
      window.type("Stop compiling");
      window.key("Enter");
    }
    window.settle();
    CHECK_FALSE(window.workbench().is_opening());
    CHECK(says("compiling was stopped") == gives_up);
    CHECK((window.workbench().run()->plan() != nullptr) == !gives_up);
    CHECK_FALSE(is_enabled(*command_named("file.stop"), window.workbench()));
  }
}

namespace {

// A model that leaves batch and sequence open.
std::filesystem::path open_model(const std::filesystem::path& file) {
  write_file_atomic(file, onnx_bytes(build_model("gpt2", test::kSmallText, 1)));
  return file;
}

}  // namespace

TEST_CASE("window: a model whose sizes are open asks for them, and is compiled with them") {
  const TemporaryFolder folder;
  const std::filesystem::path file = open_model(folder / "model.onnx");
  WindowDriver window(file);
  Workbench& bench = window.workbench();
  REQUIRE(bench.run()->wants_sizes());
  CHECK(bench.run()->plan() == nullptr);
  CHECK(window.says("main/overview/empty/", "dimension 1 'sequence'"));
  CHECK(window.says("main/overview/empty/", "--batch N"));
  REQUIRE(window.click("main/overview/sizes"));
  window.step();
  REQUIRE(bench.overlay == Overlay::kSizes);
  window.type("--seq 0");
  window.key("Enter");
  window.step();
  CHECK(bench.overlay == Overlay::kSizes);
  CHECK(window.says("sizes/", "--seq is '0'"));
  CHECK_FALSE(window.items().find("sizes/open")->enabled);
  window.key("Ctrl+A");
  window.type("--batch 2 --seq 5");
  window.key("Enter");
  window.settle();
  CHECK(bench.overlay == Overlay::kNone);
  CHECK_FALSE(bench.run()->wants_sizes());
  REQUIRE(bench.run()->plan() != nullptr);
  // Other sizes: the box has those of now, and the selection of the model before is gone.
  REQUIRE(bench.select_named("call:1"));
  window.key("Ctrl+P");
  window.type("Sizes of the model");
  window.key("Enter");
  window.step();
  CHECK(window.items().find("sizes/sizes")->value == "--batch 2 --seq 5");
  const std::int64_t arena = bench.run()->plan()->arena().bytes;
  window.key("Ctrl+A");
  window.type("--batch 4 --seq 5");
  REQUIRE(window.click("sizes/open"));
  window.settle();
  CHECK(bench.selected_name().empty());
  REQUIRE(bench.run()->plan() != nullptr);
  CHECK(bench.run()->plan()->arena().bytes > arena);
  // What does not fit says so, as the command line does.
  REQUIRE(run_command(bench, "sizes --shape nobody=3"));
  window.settle();
  CHECK(bench.run()->wants_sizes());
  CHECK(window.says("main/overview/empty/", "no input or open dimension 'nobody'"));
}

TEST_CASE("window: command lines of a model have its sizes") {
  const TemporaryFolder folder;
  const std::filesystem::path file = open_model(folder / "model.onnx");
  WindowDriver window({});
  Workbench& bench = window.workbench();
  bench.open(file, {.batch = 2, .shapes = {{"sequence", {5}}}});
  window.settle();
  REQUIRE(bench.run()->plan() != nullptr);
  REQUIRE(bench.select_named("node:/h.0/mlp/c_fc"));
  REQUIRE(run_command(bench, "go.memory"));
  const std::string words = file.string() + " --batch 2 --shape sequence=5";
  const std::string selected = bench.selected_name();
  CHECK(command_of_view(bench) == "trainscope gui " + words + " --at memory," + selected);
  CHECK(panel_named("overview")->twin(bench) == "trainscope inspect " + words);
  // The command line's own words open the same view.
  WindowDriver other({});
  const std::vector<std::string> commands = {"open " + words, "panel memory", "select " + selected};
  other.app().start_with("", commands);
  other.settle();
  CHECK(command_of_view(other.workbench()) == command_of_view(bench));
}

TEST_CASE("window: a model is opened with sizes from its box") {
  const TemporaryFolder folder;
  const std::filesystem::path file = open_model(folder / "model.onnx");
  WindowDriver window({});
  window.key("Ctrl+Shift+O");
  window.step();
  REQUIRE(window.workbench().overlay == Overlay::kOpenModel);
  window.type(file.string());
  window.key("Tab");
  window.type("--seq 5 --batch two");
  window.key("Enter");
  window.step();
  CHECK(window.workbench().overlay == Overlay::kOpenModel);
  CHECK(window.says("open_model/", "--batch is 'two'"));
  for (int i = 0; i < 3; ++i) window.key("Backspace");
  window.type("2");
  window.key("Enter");
  window.settle();
  REQUIRE(window.workbench().run() != nullptr);
  CHECK(window.workbench().run()->sizes() == SizeRequest{.batch = 2, .sequence = 5});
  CHECK(window.workbench().run()->plan() != nullptr);
}

TEST_CASE("window: a path with a flag in its name is a path") {
  const TemporaryFolder folder;
  const std::filesystem::path file = open_model(folder / "model --seq 5.onnx");
  WindowDriver window({});
  REQUIRE(run_command(window.workbench(), "open " + file.string()));
  window.settle();
  CHECK(window.workbench().run()->path() == file);
  CHECK(window.workbench().run()->wants_sizes());
  REQUIRE(run_command(window.workbench(), "open " + (folder / "other.onnx --seq 5").string()));
  CHECK(window.workbench().run()->path() == folder / "other.onnx");
}

TEST_CASE("window: what is dropped on it is opened: a run, a model, several, a foreign file") {
  const TemporaryFolder folder;
  const std::string model = open_model(folder / "model.onnx").string();
  const std::string foreign = (folder / "notes.txt").string();
  write_file_atomic(foreign, std::string_view("no model"));
  const std::string text = test::text_run().folder().string();
  const std::string image = test::image_run().folder().string();
  WindowDriver window({});
  run_command(window.workbench(), "file.welcome");
  window.step();
  const auto drop = [&](const std::vector<const char*>& paths) -> RunData& {
    window.app().drop(paths);
    window.settle();
    return *window.workbench().run();
  };
  CHECK(drop({text.c_str()}).plan() != nullptr);
  CHECK(window.workbench().overlay == Overlay::kNone);
  CHECK(window.workbench().run()->path() == text);
  const RunData& asks = drop({model.c_str()});
  CHECK(asks.path() == model);
  CHECK(asks.wants_sizes());
  CHECK(window.has("main/overview/sizes"));
  REQUIRE(run_command(window.workbench(), "file.open"));
  window.step();
  const RunData& first = drop({image.c_str(), foreign.c_str(), text.c_str()});
  CHECK(window.workbench().count() == 5);
  CHECK(first.path() == image);
  CHECK(window.workbench().overlay == Overlay::kNone);  // what lay over them
  window.workbench().activate(3);
  window.settle();
  CHECK(window.workbench().run()->path() == foreign);
  CHECK_FALSE(window.workbench().run()->wants_sizes());
  CHECK_FALSE(window.workbench().run()->message(Topic::kSource).empty());
  CHECK_FALSE(window.items().below("main/overview/empty/").empty());
  CHECK(drop({}).path() == foreign);
  CHECK(window.workbench().count() == 5);
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
