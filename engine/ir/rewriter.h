// Rewriter: the only way a pass mutates a graph. Keeps uses, order and provenance right.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/graph.h"

namespace trainscope {

class Rewriter {
 public:
  Rewriter(Graph& graph, const OpTable& ops, std::string_view pass, const Evaluate* evaluate);

  // A builder whose nodes go before `node`, in its phase and with its provenance.
  Builder& before(NodeId node);
  // A builder whose nodes go to the end, in the given phase.
  Builder& at_end(Phase phase);

  // A graph output keeps its name, so only the result of a node that is not an output itself may
  // take its place; anything else may always be replaced.
  bool can_replace(ValueId old_value, ValueId new_value) const;
  // Every reader of `old_value` (nodes, outputs, updates, gradients, loss) reads `new_value`, whose
  // node takes over the sources of the old one's; an output's name moves along.
  void replace(ValueId old_value, ValueId new_value);
  // Replaces all outputs of the node, then erases it.
  void replace_node(NodeId node, const std::vector<ValueId>& new_outputs);
  void set_input(NodeId node, int input, ValueId value);
  void erase(NodeId node);          // nobody may read its outputs
  void erase_value(ValueId value);  // an unused input, constant or state
  // Readers of a node output whose elements are known read a new constant instead.
  void make_constant(ValueId value);

  bool changed() const { return changed_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const OpTable& ops() const { return builder_.ops(); }

 private:
  void merge_sources(NodeId into, NodeId from);

  Graph& graph_;
  Builder builder_;
  std::string pass_;
  bool changed_ = false;
  // Sources of the nodes that took over others': one may take over 100,000.
  std::unordered_map<NodeId, std::unordered_set<std::string>> known_sources_;
};

}  // namespace trainscope
