// Activation functions as the nodes that PyTorch's exporter writes, so that one pattern fits both.
#include "engine/models/activation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "engine/core/error.h"

namespace trainscope {
namespace {

// 0.5 x (1 + erf(x / sqrt(2)))
ValueName gelu(PlainBuilder& b, const ValueName& x) {
  const ValueName scaled =
      b.node("Div", "gelu_scaled", {x, b.number(std::numbers::sqrt2_v<float>)});
  const ValueName erf = b.node("Erf", "gelu_erf", {scaled});
  const ValueName sum = b.node("Add", "gelu_sum", {erf, b.number(1.0F)});
  const ValueName product = b.node("Mul", "gelu_product", {x, sum});
  return b.node("Mul", "gelu", {product, b.number(0.5F)});
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
ValueName gelu_tanh(PlainBuilder& b, const ValueName& x) {
  const auto slope = static_cast<float>(std::sqrt(2.0 * std::numbers::inv_pi));
  const ValueName half = b.node("Mul", "gelu_half", {x, b.number(0.5F)});
  const ValueName cube = b.node("Pow", "gelu_cube", {x, b.number(3.0F)});
  const ValueName small = b.node("Mul", "gelu_small", {cube, b.number(0.044715F)});
  const ValueName inner = b.node("Add", "gelu_inner", {x, small});
  const ValueName scaled = b.node("Mul", "gelu_scaled", {inner, b.number(slope)});
  const ValueName tanh = b.node("Tanh", "gelu_tanh", {scaled});
  const ValueName sum = b.node("Add", "gelu_sum", {tanh, b.number(1.0F)});
  return b.node("Mul", "gelu", {half, sum});
}

ValueName relu(PlainBuilder& b, const ValueName& x) { return b.node("Relu", "relu", {x}); }
ValueName tanh(PlainBuilder& b, const ValueName& x) { return b.node("Tanh", "tanh", {x}); }

struct Row {
  std::string_view name;
  ValueName (*build)(PlainBuilder&, const ValueName&);
};
constexpr Row kRows[] = {{"gelu", gelu}, {"gelu_tanh", gelu_tanh}, {"relu", relu}, {"tanh", tanh}};

}  // namespace

std::vector<std::string_view> activation_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

ValueName activation(PlainBuilder& b, std::string_view name, const ValueName& x) {
  const Row* row = std::ranges::find(kRows, name, &Row::name);
  CHECK_INVARIANT(row != std::end(kRows));  // builders check the name before
  return row->build(b, x);
}

}  // namespace trainscope
