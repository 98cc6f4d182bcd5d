// Tensor parallelism: what one of several devices holds of each value of a step.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/world/zero.h"

namespace trainscope {

// One pass over the step finds shards, or weights that must stay whole; then it starts again.
class ShardFinder {
 public:
  ShardFinder(const Graph& graph, std::int64_t devices);

  void run();

  const Shard& shard(ValueId v) const { return shards_[index(v)]; }
  // Partials that some reader needs the sum of, in order.
  std::vector<ValueId> reduced() const;
  // Whether this use works on the partial as it is.
  bool reads_partial(const Use& use) const;
  const std::vector<OptimizerNode>& optimizers() const { return optimizers_; }
  bool any() const;  // whether any weight is cut

 private:
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
  // Values that are cut together form groups: union and find.
  std::size_t find(std::size_t v);
  void join(ValueId a, ValueId b) { group_[find(index(a))] = find(index(b)); }

  void pass();
  // The gradient of a table of tokens is cut because the table is, not because its inputs are.
  void want_gradients();
  void visit(const Node& node);
  void sum_partials(const Node& node, std::vector<Shard>& inputs);
  // What was open is decided now. Without an answer the node works on whole values: where an input
  // is cut, the weights that cut it must not be.
  void settle(const Node& node, const std::vector<Shard>& inputs,
              const std::optional<std::vector<Shard>>& outputs);
  void update(const OptimizerNode& step);

  const Graph& graph_;
  std::int64_t devices_;
  std::vector<NodeId> order_;
  std::vector<OptimizerNode> optimizers_;
  std::unordered_map<NodeId, std::size_t> optimizer_at_;
  std::unordered_map<ValueId, ValueId> wanted_of_;  // parameter by (a partial of) its gradient
  std::unordered_set<ValueId> barred_;              // weights that stay whole
  // Of one pass.
  std::vector<Shard> shards_;  // by ValueId
  std::unordered_set<ValueId> reduced_;
  std::vector<ValueId> weights_;                    // that are cut
  std::vector<std::size_t> group_;                  // by ValueId: values that are cut together
  std::vector<ValueId> failed_;                     // values that a node needs whole
  std::unordered_set<std::uint64_t> partial_uses_;  // uses of partials as they are
};

}  // namespace trainscope
