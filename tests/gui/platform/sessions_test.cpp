// Sessions of a run before the newest, in all panels; and what stays selected when another session,
// or another run, is shown.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/bundle/reader.h"
#include "gui/app/bookmarks.h"
#include "gui/app/commands.h"
#include "gui/panels/panels.h"
#include "profiler/analysis/breakdown.h"
#include "tests/gui/platform/all_looks.h"
#include "tests/gui/platform/twins.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

const ModelArguments kFewerLayers{{"layers", std::int64_t{2}},
                                  {"heads", std::int64_t{2}},
                                  {"embedding", std::int64_t{16}},
                                  {"vocab", std::int64_t{32}},
                                  {"context", std::int64_t{8}}};

// Three sessions: of three layers, of two on a GPU, profiled, and of three again.
const test::MadeRun& resumed_run() {
  static const test::MadeRun& run = []() -> const test::MadeRun& {
    const auto deep = test::compiled("gpt2", test::kSmallText);
    static test::MadeRun made("resumed", *deep, 0);
    made.resume(*test::compiled("gpt2", kFewerLayers), 3, "NVIDIA H100 80GB HBM3");
    made.resume(*deep, 0, "");
    return made;
  }();
  return run;
}

void run_by_keys(WindowDriver& window, std::string_view title) {
  INFO(title);
  window.key("Ctrl+P");
  window.type(title);
  window.step();
  REQUIRE(window.label("palette/0/") == title);
  window.key("Enter");
  window.step(2);
}

