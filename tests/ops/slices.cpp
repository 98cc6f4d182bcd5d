// Slices as copies of runs of bytes; calls through evaluate().
#include "tests/ops/slices.h"

#include <algorithm>
#include <cstring>

#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

// Bytes of one run of neighbours along the axis, and how many runs there are.
struct Runs {
  std::int64_t count = 1;
  std::size_t element_bytes = 0;  // of one place along the axis

  Runs(const TensorType& type, int axis) : element_bytes(size_of(type.dtype)) {
    for (int a = 0; a < axis; ++a) count *= type.shape[a];
    for (int a = axis + 1; a < type.shape.rank; ++a) {
      element_bytes *= static_cast<std::size_t>(type.shape[a]);
    }
  }
};

// Copies `places` along the axis between tensors that have them at different places.
void copy_places(const Tensor& from, std::int64_t from_begin, Tensor& to, std::int64_t to_begin,
                 int axis, std::int64_t places) {
  const Runs runs(from.type(), axis);
  const auto at = [&](const Tensor& tensor, std::int64_t run, std::int64_t begin) {
    return static_cast<std::size_t>(run * tensor.shape()[axis] + begin) * runs.element_bytes;
  };
  if (from.bytes() == 0 || to.bytes() == 0) return;
  for (std::int64_t run = 0; run < runs.count; ++run) {
    std::memcpy(to.data() + at(to, run, to_begin), from.data() + at(from, run, from_begin),
                static_cast<std::size_t>(places) * runs.element_bytes);
  }
}

}  // namespace

Tensor slice_of(const Tensor& tensor, int axis, std::int64_t begin, std::int64_t count) {
  TensorType type = tensor.type();
  type.shape[axis] = count;
  Tensor slice(type);
  copy_places(tensor, begin, slice, 0, axis, count);
  return slice;
}

Tensor joined(const std::vector<Tensor>& tensors, int axis) {
  TensorType type = tensors.front().type();
  type.shape[axis] = 0;
  for (const Tensor& tensor : tensors) type.shape[axis] += tensor.shape()[axis];
  Tensor whole(type);
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    copy_places(tensor, 0, whole, begin, axis, tensor.shape()[axis]);
    begin += tensor.shape()[axis];
  }
  return whole;
}

Tensor added(const Tensor& a, const Tensor& b, double factor_of_b) {
  Tensor sum = convert(a, DType::kF64);
  const Tensor other = convert(b, DType::kF64);
  for (std::size_t i = 0; i < sum.values<double>().size(); ++i) {
    sum.values<double>()[i] += factor_of_b * other.values<double>()[i];
  }
  return sum;
}

Tensor zeros_like(const Tensor& tensor) { return Tensor(tensor.type()); }

std::vector<Tensor> example_inputs(const Example& example, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < example.inputs.size(); ++i) {
    const bool present = example.inputs[i].present;
    inputs.push_back(present ? make_input(example, i, DType::kF64, seed) : Tensor());
  }
  return inputs;
}

std::vector<Tensor> results_of(const OpDef& row, const Example& example,
                               const std::vector<Tensor>& inputs) {
  return results_of(row, example, inputs, example.attributes);
}

std::vector<Tensor> results_of(const OpDef& row, const Example& example,
                               const std::vector<Tensor>& inputs, const Attributes& attributes) {
  std::vector<bool> absent;
  for (const ExampleInput& input : example.inputs) absent.push_back(!input.present);
  return evaluate({.op = row.name,
                   .inputs = inputs,
                   .attributes = attributes,
                   .outputs = example.output_count,
                   .absent = std::move(absent)});
}

}  // namespace trainscope::test
