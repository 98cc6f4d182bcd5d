// Every panel and overlay in every theme and size: no label cut off, no control too small, no ink
// that is hard to read.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_moment.h"
#include "engine/core/file.h"
#include "gui/app/commands.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/panels.h"
#include "gui/views/model_nodes.h"
#include "gui/views/past_nodes.h"
#include "profiler/analysis/breakdown.h"
#include "tests/cli/program_runner.h"
#include "tests/gui/platform/all_looks.h"

namespace trainscope::gui {
namespace {

using test::all_faults;
using test::in_all_looks;
using test::WindowDriver;
using trainscope::test::TemporaryFolder;

// One of each kind of thing that can be selected, as it is named.
std::vector<std::string> subjects_of(RunData& run) {
  const PlanView& plan = *run.plan();
  const auto value = std::ranges::find_if(plan.values, [](const PlanValue& each) {
    return each.serial != 0 && each.kind == PlanValueKind::kNode;
  });
  REQUIRE(value != plan.values.end());
  const std::vector<GoneNode> gone = gone_nodes(run);
  REQUIRE_FALSE(gone.empty());
  const PastNode past = past_nodes(run).back();
  return {fmt::format("node:{}", plan.text(plan.nodes[plan.nodes.size() / 2].name)),
          fmt::format("value:{}", plan.text(value->name)),
          fmt::format("kernel:{}", profiler::kernel_of(plan, plan.calls[plan.calls.size() / 2])),
          fmt::format("call:{}", plan.calls.size() / 2),
          fmt::format("buffer:{}", memory_peak(plan).alive.front()),
          fmt::format("buffer:{}", plan.buffers.size() - 1),
          "model:" + gone.front().name,
          fmt::format("node@{}:{}", run.stages()[past.stage].label, past.name),
          "step:2"};
}

void show(WindowDriver& window, std::string_view panel) {
  window.workbench().request(fmt::format("panel {}", panel));
  window.step(2);
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("rules: panels of a run with a profile") {
  in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    window.workbench().select_named("node:" + std::string("/h.0/mlp/c_fc"));
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
      CHECK_FALSE(window.items().below(fmt::format("main/{}/", panel.id)).empty());
    }
  });
}

TEST_CASE("rules: panels of a run without one") {
  in_all_looks(test::plain_run().folder(), [](WindowDriver& window) {
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
    }
  });
}

TEST_CASE("rules: panels of runs whose losses are very large, very small, or no numbers") {
  const TemporaryFolder folder;
  std::filesystem::copy(test::plain_run().folder(), folder / "run",
                        std::filesystem::copy_options::recursive);
  for (const char* loss : {"1.977105332476779e31", "-3.25e-9", "1e999"}) {
    std::ofstream(folder / "run" / "metrics.jsonl", std::ios::app)
        << R"({"kind":"step","step":6,"loss":)" << loss
        << R"(,"learning_rate":0.1,"gradient_norm":null,"step_ms":123456.0,"samples":4,"tokens":0})"
        << "\n";
    for (const char* panel : {"overview", "runs"}) {
      INFO(panel, " ", loss);
      WindowDriver window(folder / "run");
      window.app().show_only(panel);
      window.step(3);
      CHECK(all_faults(window) == "");
    }
  }
}

TEST_CASE("rules: panels of a trace that another tool has written") {
  const TemporaryFolder folder;
  const std::string trace = TRAINSCOPE_SOURCE_DIR "/tests/data/traces/pytorch-gpu-graph.json.gz";
  REQUIRE(trainscope::test::run({"import", trace, "-o", (folder / "run").string()}).exit_code == 0);
  in_all_looks(folder / "run", [](WindowDriver& window) {
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
      CHECK_FALSE(window.items().below(fmt::format("main/{}/", panel.id)).empty());
    }
  });
}

TEST_CASE("rules: the window in each workspace") {
  in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    for (const char* key : {"F1", "F2", "F3", "F4", "F5"}) {
      INFO(key);
      window.key(key);
      window.step(2);
      CHECK(all_faults(window) == "");
    }
  });
}

TEST_CASE(
    "rules: the inspector of each kind of thing, to its end, as wide as at first and narrow") {
  for (const float width : {300.0F, 200.0F}) {
    in_all_looks(test::text_run().folder(), [width](WindowDriver& window) {
      window.workbench().settings.layout.inspector_width = width;
      for (const std::string& name : subjects_of(*window.workbench().run())) {
        INFO(name, " ", width);
        REQUIRE(window.workbench().select_named(name));
        window.step(2);
        REQUIRE_FALSE(window.items().below("inspector/inspector/").empty());
        test::on_all_pages(window, "inspector/inspector/scroll",
                           [&] { CHECK(all_faults(window) == ""); });
      }
    });
  }
}

