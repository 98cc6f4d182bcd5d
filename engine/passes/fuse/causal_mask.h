// Constants that tell later tokens from those that a token may see. Scores are [batch, heads,
// queries, keys].
#pragma once

#include <optional>

#include "engine/ir/graph.h"

namespace trainscope {

// The largest number that the bias adds for later tokens, when it adds 0 for all others.
std::optional<double> causal_fill(const Value& bias, const Shape& scores);

// Whether a condition is `later` for later tokens, and the opposite for all others.
bool tells_later(const Value& condition, bool later, const Shape& scores);

}  // namespace trainscope
