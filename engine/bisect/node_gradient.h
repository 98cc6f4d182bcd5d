// One node alone: its gradient by its op's rule, and a directional difference of its outputs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/builder.h"
#include "engine/ir/graph.h"

namespace trainscope {

class NodeGradient {
 public:
  // `inputs` null: left out; of f64 where they are floats. `weights`: the gradient of each output;
  // null: none arrives.
  NodeGradient(const Node& node, const OpTable& ops, const Evaluate& evaluate,
               std::vector<SharedTensor> inputs, std::vector<SharedTensor> weights);

  // Whether input i takes part: a float, of an op with a gradient.
  bool is_wanted(std::size_t i) const { return wanted_[i]; }
  bool is_differentiable() const { return differentiable_; }
  // By input; null where it is not wanted, or no gradient flows there. Throws what the rule throws.
  std::vector<SharedTensor> by_rule() const;
  // d <y, w> in a direction of input i by central differences; none where those ahead and behind do
  // not agree: there is a kink.
  std::optional<double> by_difference(std::size_t i, const Tensor& direction) const;

 private:
  double weighted_sum(std::size_t i, const Tensor& input) const;
  Tensor moved(std::size_t i, const Tensor& direction, double step) const;

  const Node& node_;
  const OpTable& ops_;
  const OpDef& op_;
  const Evaluate& evaluate_;
  std::vector<SharedTensor> inputs_;
  std::vector<SharedTensor> weights_;
  std::vector<bool> wanted_;
  bool differentiable_ = false;
};

// Relative to the size of the difference.
inline constexpr double kDifferenceLimit = 1e-4;

}  // namespace trainscope
