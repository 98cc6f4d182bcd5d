// Masks of later tokens, element by element.
#include "engine/passes/fuse/causal_mask.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainscope {
namespace {

// Whether it is one matrix, of as many queries and keys as the scores have, and of each the same.
bool is_square_of(const Shape& s, const Shape& scores) {
  const std::int64_t n = scores[3];
  return s.rank >= 2 && s[s.rank - 2] == n && s[s.rank - 1] == n && scores[2] == n &&
         s.elements() == n * n;
}

}  // namespace

std::optional<double> causal_fill(const Value& bias, const Shape& scores) {
  const bool known = bias.kind == ValueKind::kConstant && bias.data && is_float(bias.type.dtype);
  if (!known || !is_square_of(bias.type.shape, scores)) return std::nullopt;
  const Tensor numbers = convert(*bias.data, DType::kF64);
  const auto x = numbers.values<double>();
  const auto n = static_cast<std::size_t>(scores[3]);
  double fill = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const double added = x[i * n + j];
      if (std::isnan(added) || (j <= i && added != 0.0)) return std::nullopt;
      if (j > i) fill = std::max(fill, added);
    }
  }
  return fill;
}

bool tells_later(const Value& condition, bool later, const Shape& scores) {
  if (!condition.data || !is_square_of(condition.type.shape, scores)) return false;
  const auto x = condition.data->values<bool>();
  const auto n = static_cast<std::size_t>(scores[3]);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (x[i * n + j] != (later == (j > i))) return false;
    }
  }
  return true;
}

}  // namespace trainscope
