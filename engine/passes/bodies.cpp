// Bodies are taken out of attributes, changed, and put back.
#include "engine/passes/bodies.h"

#include <memory>
#include <utility>
#include <variant>

namespace trainscope {

bool change_bodies(Graph& graph, const std::function<bool(Graph& body)>& change) {
  bool changed = false;
  for (NodeId id : graph.order()) {
    const Attributes attributes = std::as_const(graph).node(id).attributes;
    for (const auto& [name, attribute] : attributes.map()) {
      const auto* shared = std::get_if<SharedGraph>(&attribute);
      if (shared == nullptr) continue;
      Graph body = **shared;
      if (!change(body)) continue;
      body = body.compacted();
      body.notes = {};
      graph.node(id).attributes.set(name, std::make_shared<const Graph>(std::move(body)));
      changed = true;
    }
  }
  return changed;
}

}  // namespace trainscope