double number_at(const WindowDriver& window, std::string_view path) {
  const Item* item = window.items().find(path);
  return item == nullptr ? -1.0 : item->number;
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("sessions: the one before and the one after, by keys alone, with their plans") {
  WindowDriver window(resumed_run().folder());
  const RunReader reader = RunReader::open(resumed_run().folder());
  CHECK(window.says("main/overview/how/", "session 3 of"));
  CHECK(number_at(window, "main/overview/how/sessions") == 3.0);
  CHECK_FALSE(window.says("", "session 3 of 3"));  // in the bar an older one alone is named
  const auto check = [&](std::string_view title, std::int64_t session, std::string_view said) {
    run_by_keys(window, title);
    INFO(title, session);
    CHECK(window.workbench().run()->session() == session);
    CHECK(window.workbench().notice.text == said);
    CHECK_FALSE(window.workbench().notice.is_error);
    CHECK(window.says("main/overview/how/", fmt::format("session {} of", session)));
    const std::int64_t arena = reader.plan(session).value().view().arena().bytes;
    CHECK(number_at(window, "main/overview/card/peak memory") == static_cast<double>(arena));
  };
  check("Session after", 3, "this is the newest session");
  check("Session before", 2, "session 2 of 3");
  CHECK(window.has("main/overview/time/0/number"));  // it was profiled
  CHECK(window.says("menu/", "session 2 of 3"));
  check("Session before", 1, "session 1 of 3");
  check("Session before", 1, "this is the first session");
  check("Session after", 2, "session 2 of 3");
  check("Session after", 3, "session 3 of 3");
}

TEST_CASE("sessions: commands for them are there where the run has more than one") {
  WindowDriver one(test::text_run().folder());
  WindowDriver more(resumed_run().folder());
  for (const char* id : {"file.session_before", "file.session_after"}) {
    CHECK_FALSE(is_enabled(*command_named(id), one.workbench()));
    CHECK(is_enabled(*command_named(id), more.workbench()));
  }
}

TEST_CASE("sessions: the Overview names the device, and how many threads there were") {
  WindowDriver window(resumed_run().folder());
  CHECK(window.says("main/overview/how/", "cuda:0"));
  CHECK_FALSE(window.says("main/overview/how/", "NVIDIA"));
  CHECK(number_at(window, "main/overview/how/threads") == 3.0);
  REQUIRE(window.workbench().show_session(2));
  window.step(2);
  CHECK(window.says("main/overview/how/", "cuda:0, NVIDIA H100 80GB HBM3"));
  CHECK(window.says("main/overview/how/", "AVX2"));
  REQUIRE(window.workbench().show_session(1));
  window.step(2);
  CHECK_FALSE(window.says("main/overview/how/", "cuda:0"));
  CHECK(number_at(window, "main/overview/how/sessions") == 3.0);
}

TEST_CASE("sessions: an older one in every theme and size") {
  test::in_each_look(resumed_run().folder(), [](WindowDriver& window) {
    REQUIRE(window.workbench().show_session(2));
    window.settle();
    CHECK(test::all_faults(window) == "");
    CHECK(window.has("main/overview/how/sessions"));
  });
}

TEST_CASE("sessions: what an older one lacks is said, without a command line that writes another") {
  WindowDriver window(resumed_run().folder());
  window.key("F4");
  window.step();
  CHECK(window.says("main/kernels/empty/", "was not profiled"));
  CHECK(window.has("main/kernels/empty/copy"));
  REQUIRE(run_command(window.workbench(), "file.session_before"));
  window.step(2);
  CHECK(window.has("main/kernels/table/row/0/"));
  REQUIRE(run_command(window.workbench(), "file.session_before"));
  window.step(2);
  CHECK(window.says("main/kernels/empty/", "was not profiled"));
  CHECK_FALSE(window.has("main/kernels/empty/copy"));
  // Advice is of the newest session.
  window.key("F5");
  window.step();
  CHECK_FALSE(window.items().find("main/overview/ask/help")->enabled);
}

TEST_CASE("sessions: Budget plans the newest one, and says so where an older one is shown") {
  WindowDriver window(resumed_run().folder());
  window.app().show_only("budget");
  window.settle();
  REQUIRE(window.has("main/budget/run"));
  CHECK_FALSE(window.says("main/budget/", "of the newest session"));
  REQUIRE(window.workbench().show_session(2));
  window.settle();
  CHECK(window.says("main/budget/", "of the newest session"));
}

TEST_CASE("sessions: views name them, in every panel, and lead back") {
  WindowDriver window(resumed_run().folder());
  CHECK(view_of(window.workbench()) == "overview");
  const std::string view = "kernels,session=2,by=op,node:/h.1/ln_2";
  REQUIRE(show_view(window.workbench(), view));
  window.settle();
  CHECK(window.workbench().run()->session() == 2);
  CHECK(view_of(window.workbench()) == view);
  REQUIRE(show_view(window.workbench(), "overview,session=1"));
  window.step();
  CHECK(window.workbench().run()->session() == 1);
  CHECK(command_of_view(window.workbench()).find(" --at overview,session=1,node:") !=
        std::string::npos);
  REQUIRE(show_view(window.workbench(), "memory"));
  CHECK(window.workbench().run()->session() == 3);
  for (const char* none : {"0", "4", "-1", "first"}) {
    window.workbench().notice = {};
    CHECK_FALSE(show_view(window.workbench(), fmt::format("memory,session={}", none)));
    CHECK(window.workbench().notice.text == fmt::format("memory: there is no session '{}'", none));
  }
  CHECK(window.workbench().run()->session() == 3);
}

TEST_CASE("sessions: what is selected stays so where the other session has it") {
  WindowDriver window(resumed_run().folder());
  Workbench& bench = window.workbench();
  // By which ONNX node: names of the program's own nodes are numbers in one plan.
  const auto source = [&]() -> std::string {
    const PlanLinks& links = *bench.links();
    const std::uint32_t node = links.node_of_serial(bench.selection().node);
    if (node == kNoRow) return {};
    const PlanView& plan = links.plan();
    return std::string(plan.text(rows_of(plan.names, plan.nodes[node].sources).front()));
  };
  const auto after = [&](const std::string& name, std::int64_t session) {
    REQUIRE(bench.show_session(3));
    bench.select({});
    REQUIRE(bench.select_named(name));
    REQUIRE(bench.show_session(session));
    CHECK_FALSE(bench.notice.is_error);
    return bench.selected_name();
  };
  CHECK(after("node:/h.1/ln_2", 2) == "node:/h.1/ln_2");
  CHECK(after("node:/h.2/ln_2", 1) == "node:/h.2/ln_2");
  CHECK(after("node:/h.2/ln_2", 2).empty());
  CHECK(after("node:/h.2/mlp/c_fc", 2).empty());
  // Parts of gradients: where there are fewer layers, their numbers are others.
  const StoredPlan stored = RunReader::open(resumed_run().folder()).plan(3).value();
  const PlanView plan = stored.view();
  int renamed = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); i += 3) {
    const PlanNode& node = plan.nodes[i];
    if (node.phase != PlanPhase::kBackward || node.sources.count == 0) continue;
    const std::string name = fmt::format("node:{}", plan.text(node.name));
    INFO(name);
    REQUIRE(bench.show_session(3));
    REQUIRE(bench.select_named(name));
    const std::string before = source();
    REQUIRE(bench.show_session(2));
    CHECK(source() == (before.starts_with("/h.2/") ? std::string() : before));
    renamed += bench.selected_name() == name ? 0 : 1;
  }
  CHECK(renamed > 0);
  CHECK(after("buffer:3", 2).empty());
  CHECK(after("step:2", 2).empty());
}