TEST_CASE("rules: stages held against each other, why each node changed, and where one went") {
  in_all_looks(test::text_run().folder(), [](WindowDriver& window) {
    Workbench& bench = window.workbench();
    bench.settings.reduced_motion = true;
    show(window, "graph");
    for (const char* command : {"graph.compare", "graph.compare_model"}) {
      INFO(command);
      bench.request(command);
      window.step(2);
      const auto& graph = bench.state<GraphState>();
      REQUIRE(graph.compared >= 0);
      CHECK(all_faults(window) == "");
      for (std::size_t i = 0; i < graph.changes.rows.size(); i += 5) {
        INFO(i);
        if (!window.click(fmt::format("main/graph/changes/row/{}/", i))) continue;
        window.step();
        CHECK(all_faults(window) == "");
      }
    }
    REQUIRE_FALSE(bench.state<GraphState>().changes.rows.empty());
    REQUIRE(bench.select_named("model:" + gone_nodes(*bench.run()).front().name));
    window.step(2);
    CHECK(all_faults(window) == "");
    CHECK_FALSE(bench.state<GraphState>().gone.empty());
  });
}

TEST_CASE("rules: the list of near misses, and each as a whole where the mouse is") {
  const test::MadeRun run("misses", *test::compiled("bert", {{"layers", std::int64_t{2}},
                                                             {"heads", std::int64_t{2}},
                                                             {"embedding", std::int64_t{16}},
                                                             {"feed-forward", std::int64_t{32}},
                                                             {"vocab", std::int64_t{32}},
                                                             {"context", std::int64_t{8}}}));
  in_all_looks(run.folder(), [](WindowDriver& window) {
    show(window, "stages");
    REQUIRE(window.click("main/stages/near_misses"));
    window.step(2);
    CHECK(all_faults(window) == "");
    REQUIRE(window.hover("main/stages/misses/row/0/"));
    CHECK_FALSE(window.items().below("tooltip/").empty());
    CHECK(all_faults(window) == "");
    CHECK(test::hidden_parts(window, "tooltip/") == "");
  });
}

TEST_CASE("rules: a model whose sizes are open, and the box for them") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "model.onnx";
  write_file_atomic(file, onnx_bytes(build_model("gpt2", test::kSmallText, 1)));
  in_all_looks(file, [](WindowDriver& window) {
    REQUIRE(window.workbench().run()->wants_sizes());
    CHECK(all_faults(window) == "");
    REQUIRE(run_command(window.workbench(), "file.sizes"));
    window.step(2);
    window.type("--batch none");
    window.step();
    CHECK(all_faults(window) == "");
  });
}

TEST_CASE("rules: many layouts with long names, in their box and in the menu") {
  Settings settings;
  for (int i = 0; i < 30; ++i) {
    settings
        .saved_layouts[fmt::format("{} a layout of a very long name, for a small screen", i)] = {};
  }
  for (const test::Screen& screen : test::kScreens) {
    test::in_look(test::plain_run().folder(), settings, screen, [](WindowDriver& window) {
      REQUIRE(run_command(window.workbench(), "view.layouts"));
      window.step(2);
      CHECK(all_faults(window) == "");
      window.key("Esc");
      REQUIRE(window.click("menu/View"));
      window.step();
      CHECK(all_faults(window) == "");
    });
  }
}

TEST_CASE("rules: a window without a run") {
  in_all_looks({}, [](WindowDriver& window) {
    for (const Panel& panel : all_panels()) {
      INFO(panel.id);
      window.app().show_only(panel.id);
      window.step(2);
      CHECK(all_faults(window) == "");
    }
  });
}

TEST_CASE("rules: large text, and text and numbers of sizes apart") {
  for (const auto& [text, number] : {std::pair{20.0F, 13.0F}, std::pair{14.0F, 20.0F}}) {
    Settings settings;
    settings.text_size = text;
    settings.number_size = number;
    WindowDriver window(test::text_run().folder(), settings);
    for (const Panel& panel : all_panels()) {
      INFO(panel.id, " ", text, " ", number);
      window.app().show_only(panel.id);
      window.step(3);
      CHECK(all_faults(window) == "");
    }
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
