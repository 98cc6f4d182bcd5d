// Counts, names and types of gradients that are functions.
#include "engine/functions/gradient_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/functions/build.h"

namespace trainscope {
namespace {

constexpr std::string_view kEnding = "_grad";

std::string count_text(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Zeros of the output's type, where nothing flows.
ValueId or_zeros(Builder& b, ValueId dy, ValueId y) {
  if (dy != kNoValue || y == kNoValue || !is_float(b.type(y).dtype)) return dy;
  const TensorType type = b.type(y);  // a copy: the graph grows
  const std::span<const std::int64_t> dims = type.shape.span();
  return b("Expand", {b.scalar(0.0, type.dtype), b.ints(Ints(dims.begin(), dims.end()))});
}

// dx under the input's shape, to which it was broadcast.
ValueId fitted(Builder& b, ValueId dx, const TensorType& type, std::string_view name) {
  require(b.type(dx).dtype == type.dtype, ErrorCode::kBadInput,
          "the gradient '{}' is {}, its input is {}", printable(name), type_text(b.type(dx)),
          type_text(type));
  if (b.shape(dx) == type.shape) return dx;
  const Shape& larger = b.shape(dx);
  bool broadcast = larger.rank >= type.shape.rank;
  for (int i = 1; broadcast && i <= type.shape.rank; ++i) {
    const std::int64_t dim = type.shape[type.shape.rank - i];
    broadcast = dim == 1 || dim == larger[larger.rank - i];
  }
  require(broadcast, ErrorCode::kBadInput, "the gradient '{}' is {}, its input is {}",
          printable(name), type_text(b.type(dx)), type_text(type));
  return b.sum_to(dx, type.shape);
}

// By the function's inputs: x, y, dy. Of inputs and outputs that the node leaves out kNoValue.
std::vector<ValueId> inputs_of(const GradientFunction& gradient, const GradientOfNode& of) {
  std::vector<ValueId> inputs(of.x.begin(), of.x.end());
  inputs.resize(gradient.inputs, kNoValue);
  inputs.insert(inputs.end(), of.y.begin(), of.y.end());
  inputs.resize(gradient.inputs + gradient.outputs, kNoValue);
  for (std::size_t i = 0; i < gradient.outputs; ++i) {
    const ValueId y = inputs[gradient.inputs + i];
    inputs.push_back(or_zeros(of.b, i < of.dy.size() ? of.dy[i] : kNoValue, y));
  }
  return inputs;
}

void check_counts(const GradientFunction& gradient, const GradientOfNode& of) {
  require(of.x.size() <= gradient.inputs && of.y.size() <= gradient.outputs, ErrorCode::kBadInput,
          "{}: the gradient is for {} and {}, the node has {} and {}", gradient.function.where,
          count_text(gradient.inputs, "input"), count_text(gradient.outputs, "output"), of.x.size(),
          of.y.size());
}

DType float_type_of(const GradientOfNode& of) {
  for (const ValueId v : of.dy) {
    if (v != kNoValue) return of.b.type(v).dtype;
  }
  return DType::kF32;
}

}  // namespace

GradientFunction gradient_function(FunctionText function, const OpTable& ops) {
  const bool named = function.name.ends_with(kEnding) && function.name.size() > kEnding.size();
  require(named, ErrorCode::kBadInput,
          "{}: '{}' is the name of no gradient: that of Swish is Swish{}", function.where,
          printable(function.name), kEnding);
  const std::size_t inputs = function.outputs.size();
  const std::size_t others = function.inputs.size() - std::min(inputs, function.inputs.size());
  require(inputs > 0 && others > 0 && others % 2 == 0, ErrorCode::kBadInput,
          "{}: a gradient with {} reads {}, the outputs and as many gradients of outputs; this one "
          "reads {} in all",
          function.where, count_text(inputs, "result"), count_text(inputs, "input"),
          function.inputs.size());
  check_ops(function, ops);
  GradientFunction gradient{.function = std::move(function)};
  gradient.op = gradient.function.name;
  gradient.op.resize(gradient.op.size() - kEnding.size());
  gradient.inputs = inputs;
  gradient.outputs = others / 2;
  return gradient;
}

GradientFunction parse_gradient(std::string_view text, std::string_view name, const OpTable& ops,
                                int first_line) {
  std::vector<FunctionText> functions = parse_functions(text, name, first_line);
  require(functions.size() == 1, ErrorCode::kBadInput, "{} holds {} functions, one expected",
          printable(name), functions.size());
  return gradient_function(std::move(functions.front()), ops);
}

std::vector<ValueId> build_gradient(const GradientFunction& gradient, const GradientOfNode& of) {
  check_counts(gradient, of);
  const std::vector<ValueId> inputs = inputs_of(gradient, of);
  std::vector<bool> wanted(of.wanted.begin(), of.wanted.end());
  wanted.resize(gradient.inputs, false);
  std::vector<ValueId> dx = build(gradient.function, {.b = of.b,
                                                      .inputs = inputs,
                                                      .attributes = of.attributes,
                                                      .float_type = float_type_of(of),
                                                      .wanted = wanted});
  dx.resize(of.x.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (dx[i] == kNoValue) continue;
    const TensorType type = of.b.type(of.x[i]);  // a copy: the graph grows
    dx[i] = fitted(of.b, dx[i], type, gradient.function.outputs[i]);
  }
  return dx;
}

GradientRule gradient_rule(std::shared_ptr<const GradientFunction> gradient) {
  return [gradient = std::move(gradient)](const GradArgs& g) {
    return build_gradient(*gradient, {.b = g.b,
                                      .attributes = g.node.attributes,
                                      .x = g.x,
                                      .y = g.y,
                                      .dy = g.dy,
                                      .wanted = g.wanted});
  };
}

}  // namespace trainscope
