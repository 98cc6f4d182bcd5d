// Views as command lines: what each panel shows, there and back.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "gui/app/bookmarks.h"
#include "gui/app/workspaces.h"
#include "gui/panels/graph/graph_state.h"
#include "gui/panels/memory_state.h"
#include "gui/workbench/view_text.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

// What another window shows of the view, as a view.
std::string shown_again(const std::string& view) {
  WindowDriver other(test::text_run().folder());
  const bool is_shown = show_view(other.workbench(), view);
  CHECK_MESSAGE(is_shown, other.workbench().notice.text);
  other.settle();
  return view_of(other.workbench());
}

// Of the stages that changed the graph, the one in the middle and the one after it.
std::pair<std::string, std::string> two_stages(WindowDriver& window) {
  const RunData& run = *window.workbench().run();
  const std::size_t first = changed_stage(run, run.stages().size() / 2, -1);
  return {run.stages()[first].label, run.stages()[changed_stage(run, first, 1)].label};
}

TEST_CASE("views: texts of any characters are escaped and found again") {
  CHECK(escaped("a,b|c%d=e", ",|") == "a%2Cb%7Cc%25d=e");
  for (const std::string text : {"", "%", "100%", "a,b|c", "%2C", "%%", "é,→", "%2"}) {
    CHECK(unescaped(escaped(text, ",|")) == text);
  }
  CHECK(unescaped("50% of") == "50% of");
}

TEST_CASE("views: stages, the one that they are held against, and the colouring") {
  WindowDriver window(test::text_run().folder());
  const auto [shown, other] = two_stages(window);
  REQUIRE(show_view(window.workbench(), "graph"));
  CHECK(view_of(window.workbench()) == "graph");
  window.step();
  window.key("[");  // from the last stage to the last that changed the graph
  window.key("c");
  window.key("d");
  const std::string walked = view_of(window.workbench());
  CHECK_MESSAGE(walked.find(",compare=") != std::string::npos, walked);
  CHECK(walked.find(",color=time") != std::string::npos);
  CHECK(shown_again(walked) == walked);
  for (const std::string& view :
       {fmt::format("graph,stage={},compare={},color=bytes", shown, other),
        fmt::format("stages,stage={},compare={},list=all", shown, other),
        fmt::format("stages,stage={},list=near_misses", other)}) {
    CHECK(shown_again(view) == view);
  }
  REQUIRE(show_view(window.workbench(), "graph,stage:" + shown));
  CHECK(view_of(window.workbench()).starts_with("graph,stage=" + shown));
  // A selection is named last, and a view without parts is as it was at first.
  REQUIRE(show_view(window.workbench(), fmt::format("graph,stage={},color=pass,call:3", shown)));
  CHECK(window.workbench().selection().call == 3);
  REQUIRE(show_view(window.workbench(), "graph"));
  CHECK(view_of(window.workbench()).starts_with("graph,call:3"));
}

TEST_CASE("views: where the graph is looked at from, and its collapsed blocks") {
  WindowDriver window(test::text_run().folder());
  REQUIRE(show_view(window.workbench(), "graph"));
  window.settle();
  CHECK(view_of(window.workbench()) == "graph");
  window.key("+");
  window.key("b");
  const std::string all = view_of(window.workbench());
  CHECK(all.find(",collapsed=*") != std::string::npos);
  CHECK(all.find(",camera=") != std::string::npos);
  CHECK(shown_again(all) == all);
  auto& graph = window.workbench().state<GraphState>();
  const std::string block = graph.layout.blocks.front().name;
  const std::string one =
      fmt::format("graph,collapsed={},camera=12.5:-30:0.75", escaped(escaped(block, "|*"), ","));
  REQUIRE(show_view(window.workbench(), one));
  window.settle();
  CHECK(graph.camera == GraphCamera{.x = 12.5F, .y = -30.0F, .zoom = 0.75F});
  CHECK(graph.layout.blocks.front().collapsed);
  CHECK_FALSE(graph.layout.blocks.back().collapsed);
  CHECK(shown_again(view_of(window.workbench())) == view_of(window.workbench()));
  for (const char* wrong : {"graph,camera=1:2", "graph,camera=1:2:0", "graph,camera=a:b:c",
                            "graph,camera=1e30:0:1", "graph,collapsed=nothing"}) {
    CHECK_FALSE(show_view(window.workbench(), wrong));
  }
  REQUIRE(show_view(window.workbench(), "graph"));
  window.settle();
  CHECK(view_of(window.workbench()) == "graph");
}

