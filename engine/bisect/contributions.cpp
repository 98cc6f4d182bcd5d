// Projections of the error onto each part.
#include "engine/bisect/contributions.h"

#include <fmt/format.h>

#include <cmath>

namespace trainscope {

std::optional<Explanation> explained_by(const Coordinates& wrong,
                                        std::span<const Coordinates> parts) {
  std::optional<Explanation> best;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double square = inner_product(parts[i], parts[i]);
    if (square == 0.0) continue;
    const double factor = inner_product(wrong, parts[i]) / square;
    const double left = norm_of(sum_of(wrong, -factor, parts[i]));
    if (!best || left < best->left) best = {.part = i, .factor = factor, .left = left};
  }
  return best;
}

std::string factor_text(double factor) {
  return std::abs(factor + 1.0) < kLeft ? "of the other sign"
                                        : fmt::format("{:.7g} times what it must be", factor);
}

ContributionFault contribution_fault(const NamedNode& reader, double times) {
  const std::string of = fmt::format("the contribution of {} '{}'", reader.op, reader.name);
  if (std::abs(times) < kLeft) return {.kind = FaultKind::kGraph, .cause = of + " is missing"};
  if (std::abs(times - 2.0) < kLeft) {
    return {.kind = FaultKind::kGraph, .cause = of + " is counted twice"};
  }
  return {.kind = FaultKind::kOp, .cause = fmt::format("{} is {}", of, factor_text(times))};
}

}  // namespace trainscope
