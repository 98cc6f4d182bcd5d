// What of a layout is to be drawn in a rectangle of the screen, at the detail that its zoom allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gui/views/graph/graph_layout.h"

namespace trainscope::gui {

// Where the layout is looked at from: its point (x, y) is at the left upper corner of the view.
struct GraphCamera {
  float x = 0.0f;
  float y = 0.0f;
  float zoom = 1.0f;

  bool operator==(const GraphCamera&) const = default;
};
inline constexpr float kLeastZoom = 0.005f;
inline constexpr float kMostZoom = 3.0f;

struct ViewSize {
  float width = 0.0f;
  float height = 0.0f;
};

// All of the layout, in the middle, at a zoom of 1 at most.
GraphCamera fit_camera(const GraphLayout& layout, ViewSize view);
// All of it where the names of ops can be read then, else its beginning at its whole width.
GraphCamera first_camera(const GraphLayout& layout, ViewSize view);
// The node in the middle, or as near to it as the ends of the layout let it be; the zoom stays
// where its text can be read.
GraphCamera camera_at(const GraphLayout& layout, std::uint32_t node, ViewSize view, float zoom);
// Zooms by `factor` so that the point of the view (x, y) shows what it showed.
GraphCamera zoomed(const GraphCamera& camera, float factor, float x, float y);

// Marks alone, boxes with edges, boxes with texts.
enum class GraphDetail : std::uint8_t { kMarks, kBoxes, kTexts };
GraphDetail detail_at(float zoom);

struct FrameNode {
  std::uint32_t place = 0;
  LayoutRect rect = {};  // of the view, in logical pixels
};

struct FrameBlock {
  std::uint32_t block = 0;
  LayoutRect rect = {};
};

enum class EdgeKind : std::uint8_t {
  kData,     // within a column
  kSaved,    // a result of the forward pass that a gradient reads
  kUpdate,   // into the update
  kRepeats,  // not of data: from a node to that which computes it once more
};

struct FrameEdge {
  std::uint32_t from = 0;  // places of nodes
  std::uint32_t to = 0;
  EdgeKind kind = EdgeKind::kData;
  bool is_stub = false;  // only its ends are drawn: it is long and nobody has selected it
  float from_x = 0.0f;
  float from_y = 0.0f;
  float to_x = 0.0f;
  float to_y = 0.0f;
};

struct GraphFrame {
  GraphDetail detail = GraphDetail::kTexts;
  std::vector<FrameBlock> blocks = {};
  std::vector<FrameNode> nodes = {};
  std::vector<FrameEdge> edges = {};
  std::size_t left_out = 0;  // edges beyond kMostFrameEdges
};
inline constexpr std::size_t kMostFrameEdges = 6000;
inline constexpr float kLongestEdge = 12.0f * kRowPitch;

// `selected` is a place, or kNoPlace: its edges are whole. Reuses the frame's lists.
void frame_graph(const GraphPicture& picture, const GraphLayout& layout, const GraphCamera& camera,
                 ViewSize view, std::uint32_t selected, GraphFrame& frame);

// The node under a point of the view; kNoPlace: none.
std::uint32_t node_at(const GraphFrame& frame, float x, float y);

// The next node when an arrow key is pressed: the nearest that lies that way among those which an
// edge joins with `node`, else among all. `node` itself where there is none.
enum class Direction : std::uint8_t { kUp, kDown, kLeft, kRight };
std::uint32_t neighbour_of(const GraphPicture& picture, const GraphLayout& layout,
                           std::uint32_t node, Direction direction);

}  // namespace trainscope::gui
