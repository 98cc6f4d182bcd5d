// Rewriter: the only way a pass mutates a graph. Keeps uses, order and provenance right, and notes
// what became of what for the stage's rewrite log (engine/ir/rewrite_log.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/graph.h"

namespace trainscope {

class Rewriter {
 public:
  Rewriter(Graph& graph, const OpTable& ops, std::string_view pass, const Evaluate* evaluate);

  // Which of the things that the pass does the changes from here on belong to, and why it does it,
  // for the log. Without one: the pass, and its doc.
  void set_rule(std::string_view name, std::string_view reason);

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
  // Nobody may read the node's outputs any more. The log knows where their readers went; of a node
  // whose outputs nothing has replaced it says that no reason was recorded.
  void erase(NodeId node);
  void erase_value(ValueId value);  // an unused input, constant or state; the log as above
  // ... because nobody reads it.
  void erase_dead(NodeId node);
  void erase_dead(ValueId value);
  // ... because the node that makes `result` does its work.
  void erase_into(NodeId node, ValueId result);
  // Readers of a node output whose elements are known read a new constant instead.
  void make_constant(ValueId value);
  // The same for all outputs of the node that are read; it is erased.
  void fold(NodeId node);
  // Node `made` is new and was made of `parent`, not of the node that its builder stood before.
  void made_of(NodeId made, NodeId parent);
  // ... and computes once more what `original` computes.
  void copies(NodeId made, NodeId original);

  bool changed() const { return changed_; }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const OpTable& ops() const { return builder_.ops(); }

 private:
  void merge_sources(NodeId into, NodeId from);
  void note(NoteKind kind, Serial of, Serial other);

  Graph& graph_;
  Builder builder_;
  std::string pass_;
  std::uint16_t rule_ = 0;
  bool changed_ = false;
  // Sources of the nodes that took over others': one may take over 100,000.
  std::unordered_map<NodeId, std::unordered_set<std::string>> known_sources_;
};

}  // namespace trainscope