TEST_CASE("views: a stage that this run has not is no longer held against") {
  WindowDriver window(test::text_run().folder());
  const auto [shown, other] = two_stages(window);
  REQUIRE(show_view(window.workbench(), fmt::format("graph,stage={},compare={}", shown, other)));
  window.settle();
  window.workbench().state<StageChoice>().compare = 1000;  // of another run
  window.settle();
  CHECK(view_of(window.workbench()) == "graph,stage=" + shown);
}

TEST_CASE("views: the cursor, the list and what is seen of the plane of memory") {
  WindowDriver window(test::text_run().folder());
  const std::string view = "memory,cursor=3,range=1:7.5:0:1024,list=gaps,curve=touched";
  CHECK(shown_again(view) == view);
  REQUIRE(show_view(window.workbench(), "memory"));
  window.step();
  window.key("Left");
  window.key("+");
  const std::string moved = view_of(window.workbench());
  CHECK(moved.find("range=") != std::string::npos);
  CHECK(moved.find("call:") != std::string::npos);
  CHECK(shown_again(moved) == moved);
  REQUIRE(show_view(window.workbench(), "memory"));
  CHECK(view_of(window.workbench()).find('=') == std::string::npos);
}

TEST_CASE("views: ranges, groups, filters and the order of what took time") {
  WindowDriver window(test::text_run().folder());
  REQUIRE(show_view(window.workbench(), "timeline"));
  window.step();
  CHECK(view_of(window.workbench()) == "timeline");
  window.key(".");
  window.key("w");
  const std::string walked = view_of(window.workbench());
  CHECK(walked.find("range=") != std::string::npos);
  CHECK(walked.find("seen=") != std::string::npos);
  CHECK(shown_again(walked) == walked);
  CHECK(shown_again("timeline,by=phase") == "timeline,by=phase");
  const std::string filter = R"(op==MatMul || node=="a,b%")";
  for (const std::string& view : {"kernels,by=op,filter=" + escaped(filter, ",") + ",sort=flops:up",
                                  std::string("roofline,by=kernel,filter=ms>0")}) {
    CHECK(shown_again(view) == view);
  }
  // Both panels have one filter.
  REQUIRE(show_view(window.workbench(), "roofline,filter=" + escaped(filter, ",")));
  REQUIRE(show_panel(window.workbench().settings.layout, "kernels"));
  window.step();
  CHECK(window.items().find("main/kernels/filter")->value == filter);
  REQUIRE(show_view(window.workbench(), "kernels"));
  window.step();
  CHECK(window.items().find("main/kernels/filter")->value.empty());
}

TEST_CASE("views: the budget and what is pinned") {
  WindowDriver window(test::text_run().folder());
  REQUIRE(show_view(window.workbench(), "budget"));
  window.settle();
  CHECK(view_of(window.workbench()) == "budget");
  for (const std::string view : {"budget,budget=1", "budget,budget=12345678,keep=*gelu*|a%257Cb",
                                 "budget,budget=2,recompute=*norm*"}) {
    CHECK(shown_again(view) == view);
  }
}

TEST_CASE("views: of budgets that are asked for before there are plans the last one counts") {
  {
    WindowDriver window(test::text_run().folder());
    REQUIRE(show_view(window.workbench(), "budget,budget=60%"));
    REQUIRE(show_view(window.workbench(), "budget,budget=1"));
    window.settle();
    CHECK(view_of(window.workbench()) == "budget,budget=1");
  }
  WindowDriver window(test::text_run().folder());
  REQUIRE(show_view(window.workbench(), "budget,budget=60%"));
  REQUIRE(show_view(window.workbench(), "budget"));
  window.settle();
  CHECK(view_of(window.workbench()) == "budget");
}

TEST_CASE("views: what there is not is said, and is no view") {
  WindowDriver window(test::text_run().folder());
  for (const std::string view : {"graph,stage=nobody",
                                 "graph,compare=nobody",
                                 "graph,color=nobody",
                                 "stages,list=nobody",
                                 "memory,cursor=999999999",
                                 "memory,cursor=-1",
                                 "memory,range=1:2",
                                 "memory,range=5:1:0:10",
                                 "memory,list=nobody",
                                 "memory,curve=nobody",
                                 "budget,budget=lots",
                                 "timeline,range=5:1",
                                 "timeline,seen=5",
                                 "timeline,range=0:9223372036854775807",
                                 "timeline,seen=0:9223372036854775807",
                                 "timeline,by=nobody",
                                 "kernels,by=nobody",
                                 "kernels,sort=nobody",
                                 "roofline,by=phase",
                                 "graph,nobody=1"}) {
    window.workbench().notice = {};
    CHECK_FALSE_MESSAGE(show_view(window.workbench(), view), view);
    CHECK_MESSAGE(window.workbench().notice.is_error, view);
  }
}

}  // namespace
}  // namespace trainscope::gui
