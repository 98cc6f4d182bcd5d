// Where each node of a graph stands. A block is a band: its forward nodes flow down at the left,
// its backward nodes up in the middle beside them, its updates down at the right. Bands stand below
// each other in the order of the forward pass, so that what the backward pass reads lies beside it.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gui/views/graph/graph_blocks.h"
#include "gui/views/graph/graph_picture.h"

namespace trainscope::gui {

// Units of the layout; at a zoom of 1 one is a logical pixel.
inline constexpr float kNodeWidth = 146.0f;
inline constexpr float kNodeHeight = 22.0f;
inline constexpr float kLanePitch = 156.0f;
inline constexpr float kRowPitch = 36.0f;
inline constexpr float kBlockHeader = 26.0f;
inline constexpr float kBlockGap = 22.0f;
inline constexpr float kColumnGap = 48.0f;
inline constexpr float kBlockPadding = 16.0f;  // left and right of all columns
inline constexpr int kMostLanes = 6;           // nodes beside each other; more take further rows

struct LayoutRect {
  float x = 0.0f;
  float y = 0.0f;
  float width = 0.0f;
  float height = 0.0f;

  float right() const { return x + width; }
  float bottom() const { return y + height; }
};

struct LaidNode {
  std::uint32_t block = 0;
  Column column = Column::kForward;
  std::int32_t row = 0;   // within the column of its block, from the top
  std::int32_t lane = 0;  // within the row, from the left
  float x = 0.0f;         // of its left upper corner
  float y = 0.0f;
};

struct LaidBlock {
  std::string name = {};
  LayoutRect rect = {};
  bool collapsed = false;
  std::array<std::int32_t, kColumns> rows = {};
  std::array<std::int32_t, kColumns> nodes = {};
  std::vector<std::uint32_t> places = {};  // of its nodes: by column, row and lane
};

struct GraphLayout {
  std::vector<LaidNode> nodes = {};    // by place in the picture
  std::vector<LaidBlock> blocks = {};  // from top to bottom
  std::array<float, kColumns> column_x = {};
  std::array<float, kColumns> column_width = {};
  float width = 0.0f;
  float height = 0.0f;

  bool is_hidden(std::uint32_t node) const { return blocks[nodes[node].block].collapsed; }
};

// What a layout leaves for that of another stage of the same compilation: nodes stay in their block
// and keep their place beside each other.
struct LayoutMemory {
  struct Place {
    std::int32_t row = 0;  // from where its column begins to flow
    float x = 0.0f;        // in its column
  };
  BlockMemory blocks = {};
  std::unordered_map<std::uint32_t, Place> places = {};  // by serial
  std::unordered_map<std::string, double> block_order = {};
};

using CollapsedBlocks = std::set<std::string>;

// Adds what it has decided to the memory. Time is linear in nodes and edges but for sorting.
GraphLayout layout_graph(const GraphPicture& picture, LayoutMemory& memory,
                         const CollapsedBlocks& collapsed = {});

}  // namespace trainscope::gui
