// One op on literal tensors, by the reference kernels and decompositions.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/attributes.h"

namespace trainscope::test {

struct OpCall {
  std::string_view op;
  std::vector<Tensor> inputs;
  Attributes attributes = {};
  int outputs = 1;
  std::vector<bool> absent = {};  // inputs that are left out; fewer flags: the rest is given
};

// The outputs; all inputs count as known when the graph is built. Throws what the rules throw.
std::vector<Tensor> evaluate(const OpCall& call);

Tensor f64(const Shape& shape, std::initializer_list<double> values);
Tensor i64(const Shape& shape, std::initializer_list<std::int64_t> values);
Tensor bools(const Shape& shape, std::initializer_list<bool> values);
// 0, 1, 2, ... in a shape.
Tensor counting(const Shape& shape);

// The elements as doubles.
std::vector<double> numbers(const Tensor& tensor);

}  // namespace trainscope::test
