// Which nodes and edges are seen, and how they are reached.
#include "gui/views/graph/graph_frame.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/gui/views/views_models.h"

namespace trainscope::gui {
namespace {

struct Laid {
  std::unique_ptr<Compiled> step = test::compiled("gpt2", test::kSmallText);
  GraphPicture picture = picture_of(step->stages.back().graph);
  LayoutMemory memory;
  GraphLayout layout = layout_graph(picture, memory);
};

constexpr ViewSize kView{.width = 900.0f, .height = 600.0f};

TEST_CASE("graph_frame: at fit all nodes and blocks are in the view") {
  const Laid laid;
  GraphFrame frame;
  const GraphCamera camera = fit_camera(laid.layout, kView);
  frame_graph(laid.picture, laid.layout, camera, kView, kNoPlace, frame);
  CHECK(frame.nodes.size() == laid.picture.nodes.size());
  CHECK(frame.blocks.size() == laid.layout.blocks.size());
  for (const FrameNode& node : frame.nodes) {
    CHECK(node.rect.x >= 0.0f);
    CHECK(node.rect.right() <= kView.width);
    CHECK(node.rect.y >= 0.0f);
    CHECK(node.rect.bottom() <= kView.height);
  }
}

TEST_CASE("graph_frame: near nodes are those that the view cuts out, by comparison with all") {
  const Laid laid;
  GraphFrame frame;
  for (std::uint32_t place = 0; place < laid.picture.nodes.size(); place += 7) {
    const GraphCamera camera = camera_at(laid.layout, place, kView, 1.0f);
    frame_graph(laid.picture, laid.layout, camera, kView, place, frame);
    CHECK(frame.detail == GraphDetail::kTexts);
    std::size_t visible = 0;
    for (const LaidNode& node : laid.layout.nodes) {
      const bool across = node.x <= camera.x + kView.width && node.x + kNodeWidth >= camera.x;
      const bool down = node.y <= camera.y + kView.height && node.y + kNodeHeight >= camera.y;
      if (across && down) ++visible;
    }
    CHECK(frame.nodes.size() == visible);
    const LaidNode& own = laid.layout.nodes[place];
    const float x = own.x + kNodeWidth / 2.0f - camera.x;
    const float y = own.y + kNodeHeight / 2.0f - camera.y;
    CHECK(node_at(frame, x, y) == place);
    CHECK(x > 0.0f);
    CHECK(x < kView.width);
    CHECK(y > 0.0f);
    CHECK(y < kView.height);
  }
}

TEST_CASE("graph_frame: a camera at a node shows no empty space where there is more to see") {
  const Laid laid;
  const GraphLayout& layout = laid.layout;
  for (const ViewSize view : {kView, ViewSize{400.0f, 300.0f}, ViewSize{8000.0f, 400.0f}}) {
    for (std::uint32_t place = 0; place < laid.picture.nodes.size(); place += 7) {
      const GraphCamera camera = camera_at(layout, place, view, 1.0f);
      const float left = -camera.x;  // beside the layout, in the view
      const float right = view.width - (layout.width - camera.x);
      const float margin = std::max(40.0f, (view.width - layout.width) / 2.0f + 1.0f);
      CHECK(left <= margin);
      CHECK(right <= margin);
    }
  }
}

TEST_CASE("graph_frame: all edges of the selected node are whole, other long ones stubs") {
  const Laid laid;
  GraphFrame frame;
  const std::uint32_t place = laid.picture.edges.front().to;
  const GraphCamera camera = camera_at(laid.layout, place, kView, 1.0f);
  frame_graph(laid.picture, laid.layout, camera, kView, place, frame);
  std::size_t own = 0;
  for (const PictureEdge& edge : laid.picture.edges) own += edge.from == place || edge.to == place;
  std::size_t drawn = 0;
  for (const FrameEdge& edge : frame.edges) {
    if (edge.from != place && edge.to != place) continue;
    CHECK(!edge.is_stub);
    ++drawn;
  }
  CHECK(drawn == own);
}

TEST_CASE("graph_frame: zooming keeps the point under the mouse") {
  const GraphCamera camera{.x = 100.0f, .y = 50.0f, .zoom = 0.5f};
  const GraphCamera nearer = zoomed(camera, 1.5f, 300.0f, 200.0f);
  CHECK(nearer.zoom == doctest::Approx(0.75));
  CHECK(nearer.x + 300.0f / nearer.zoom == doctest::Approx(camera.x + 300.0f / camera.zoom));
  CHECK(nearer.y + 200.0f / nearer.zoom == doctest::Approx(camera.y + 200.0f / camera.zoom));
  CHECK(zoomed(camera, 1e9f, 0.0f, 0.0f).zoom == kMostZoom);
}

TEST_CASE("graph_frame: by arrows every node is left, and right leads to the backward pass") {
  const Laid laid;
  const auto& nodes = laid.picture.nodes;
  const auto forward = std::ranges::find(nodes, Column::kForward, &PictureNode::column);
  std::uint32_t at = static_cast<std::uint32_t>(forward - nodes.begin());
  for (int i = 0; i < 10 && laid.layout.nodes[at].column == Column::kForward; ++i) {
    at = neighbour_of(laid.picture, laid.layout, at, Direction::kRight);
  }
  CHECK(laid.layout.nodes[at].column != Column::kForward);
  const std::uint32_t down = neighbour_of(laid.picture, laid.layout, at, Direction::kDown);
  CHECK((down == at || laid.layout.nodes[down].y > laid.layout.nodes[at].y));
}

TEST_CASE("graph_frame: arrows follow edges wherever one leads that way") {
  const Laid laid;
  const auto joined = [&](std::uint32_t a, std::uint32_t b) {
    return std::ranges::any_of(laid.picture.edges, [&](const PictureEdge& edge) {
      return (edge.from == a && edge.to == b) || (edge.from == b && edge.to == a);
    });
  };
  std::size_t along_edges = 0;
  for (std::uint32_t node = 0; node < laid.layout.nodes.size(); ++node) {
    const LaidNode& from = laid.layout.nodes[node];
    const std::uint32_t down = neighbour_of(laid.picture, laid.layout, node, Direction::kDown);
    const bool leads_down = std::ranges::any_of(laid.picture.edges, [&](const PictureEdge& edge) {
      const std::uint32_t other = edge.from == node ? edge.to : edge.to == node ? edge.from : node;
      return laid.layout.nodes[other].y > from.y + 1.0f;
    });
    if (!leads_down) continue;
    CHECK(joined(node, down));
    ++along_edges;
  }
  CHECK(along_edges > laid.layout.nodes.size() / 2);
}

}  // namespace
}  // namespace trainscope::gui