TEST_CASE("sessions: what is selected stays so where another run has it") {
  WindowDriver window(test::text_run().folder());
  Workbench& bench = window.workbench();
  bench.open(resumed_run().folder());
  REQUIRE(bench.show_session(2));
  bench.open(test::image_run().folder());
  const auto carried = [&](const std::string& name, std::size_t to) {
    bench.activate(0);
    bench.select({});
    REQUIRE(bench.select_named(name));
    bench.notice = {};
    bench.activate(to);
    CHECK(bench.notice.text.empty());
    return bench.selected_name();
  };
  const PlanView& plan = *bench.source(0).plan();
  const auto value = std::ranges::find_if(plan.values, [&](const PlanValue& each) {
    return each.serial != 0 && plan.text(each.name).starts_with("/h.0/");
  });
  REQUIRE(value != plan.values.end());
  const std::string kernel = fmt::format("kernel:{}", profiler::kernel_of(plan, plan.calls[0]));
  for (const std::string& name :
       {std::string("node:/h.0/ln_2"), fmt::format("value:{}", plan.text(value->name)), kernel}) {
    INFO(name);
    CHECK(carried(name, 1) == name);
  }
  CHECK(carried("node:/h.2/ln_2", 1).empty());
  CHECK(carried("node:/h.0/ln_2", 2).empty());
  // The stage too, and by Ctrl+Tab.
  bench.activate(0);
  const std::string stage = bench.source(0).stages()[4].label;
  REQUIRE(bench.select_named("node:/h.0/ln_2"));
  REQUIRE(bench.select_named("stage:" + stage));
  window.key("Ctrl+Tab");
  REQUIRE(bench.active() == 1);
  CHECK(bench.selected_name() == "node:/h.0/ln_2");
  REQUIRE(bench.selection().stage >= 0);
  CHECK(bench.run()->stages()[static_cast<std::size_t>(bench.selection().stage)].label == stage);
  // Closing one keeps it as well.
  run_command(bench, "file.close");
  CHECK(bench.active() == 1);
  bench.activate(0);
  REQUIRE(bench.select_named("node:/h.0/ln_2"));
  bench.close(1);
  CHECK(bench.selected_name() == "node:/h.0/ln_2");
}

TEST_SUITE_END();

TEST_CASE("twins: numbers of all panels, of a session before the newest" *
          doctest::test_suite("processes")) {
  WindowDriver window(resumed_run().folder());
  test::Twins twins;
  REQUIRE(window.workbench().show_session(2));
  REQUIRE(window.workbench().select_named("node:/h.1/ln_2"));
  int paired = 0;
  for (const Panel& panel : all_panels()) {
    INFO(panel.id);
    window.app().show_only(panel.id);
    window.settle();
    paired += test::check_numbers(window, panel, twins);
  }
  CHECK(paired > 100);
}

}  // namespace
}  // namespace trainscope::gui
