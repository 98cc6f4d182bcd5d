// Runs a row on literal tensors.
#include "tests/ops/evaluate.h"

#include <memory>
#include <numeric>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"

namespace trainscope::test {

std::vector<Tensor> evaluate(const OpCall& call) {
  static const OpTable ops = standard_ops();
  static const Evaluate reference =
      evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  const OpDef& row = ops.get(call.op);
  const std::size_t count = call.inputs.size();
  std::vector<const Tensor*> inputs;
  std::vector<TensorType> types;
  const auto present = std::make_unique<bool[]>(count);
  for (std::size_t i = 0; i < count; ++i) {
    present[i] = i >= call.absent.size() || !call.absent[i];
    inputs.push_back(present[i] ? &call.inputs[i] : nullptr);
    types.push_back(present[i] ? call.inputs[i].type() : TensorType{});
  }
  std::vector<TensorType> outputs = row.shape({.attributes = call.attributes,
                                               .inputs = types,
                                               .constants = inputs,
                                               .present = {present.get(), count},
                                               .outputs = {},
                                               .output_count = call.outputs});
  outputs.resize(static_cast<std::size_t>(call.outputs));
  return reference(row, call.attributes, inputs, outputs);
}

Tensor f64(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::of<double>(shape, {values.begin(), values.size()});
}

Tensor i64(const Shape& shape, std::initializer_list<std::int64_t> values) {
  return Tensor::of<std::int64_t>(shape, {values.begin(), values.size()});
}

Tensor bools(const Shape& shape, std::initializer_list<bool> values) {
  return Tensor::of<bool>(shape, {values.begin(), values.size()});
}

Tensor counting(const Shape& shape) {
  Tensor tensor({.dtype = DType::kF64, .shape = shape});
  std::iota(tensor.values<double>().begin(), tensor.values<double>().end(), 0.0);
  return tensor;
}

std::vector<double> numbers(const Tensor& tensor) {
  const Tensor exact = convert(tensor, DType::kF64);
  return {exact.values<double>().begin(), exact.values<double>().end()};
}

}  // namespace trainscope::test
