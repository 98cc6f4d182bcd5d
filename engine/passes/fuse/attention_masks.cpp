// What is added to the scores of an attention, or takes their place: biases and causal masks.
#include <fmt/format.h>

#include <cmath>
#include <unordered_set>
#include <utility>

#include "engine/core/text.h"
#include "engine/passes/fuse/attention_search.h"

namespace trainscope {
namespace {

constexpr double kMasked = -1e9;  // what is added to scores at most, so that no weight is left
constexpr int kMostVisits = 64;   // of values behind an operand of a sum

}  // namespace

// The operand of the sum that is scores; the other one is a bias.
ValueId AttentionSearch::without_bias(NodeId add) {
  const Shape& whole = shape(match_.output(add));
  const auto is_scores = [&](std::size_t i) {
    return comes_from_matmul(match_.input(add, i), whole);
  };
  const std::size_t scores = is_scores(0) ? 0 : 1;
  if (!is_scores(scores)) {
    give_up("neither operand of the sum is made by a matmul");
    return kNoValue;
  }
  const ValueId bias = match_.input(add, 1 - scores);
  std::string why = why_gradient(bias, "bias");
  if (const std::optional<double> fill = masks_.fill(bias, whole);
      why.empty() && fill && leaves_no_weight(*fill)) {
    add_causal({.fill = *fill, .scale = found_.scale, .bias = bias});
  } else if (found_.scale != 1.0) {
    give_up("the scores are scaled after a bias");
    return kNoValue;
  } else if (!why.empty()) {
    give_up(std::move(why));
    return kNoValue;
  } else {
    found_.biases.push_back(bias);
  }
  return match_.input(add, scores);
}

// Whether a matmul lies behind v, through sums, masks and factors of this shape.
bool AttentionSearch::comes_from_matmul(ValueId v, const Shape& whole) const {
  std::vector<ValueId> open{v};
  for (int step = 0; step < kMostVisits && !open.empty(); ++step) {
    const ValueId next = open.back();
    const NodeId id = match_.value(next).producer;
    open.pop_back();
    if (id == kNoNode || shape(next) != whole || match_.only_reader(next) == kNoNode) continue;
    if (matmul(id)) return true;
    for (const std::string_view op : {"Add", "Mul", "Div", "Where"}) {
      if (!match_.is_op(id, op)) continue;
      const std::vector<ValueId>& inputs = match_.graph().node(id).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
  }
  return false;
}

// Where(later, -inf, scores) or Where(seen, scores, -inf)
ValueId AttentionSearch::without_mask(NodeId where) {
  for (std::size_t masked : {std::size_t{1}, std::size_t{2}}) {
    const std::optional<double> fill = match_.number(match_.input(where, masked));
    if (!fill || !leaves_no_weight(*fill)) continue;
    const ValueId scores = match_.input(where, 3 - masked);
    const bool whole = shape(scores) == shape(match_.output(where));
    const ValueId condition = match_.input(where, 0);
    if (!whole || !masks_.tells_later(condition, masked == 1, shape(scores))) break;
    add_causal({.fill = *fill, .scale = found_.scale});
    return scores;
  }
  std::string why = match_.why_no_number(where);
  if (why.empty()) why = why_gradient(match_.input(where, 0), "mask");
  give_up(why.empty() ? "the mask is not that of a causal model" : why);
  return kNoValue;
}

// Whether nothing is left of a score that is replaced by the number, or has it added to it.
bool AttentionSearch::leaves_no_weight(double fill) const { return fill * found_.scale <= kMasked; }

// Beside a bias, which may be as low, only -inf leaves no weight to later tokens.
void AttentionSearch::add_causal(const CausalMask& mask) {
  if (std::isinf(mask.fill)) {
    found_.causal = true;
  } else {
    finite_masks_.push_back(mask);
  }
}

bool AttentionSearch::settle_masks() {
  if (found_.biases.empty()) {
    found_.causal = found_.causal || !finite_masks_.empty();
    return true;
  }
  for (const CausalMask& mask : finite_masks_) {
    if (mask.bias == kNoValue || mask.scale != 1.0) {
      give_up(fmt::format("the causal mask is {} beside a bias; only -inf leaves no weight there",
                          mask.fill));
      return false;
    }
    found_.biases.push_back(mask.bias);
  }
  return true;
}

// Why `of`, a bias or a mask, depends on what has a gradient; empty: it does not.
std::string AttentionSearch::why_gradient(ValueId of, std::string_view what) const {
  std::unordered_set<ValueId> seen{of};
  std::vector<ValueId> open{of};
  while (!open.empty()) {
    const ValueId v = open.back();
    const Value& value = match_.value(v);
    open.pop_back();
    if (match_.is_gradient_wanted(v)) {
      return fmt::format("the gradient of '{}' is asked for", printable(value.name));
    }
    if (value.kind == ValueKind::kParameter) {
      return fmt::format("the {} '{}' is trained", what, printable(match_.value(of).name));
    }
    if (value.producer == kNoNode) continue;
    for (ValueId input : match_.graph().node(value.producer).inputs) {
      if (input != kNoValue && seen.insert(input).second) open.push_back(input);
    }
  }
  return {};
}

}  // namespace trainscope
