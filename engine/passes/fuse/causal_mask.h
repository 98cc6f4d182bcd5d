// Constants that tell later tokens from those that a token may see. Scores are [batch, heads,
// queries, keys].
#pragma once

#include <optional>
#include <unordered_map>

#include "engine/ir/builder.h"

namespace trainscope {

// Of the masks of one graph. Those of more than 256 tokens are larger than what Builder computes
// and keeps: up to 4096 tokens they are computed here, each mask once, to be looked at and
// forgotten. Longer ones are not known, and stay biases.
class CausalMasks {
 public:
  CausalMasks(const Graph& graph, const Evaluate* evaluate) : graph_(graph), evaluate_(evaluate) {}

  // The largest number that the bias adds for later tokens, when it adds 0 for all others.
  std::optional<double> fill(ValueId bias, const Shape& scores);
  // Whether a condition is `later` for later tokens, and the opposite for all others.
  bool tells_later(ValueId condition, bool later, const Shape& scores);

 private:
  enum class Truth { kNeither, kOfLater, kOfOthers };  // where a condition is true

  SharedTensor known(ValueId v) const;

  const Graph& graph_;
  const Evaluate* evaluate_;  // may be null
  std::unordered_map<ValueId, std::optional<double>> fills_;
  std::unordered_map<ValueId, Truth> truths_;
};

}  // namespace trainscope
