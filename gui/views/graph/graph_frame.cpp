// Bands are sorted from top to bottom and nodes within a column by rows: what is visible is found
// by bisection.
#include "gui/views/graph/graph_frame.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace trainscope::gui {
namespace {

constexpr float kBoxesFrom = 0.16f;
constexpr float kTextsFrom = 0.5f;
constexpr float kMargin = 16.0f;
constexpr float kLeastReadable = 0.64f;
constexpr float kNamesFrom = 0.8f;  // most names of ops are whole
constexpr float kFirstZoom = 1.0f;

LayoutRect on_screen(const GraphCamera& camera, const LayoutRect& rect) {
  return {.x = (rect.x - camera.x) * camera.zoom,
          .y = (rect.y - camera.y) * camera.zoom,
          .width = rect.width * camera.zoom,
          .height = rect.height * camera.zoom};
}

LayoutRect box_of(const LaidNode& node) {
  return {.x = node.x, .y = node.y, .width = kNodeWidth, .height = kNodeHeight};
}

class Framer {
 public:
  Framer(const GraphPicture& picture, const GraphLayout& layout, const GraphCamera& camera,
         ViewSize view, GraphFrame& frame)
      : picture_(picture), layout_(layout), camera_(camera), frame_(frame) {
    area_ = {.x = camera.x,
             .y = camera.y,
             .width = view.width / camera.zoom,
             .height = view.height / camera.zoom};
  }

  void frame(std::uint32_t selected) {
    frame_.detail = detail_at(camera_.zoom);
    frame_.blocks.clear();
    frame_.nodes.clear();
    frame_.edges.clear();
    frame_.left_out = 0;
    const auto first = std::ranges::partition_point(
        layout_.blocks, [this](const LaidBlock& block) { return block.rect.bottom() < area_.y; });
    for (auto block = first; block != layout_.blocks.end() && block->rect.y < area_.bottom();
         ++block) {
      add_block(*block);
    }
    if (frame_.detail != GraphDetail::kMarks) {
      for (const FrameNode& node : frame_.nodes) add_inputs(node.place, selected);
    }
    if (selected < picture_.nodes.size()) add_selected(selected);
  }

 private:
  void add_block(const LaidBlock& block) {
    frame_.blocks.push_back({.block = static_cast<std::uint32_t>(&block - layout_.blocks.data()),
                             .rect = on_screen(camera_, block.rect)});
    if (block.collapsed) return;
    std::size_t begin = 0;
    for (std::size_t column = 0; column < kColumns; ++column) {
      const auto count = static_cast<std::size_t>(block.nodes[column]);
      add_column(std::span(block.places).subspan(begin, count));
      begin += count;
    }
  }

  // Places by row.
  void add_column(std::span<const std::uint32_t> places) {
    const auto first = std::ranges::partition_point(places, [this](std::uint32_t place) {
      return layout_.nodes[place].y + kNodeHeight < area_.y;
    });
    for (auto place = first; place != places.end(); ++place) {
      const LaidNode& node = layout_.nodes[*place];
      if (node.y > area_.bottom()) return;
      if (node.x > area_.right() || node.x + kNodeWidth < area_.x) continue;
      frame_.nodes.push_back({.place = *place, .rect = on_screen(camera_, box_of(node))});
    }
  }

  EdgeKind kind_of(std::uint32_t from, std::uint32_t to) const {
    const Column a = layout_.nodes[from].column;
    const Column b = layout_.nodes[to].column;
    if (b == Column::kUpdate && a != b) return EdgeKind::kUpdate;
    return a == b ? EdgeKind::kData : EdgeKind::kSaved;
  }

  void add_edge(std::uint32_t from, std::uint32_t to, EdgeKind kind, bool whole) {
    if (frame_.edges.size() >= kMostFrameEdges) {
      ++frame_.left_out;
      return;
    }
    const LayoutRect a = on_screen(camera_, box_of(layout_.nodes[from]));
    const LayoutRect b = on_screen(camera_, box_of(layout_.nodes[to]));
    FrameEdge edge{.from = from, .to = to, .kind = kind};
    edge.is_stub = !whole && std::abs(layout_.nodes[from].y - layout_.nodes[to].y) > kLongestEdge;
    if (kind == EdgeKind::kData) {  // from the side that faces the other
      const bool down = a.y < b.y;
      edge.from_x = a.x + a.width / 2.0f;
      edge.to_x = b.x + b.width / 2.0f;
      edge.from_y = down ? a.bottom() : a.y;
      edge.to_y = down ? b.y : b.bottom();
    } else {
      const bool right = a.x < b.x;
      edge.from_x = right ? a.right() : a.x;
      edge.to_x = right ? b.x : b.right();
      edge.from_y = a.y + a.height / 2.0f;
      edge.to_y = b.y + b.height / 2.0f;
    }
    frame_.edges.push_back(edge);
  }

  void add_inputs(std::uint32_t place, std::uint32_t selected) {
    for (const PictureEdge& edge : picture_.inputs_of(place)) {
      if (edge.from == selected || edge.to == selected) continue;
      if (layout_.is_hidden(edge.from)) continue;
      add_edge(edge.from, edge.to, kind_of(edge.from, edge.to), false);
    }
    const std::uint32_t repeated = picture_.nodes[place].repeats;
    if (repeated != kNoPlace && place != selected && !layout_.is_hidden(repeated)) {
      add_edge(repeated, place, EdgeKind::kRepeats, false);
    }
  }

