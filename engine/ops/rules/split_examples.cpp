// Rules of ops whose examples (axis 0) do not depend on each other, and that are cut no other way.
#include <algorithm>

#include "engine/ops/rules/split_rules.h"

namespace trainscope {
namespace {

using Result = std::optional<std::vector<Shard>>;

constexpr Shard kExamples{.kind = Shard::Kind::kSplit, .axis = 0};

// Inputs of which each tile has its examples; all others are whole.
template <std::size_t kCut>
bool has_examples(const SplitArgs& a) {
  for (int i = 0; i < a.op.input_count(); ++i) {
    if (!a.op.has(i)) continue;
    Shard& shard = a.inputs[static_cast<std::size_t>(i)];
    if (shard.is_open()) shard = {};
    if (shard != (static_cast<std::size_t>(i) < kCut ? kExamples : Shard{})) return false;
  }
  return true;
}

// Results have the examples of the first kCut inputs.
template <std::size_t kCut>
Result by_examples(const SplitArgs& a) {
  if (!has_examples<kCut>(a)) return std::nullopt;
  return std::vector<Shard>(a.node.outputs.size(), kExamples);
}

// The result is a sum over examples.
template <std::size_t kCut>
Result sum_over_examples(const SplitArgs& a) {
  if (!has_examples<kCut>(a)) return std::nullopt;
  return std::vector<Shard>(a.node.outputs.size(), Shard::partial());
}

// Without the places of the maxima, which count examples too.
Result max_pool(const SplitArgs& a) {
  return a.node.outputs.size() == 1 ? by_examples<1>(a) : std::nullopt;
}

constexpr SplitRow kRows[] = {
    {.op = "Conv", .rule = by_examples<1>, .by_examples = true},
    {.op = "ConvGradInput",
     .rule = by_examples<1>,
     .by_examples = true,
     .shape_attribute = "input_shape"},
    {.op = "ConvGradWeight", .rule = sum_over_examples<2>, .by_examples = true},
    {.op = "MaxPool", .rule = max_pool, .by_examples = true},
    {.op = "MaxPoolGrad", .rule = by_examples<2>, .by_examples = true},
    {.op = "AveragePool", .rule = by_examples<1>, .by_examples = true},
    {.op = "AveragePoolGrad",
     .rule = by_examples<1>,
     .by_examples = true,
     .shape_attribute = "input_shape"},
};

}  // namespace

std::span<const SplitRow> rows_by_examples() { return kRows; }

}  // namespace trainscope
