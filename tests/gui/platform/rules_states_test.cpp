// States of panels that a run alone does not show: with roofs, beside another run, with advice,
// with what limits a call; in every theme and size.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "engine/machine/machine_file.h"
#include "gui/app/commands.h"
#include "tests/gui/platform/all_looks.h"

namespace trainscope::gui {
namespace {

using test::all_faults;
using test::in_all_looks;
using test::WindowDriver;

// Of the same model as text_run(), planned with a machine whose rates are known.
const test::MadeRun& measured_run() {
  static const test::MadeRun run("measured", *test::compiled("gpt2", test::kSmallText), 3,
                                 machine_json(test::small_machine()));
  return run;
}

void show(WindowDriver& window, std::string_view panel) {
  INFO(panel);
  window.app().show_only(panel);
  window.step(2);
  CHECK(all_faults(window) == "");
}

bool says(const WindowDriver& window, std::string_view text) { return window.says("main/", text); }

TEST_SUITE_BEGIN("gui");

TEST_CASE("rules: roofs of a measured machine, and what limits a call") {
  in_all_looks(measured_run().folder(), [](WindowDriver& window) {
    show(window, "kernels");
    CHECK(window.has("main/kernels/table/column/roof"));
    show(window, "roofline");
    REQUIRE(window.workbench().select_named("call:7"));
    window.app().show_only("inspector");
    window.step(2);
    bool is_seen = false;
    test::on_all_pages(window, "main/inspector/scroll", [&] {
      CHECK(all_faults(window) == "");
      is_seen = is_seen || says(window, "limited by");
    });
    CHECK(is_seen);
  });
}

TEST_CASE("rules: kernels, roofline and runs of two runs beside each other") {
  in_all_looks(measured_run().folder(), [](WindowDriver& window) {
    window.workbench().open(test::text_run().folder());
    window.workbench().activate(0);
    window.settle();
    REQUIRE(run_command(window.workbench(), "kernels.beside"));
    show(window, "kernels");
    CHECK(window.has("main/kernels/table/column/other_ms"));
    show(window, "roofline");
    show(window, "runs");
  });
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
