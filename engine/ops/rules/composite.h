// Small helpers of decompositions and of the shape rules that go with them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/core/error.h"
#include "engine/ops/rules/gradient_rules.h"

namespace trainscope {

inline Ints ints_of(const Shape& shape) { return {shape.span().begin(), shape.span().end()}; }

inline ValueId transposed(Builder& b, ValueId v, Ints permutation) {
  return b("Transpose", {v}, {{"perm", std::move(permutation)}});
}

// The result of a decomposition takes over the name of what it replaces, so that it must be a value
// of its own: an input of the node goes through an Identity.
inline ValueId own_value(Builder& b, const Node& node, ValueId v) {
  const bool is_input = std::find(node.inputs.begin(), node.inputs.end(), v) != node.inputs.end();
  return is_input ? b("Identity", {v}) : v;
}

// The elements of input i, which must be known when the graph is built.
inline const Tensor& known_input(const OpArgs& args, int i) {
  const Tensor* tensor = args.constants[static_cast<std::size_t>(i)];
  require_supported(
      tensor != nullptr,
      "input {} depends on the data of the run; it must be known when the graph is built", i);
  return *tensor;
}

// Input i of the node; kNoValue when it is left out.
inline ValueId input_of(const Node& node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNoValue;
}

}  // namespace trainscope
