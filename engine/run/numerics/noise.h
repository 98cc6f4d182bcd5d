// What rounding makes of one tensor of a step: its elements on several orders of a batch's examples
// beside the exact ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/core/tensor.h"
#include "profiler/numerics/tensor_summary.h"

namespace trainscope {

// For each place of a batch the example that comes there.
using ExampleOrder = std::vector<std::int64_t>;

// Whether a tensor's axis counts examples, or blocks of them.
bool holds_examples(const Shape& shape, int axis, std::size_t examples);
// The same tensor with its examples in another order; its axis holds them.
Tensor reordered(const Tensor& tensor, int axis, const ExampleOrder& order);

// A tensor as a step has it, and what its elements are divided by: the loss scale of a gradient.
struct ScaledTensor {
  const Tensor& tensor;
  double divisor = 1.0;
};

// Another order of which the error is above this does not count: the value has its examples
// elsewhere than in its first axis, or draws numbers by position.
inline constexpr double kMostNoise = 1e-2;
// Of a larger value other orders are compared by so many of its first elements, as long as these
// stand for it.
inline constexpr std::int64_t kHeadElements = std::int64_t{1} << 18;

// Errors are relative L2 norms, estimated from sketches; of an exact tensor of zeros they are the
// norms themselves. One is known where as many elements are finite as of the exact tensor, and
// where it is finite itself: the rest of a tensor that overflows says nothing of rounding.
class TensorNoise {
 public:
  // `summary`: of the exact elements, divided.
  TensorNoise(const ScaledTensor& exact, const profiler::TensorSummary& summary, int threads);

  // Of the batch as it is, before all others. The head stands for the whole where both have the
  // same error within a factor of 2.
  void measure(const ScaledTensor& rounded);
  // Of the batch in another order. With `has_examples` the first axis may hold them.
  void measure(const ScaledTensor& rounded, const ExampleOrder& order, bool has_examples);

  // The largest error; none: of no order it is known.
  std::optional<double> largest() const { return largest_; }

 private:
  struct Elements {
    profiler::FiniteSketch finite;
    double l2 = 0.0;
  };
  std::optional<double> error(const Elements& exact, std::span<const std::byte> bytes,
                              const ScaledTensor& rounded) const;
  void note(std::optional<double> error);

  int threads_;
  Elements whole_;
  std::optional<Elements> head_;  // none: all elements are compared
  std::optional<double> largest_;
};

}  // namespace trainscope