  void add_selected(std::uint32_t selected) {
    for (const PictureEdge& edge : picture_.edges) {
      if (edge.from != selected && edge.to != selected) continue;
      add_edge(edge.from, edge.to, kind_of(edge.from, edge.to), true);
    }
    const std::uint32_t repeated = picture_.nodes[selected].repeats;
    if (repeated != kNoPlace) add_edge(repeated, selected, EdgeKind::kRepeats, true);
  }

  const GraphPicture& picture_;
  const GraphLayout& layout_;
  const GraphCamera& camera_;
  GraphFrame& frame_;
  LayoutRect area_;  // of the layout, that is visible
};

}  // namespace

GraphCamera fit_camera(const GraphLayout& layout, ViewSize view) {
  const float across = (view.width - 2.0f * kMargin) / std::max(1.0f, layout.width);
  const float down = (view.height - 2.0f * kMargin) / std::max(1.0f, layout.height);
  GraphCamera camera{.zoom = std::clamp(std::min(across, down), kLeastZoom, 1.0f)};
  camera.x = layout.width / 2.0f - view.width / camera.zoom / 2.0f;
  camera.y = layout.height / 2.0f - view.height / camera.zoom / 2.0f;
  return camera;
}

GraphCamera first_camera(const GraphLayout& layout, ViewSize view) {
  const GraphCamera whole = fit_camera(layout, view);
  if (whole.zoom >= kNamesFrom) return whole;
  const float across = (view.width - 2.0f * kMargin) / std::max(1.0f, layout.width);
  GraphCamera camera{.zoom = std::clamp(across, kLeastReadable, kFirstZoom)};
  const float centered = layout.width / 2.0f - view.width / camera.zoom / 2.0f;
  // What is wider than the view begins at its left.
  camera.x = layout.width * camera.zoom > view.width ? -kMargin / camera.zoom : centered;
  camera.y = -kMargin / camera.zoom;
  return camera;
}

namespace {

// Where a view of `seen` begins that has `middle` in its middle, as far as that shows no more than
// a margin beside the layout's `length`; all of it is in the middle itself.
float begin_around(float middle, float seen, float length, float margin) {
  if (length + 2.0f * margin <= seen) return (length - seen) / 2.0f;
  return std::clamp(middle - seen / 2.0f, -margin, length + margin - seen);
}

}  // namespace

GraphCamera camera_at(const GraphLayout& layout, std::uint32_t node, ViewSize view, float zoom) {
  const LaidNode& laid = layout.nodes[node];
  GraphCamera camera{.zoom = std::clamp(zoom, kTextsFrom, kMostZoom)};
  const float margin = kMargin / camera.zoom;
  camera.x =
      begin_around(laid.x + kNodeWidth / 2.0f, view.width / camera.zoom, layout.width, margin);
  camera.y =
      begin_around(laid.y + kNodeHeight / 2.0f, view.height / camera.zoom, layout.height, margin);
  return camera;
}

GraphCamera zoomed(const GraphCamera& camera, float factor, float x, float y) {
  GraphCamera result = camera;
  result.zoom = std::clamp(camera.zoom * factor, kLeastZoom, kMostZoom);
  result.x = camera.x + x / camera.zoom - x / result.zoom;
  result.y = camera.y + y / camera.zoom - y / result.zoom;
  return result;
}

GraphDetail detail_at(float zoom) {
  if (zoom < kBoxesFrom) return GraphDetail::kMarks;
  return zoom < kTextsFrom ? GraphDetail::kBoxes : GraphDetail::kTexts;
}

void frame_graph(const GraphPicture& picture, const GraphLayout& layout, const GraphCamera& camera,
                 ViewSize view, std::uint32_t selected, GraphFrame& frame) {
  Framer(picture, layout, camera, view, frame).frame(selected);
}

std::uint32_t node_at(const GraphFrame& frame, float x, float y) {
  for (const FrameNode& node : frame.nodes) {
    const bool inside =
        x >= node.rect.x && x < node.rect.right() && y >= node.rect.y && y < node.rect.bottom();
    if (inside) return node.place;
  }
  return kNoPlace;
}

namespace {

// How near a node is that lies that way, else infinity; what lies aside counts three times.
float distance_to(const LaidNode& from, const LaidNode& to, Direction direction) {
  const float right = to.x - from.x;
  const float down = to.y - from.y;
  const bool across = direction == Direction::kLeft || direction == Direction::kRight;
  const bool forwards = direction == Direction::kRight || direction == Direction::kDown;
  const float along = (across ? right : down) * (forwards ? 1.0f : -1.0f);
  const float aside = std::abs(across ? down : right);
  const bool that_way = along > 1.0f;
  return that_way ? along + 3.0f * aside : std::numeric_limits<float>::infinity();
}

}  // namespace

std::uint32_t neighbour_of(const GraphPicture& picture, const GraphLayout& layout,
                           std::uint32_t node, Direction direction) {
  if (node >= layout.nodes.size()) return node;
  std::uint32_t nearest = node;
  float least = std::numeric_limits<float>::infinity();
  const auto consider = [&](std::uint32_t other) {
    if (other >= layout.nodes.size() || layout.is_hidden(other)) return;
    const float distance = distance_to(layout.nodes[node], layout.nodes[other], direction);
    if (distance < least) {
      least = distance;
      nearest = other;
    }
  };
  for (const PictureEdge& edge : picture.edges) {
    if (edge.from == node) consider(edge.to);
    if (edge.to == node) consider(edge.from);
  }
  if (nearest != node) return nearest;
  for (std::uint32_t i = 0; i < layout.nodes.size(); ++i) consider(i);
  return nearest;
}

}  // namespace trainscope::gui
