// Walks the graph once in the order of execution.
#include "gui/views/graph/graph_picture.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "engine/ir/op_def.h"

namespace trainscope::gui {
namespace {

Column column_of(const Node& node) {
  if (node.phase == Phase::kUpdate) return Column::kUpdate;
  const bool repeats = node.provenance.pass == kRematerializedBy;
  return node.phase == Phase::kBackward || repeats ? Column::kBackward : Column::kForward;
}

PictureNode picture_node(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::vector<std::string>& sources = node.provenance.sources.list();
  return {.serial = static_cast<std::uint32_t>(node.serial),
          .id = id,
          .name = node.name,
          .op = node.op->name,
          .op_class = node.op->op_class,
          .source = sources.empty() ? std::string_view() : std::string_view(sources.front()),
          .pass = node.provenance.pass,
          .phase = node.phase,
          .column = column_of(node),
          .backward_of = static_cast<std::uint32_t>(node.provenance.backward_of),
          .rematerialized_of = static_cast<std::uint32_t>(node.provenance.rematerialized_of)};
}

// A stage says which node is computed once more; an older one does not, but it has the op and the
// source of one that came before it.
void find_repeated(GraphPicture& picture) {
  std::map<std::pair<std::string_view, std::string_view>, std::uint32_t> first;
  for (std::uint32_t i = 0; i < picture.nodes.size(); ++i) {
    PictureNode& node = picture.nodes[i];
    const auto key = std::pair(node.op, node.source);
    const bool repeats = node.pass == kRematerializedBy;
    if (!repeats) {
      first.emplace(key, i);
    } else if (node.rematerialized_of != 0) {
      node.repeats = picture.find(node.rematerialized_of);
    } else if (const auto found = first.find(key); found != first.end()) {
      node.repeats = found->second;
    }
  }
}

}  // namespace

GraphPicture picture_of(const Graph& given) {
  GraphPicture picture{.graph = std::make_shared<const Graph>(given)};
  const Graph& graph = *picture.graph;
  const std::vector<NodeId> order = graph.order();
  picture.nodes.reserve(order.size());
  picture.edge_ends.reserve(order.size());
  picture.place_of.reserve(order.size());
  std::vector<std::uint32_t> place(graph.node_capacity(), kNoPlace);
  for (const NodeId id : order) {
    const auto at = static_cast<std::uint32_t>(picture.nodes.size());
    place[static_cast<std::size_t>(id)] = at;
    picture.nodes.push_back(picture_node(graph, id));
    picture.place_of.emplace(picture.nodes.back().serial, at);
    for (const ValueId input : graph.node(id).inputs) {
      if (input == kNoValue) continue;
      const Value& value = graph.value(input);
      if (value.producer == kNoNode) continue;
      picture.edges.push_back({.from = place[static_cast<std::size_t>(value.producer)],
                               .to = at,
                               .value = static_cast<std::uint32_t>(value.serial)});
    }
    picture.edge_ends.push_back(static_cast<std::uint32_t>(picture.edges.size()));
  }
  find_repeated(picture);
  return picture;
}

}  // namespace trainscope::gui
