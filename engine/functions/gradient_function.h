// The gradient of an op as a function: of its inputs, its outputs and the gradients of these.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/functions/function_text.h"
#include "engine/ir/op_def.h"

namespace trainscope {

// "Swish_grad (x, y, dy) => (dx) { ... }": a result for each input of the op, `_` for one that gets
// no gradient; first the op's inputs, then its outputs, then the gradients of its outputs. So of n
// results and n + 2 m inputs m are outputs.
//
// Invariants: the function's name ends so, and its inputs are of that number.
struct GradientFunction {
  FunctionText function;
  std::string op = {};  // whose gradient it is, of the domain of the function
  std::size_t inputs = 0;
  std::size_t outputs = 0;
};

// Throws kBadInput, "NAME:LINE: ...", for a function that is none of a gradient, or whose ops are
// not there.
GradientFunction gradient_function(FunctionText function, const OpTable& ops);
// Of a text that is one such function.
GradientFunction parse_gradient(std::string_view text, std::string_view name, const OpTable& ops,
                                int first_line = 1);

// What it makes of a node of inputs x, outputs y and their gradients dy, as a GradientRule does:
// the gradients of the inputs that are wanted, of these inputs' types. A gradient of a larger shape
// is summed to that of its input, as for every op that broadcasts. Throws kBadInput.
struct GradientOfNode {
  Builder& b;
  const Attributes& attributes;  // of the node
  std::span<const ValueId> x;
  std::span<const ValueId> y;
  std::span<const ValueId> dy;  // kNoValue: nothing flows there
  std::span<const bool> wanted;
};
std::vector<ValueId> build_gradient(const GradientFunction& gradient, const GradientOfNode& of);

// The rule of a row. It shares the function.
GradientRule gradient_rule(std::shared_ptr<const GradientFunction> gradient);

}  // namespace trainscope
