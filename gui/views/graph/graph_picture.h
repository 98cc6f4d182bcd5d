// A stage's graph as plain lists: what the layout places and the panel draws.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/core/op_class.h"
#include "engine/ir/graph.h"

namespace trainscope::gui {

// Where a node stands: what computes again stands with the gradients that need it.
enum class Column : std::uint8_t { kForward, kBackward, kUpdate };
inline constexpr std::size_t kColumns = 3;

inline constexpr std::uint32_t kNoPlace = 0xffffffff;

struct PictureNode {
  std::uint32_t serial = 0;
  NodeId id = kNoNode;
  std::string_view name = {};
  std::string_view op = {};
  OpClass op_class = OpClass::kOther;
  std::string_view source = {};  // its primary ONNX node; empty: none
  std::string_view pass = {};    // that made it
  Phase phase = Phase::kForward;
  Column column = Column::kForward;
  std::uint32_t backward_of = 0;  // serial of the node of whose gradient it is a part; 0: none
  std::uint32_t rematerialized_of = 0;  // serial of the node that computes the same first; 0: none
  std::uint32_t repeats = kNoPlace;     // the place of that node
};

struct PictureEdge {
  std::uint32_t from = 0;  // places in `nodes`
  std::uint32_t to = 0;
  std::uint32_t value = 0;  // serial
};

struct GraphPicture {
  std::shared_ptr<const Graph> graph = {};    // a copy, which shares its nodes: texts lie in it
  std::vector<PictureNode> nodes = {};        // in the order of execution
  std::vector<PictureEdge> edges = {};        // by `to`, ascending; one for each input
  std::vector<std::uint32_t> edge_ends = {};  // of each node's inputs in `edges`
  std::unordered_map<std::uint32_t, std::uint32_t> place_of = {};  // by serial

  std::span<const PictureEdge> inputs_of(std::uint32_t node) const {
    const std::uint32_t begin = node == 0 ? 0 : edge_ends[node - 1];
    return std::span(edges).subspan(begin, edge_ends[node] - begin);
  }
  std::uint32_t find(std::uint32_t serial) const {
    const auto found = place_of.find(serial);
    return found == place_of.end() ? kNoPlace : found->second;
  }
};

GraphPicture picture_of(const Graph& graph);

}  // namespace trainscope::gui
