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

// Why something that is nearly such a sum stays as it is, and the nodes that make its operand.
struct SumRefusal {
  std::string why = {};  // empty: it is none
  std::vector<NodeId> matched = {};
};

// Tries every node: `find(graph, places, node, refusal)` answers with what it found, of which
// `maker` is the node that is to add, or with nothing and perhaps the refusal of a near miss;
// `add_inside(rewriter, id, found)` puts the new node in the maker's place and returns it.
template <class Find, class AddInside>
bool sum_inside(Graph& graph, PassContext& context, Find find, AddInside add_inside) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const std::vector<NodeId> order = graph.order();
  Places places;
  for (NodeId id : order) places.emplace(id, static_cast<int>(places.size()));
  for (NodeId id : order) {
    if (graph.node(id).erased) continue;
    SumRefusal refusal;
    const auto found = find(graph, places, graph.node(id), refusal);
    if (!found) {
      if (!refusal.why.empty()) {
        context.near_miss(graph, id, refusal.matched, std::move(refusal.why));
      }
      continue;
    }
    const int place = places.at(found->maker);
    places.emplace(add_inside(rewriter, id, *found), place);
    context.count("additions saved");
  }
  return rewriter.changed();
}

}  // namespace trainscope
