// Near misses by the places of their nodes, and the rectangles around them.
#include "gui/views/graph/near_misses.h"

#include <doctest/doctest.h>

#include "tests/gui/views/views_models.h"

namespace trainscope::gui {
namespace {

struct Laid {
  std::unique_ptr<Compiled> compiled = test::compiled("mlp");
  GraphPicture picture = picture_of(compiled->stages.back().graph);
  LayoutMemory memory = {};
  GraphLayout layout = layout_graph(picture, memory);

  std::string name(std::uint32_t place) const { return std::string(picture.nodes[place].name); }
};

TEST_CASE("near misses: those nodes that are in the graph, in the order of the record") {
  const Laid laid;
  StageRecord stage{.name = "fuse"};
  stage.near_misses = {{.nodes = {laid.name(3), "gone", laid.name(1)}, .reason = "it is read"},
                       {.nodes = {"gone too"}, .reason = "it is gone"},
                       {.nodes = {laid.name(2)}, .reason = "it is trained"}};
  const std::vector<NearMissGroup> misses = near_misses_in(laid.picture, stage);
  REQUIRE(misses.size() == 2);
  CHECK(misses[0].places == std::vector<std::uint32_t>{3, 1});
  CHECK(sentence_of(misses[0]) == "fuse nearly rewrote 2 nodes: it is read");
  CHECK(sentence_of(misses[1]) == "fuse nearly rewrote 1 node: it is trained");
}

TEST_CASE("near misses: the rectangle is around nodes of all columns, and no larger") {
  const Laid laid;
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < laid.picture.nodes.size(); i += 2) places.push_back(i);
  const LayoutRect around = rect_around(laid.layout, places);
  bool at_left = false;
  bool at_top = false;
  bool at_right = false;
  bool at_bottom = false;
  for (const std::uint32_t place : places) {
    const LaidNode& node = laid.layout.nodes[place];
    CHECK(around.x <= node.x);
    CHECK(around.y <= node.y);
    CHECK(around.right() >= node.x + kNodeWidth);
    CHECK(around.bottom() >= node.y + kNodeHeight);
    at_left = at_left || around.x == node.x;
    at_top = at_top || around.y == node.y;
    at_right = at_right || around.right() == node.x + kNodeWidth;
    at_bottom = at_bottom || around.bottom() == node.y + kNodeHeight;
  }
  CHECK(at_left);
  CHECK(at_top);
  CHECK(at_right);
  CHECK(at_bottom);
}

TEST_CASE("near misses: a node that its block hides is where the block is") {
  Laid laid;
  const LaidBlock block = laid.layout.blocks[laid.layout.nodes[0].block];
  laid.layout = layout_graph(laid.picture, laid.memory, {block.name});
  const LayoutRect around = rect_around(laid.layout, std::vector<std::uint32_t>{0});
  const LayoutRect& hidden = laid.layout.blocks[laid.layout.nodes[0].block].rect;
  CHECK(around.x == hidden.x);
  CHECK(around.y == hidden.y);
  CHECK(around.width == hidden.width);
  CHECK(around.height == hidden.height);
}

}  // namespace
}  // namespace trainscope::gui
