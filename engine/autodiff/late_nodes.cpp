// Moves nodes to where gradients first need them.
#include "engine/autodiff/late_nodes.h"

#include <algorithm>

namespace trainscope {
namespace {

class LateNodes {
 public:
  LateNodes(const Graph& graph, std::span<const NodeId> model)
      : graph_(graph), waits_(graph.node_capacity(), false), old_(graph.node_capacity(), false) {
    for (NodeId id : model) {
      old_[index(id)] = true;
      waits_[index(id)] = graph.node(id).phase != Phase::kForward;
      if (!waits_[index(id)]) order_.push_back(id);
    }
  }

  std::vector<NodeId> run(std::span<const NodeId> model) {
    for (NodeId id : graph_.order()) {
      if (old_[index(id)]) continue;
      add_needed(id);
      order_.push_back(id);
    }
    for (NodeId id : model) {
      if (waits_[index(id)]) order_.push_back(id);
    }
    return std::move(order_);
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

  // What waits and the node needs, inputs first.
  void add_needed(NodeId reader) {
    std::vector<NodeId> open = {reader};
    while (!open.empty()) {
      const NodeId top = open.back();
      const std::size_t size = open.size();
      for (ValueId v : graph_.node(top).inputs) {
        const NodeId producer = v == kNoValue ? kNoNode : graph_.value(v).producer;
        if (producer != kNoNode && waits_[index(producer)]) open.push_back(producer);
      }
      if (open.size() > size) continue;
      open.pop_back();
      if (top == reader || !waits_[index(top)]) continue;
      waits_[index(top)] = false;
      order_.push_back(top);
    }
  }

  const Graph& graph_;
  std::vector<bool> waits_;  // by NodeId
  std::vector<bool> old_;    // by NodeId: of the model
  std::vector<NodeId> order_;
};

}  // namespace

std::vector<NodeId> with_late_nodes(const Graph& graph, std::span<const NodeId> model) {
  return LateNodes(graph, model).run(model);
}

}  // namespace trainscope
