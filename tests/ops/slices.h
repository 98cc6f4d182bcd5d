// Slices of tensors along one axis, sums, and calls of a row's example with other tensors.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/core/tensor.h"
#include "engine/ir/op_def.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {

// Elements [begin, begin + count) along the axis.
Tensor slice_of(const Tensor& tensor, int axis, std::int64_t begin, std::int64_t count);
// Side by side along the axis; of one type otherwise.
Tensor joined(const std::vector<Tensor>& tensors, int axis);
// a + factor_of_b * b in f64, element by element.
Tensor added(const Tensor& a, const Tensor& b, double factor_of_b = 1.0);
Tensor zeros_like(const Tensor& tensor);

// The example's inputs in f64; empty tensors where one is left out.
std::vector<Tensor> example_inputs(const Example& example, std::uint64_t seed);
// What the row makes of these inputs, by the reference kernel or its decomposition.
std::vector<Tensor> results_of(const OpDef& row, const Example& example,
                               const std::vector<Tensor>& inputs);
std::vector<Tensor> results_of(const OpDef& row, const Example& example,
                               const std::vector<Tensor>& inputs, const Attributes& attributes);

}  // namespace trainscope::test
