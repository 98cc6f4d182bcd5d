// What passes share that let the node which makes one operand of a sum add the other operand.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"

namespace trainscope {

// Nodes by their place in the order of execution.
using Places = std::unordered_map<NodeId, int>;

// Tries every node: `find(graph, places, node, why)` answers with what it found, of which `maker`
// is the node that is to add, or with nothing and perhaps the reason of a near miss;
// `add_inside(rewriter, id, found)` puts the new node in the maker's place and returns it.
template <class Find, class AddInside>
bool sum_inside(Graph& graph, PassContext& context, Find find, AddInside add_inside) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const std::vector<NodeId> order = graph.order();
  Places places;
  for (NodeId id : order) places.emplace(id, static_cast<int>(places.size()));
  for (NodeId id : order) {
    if (graph.node(id).erased) continue;
    std::string why;
    const auto found = find(graph, places, graph.node(id), why);
    if (!found) {
      if (!why.empty()) context.near_miss(graph.node(id), std::move(why));
      continue;
    }
    const int place = places.at(found->maker);
    places.emplace(add_inside(rewriter, id, *found), place);
    context.count("additions saved");
  }
  return rewriter.changed();
}

}  // namespace trainscope
