// Models that are compiled while the window is drawn.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/file.h"
#include "gui/app/commands.h"
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

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
