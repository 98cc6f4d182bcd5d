// A tensor of a recorded run as far as its trace has it, and computed ones measured against it.
#pragma once

#include <optional>
#include <vector>

#include "engine/core/tensor.h"
#include "profiler/numerics/indexed_trace.h"

namespace trainscope {

// Where a tensor is a point: of its elements, or of the 128 numbers of a sketch, in which sums and
// differences are those of the elements too. What is not finite counts 0, and among elements so do
// those of masks, above kMask.
using Coordinates = std::vector<double>;
inline constexpr double kMask = 1e30;  // beside such elements no other one would count in a norm

// In f64; those that are not below `largest` are 0.
Coordinates finite_elements(const Tensor& tensor, double largest = kMask);
double norm_of(const Coordinates& x);
double distance(const Coordinates& x, const Coordinates& y);
double inner_product(const Coordinates& x, const Coordinates& y);
// x + factor * y.
Coordinates sum_of(const Coordinates& x, double factor, const Coordinates& y);

class Observed {
 public:
  Observed(const profiler::IndexedTrace& trace, std::size_t row);

  const profiler::TraceRow& row() const { return row_; }
  const std::optional<Tensor>& elements() const { return elements_; }
  const Coordinates& coordinates() const { return coordinates_; }
  // Of a tensor with as many elements, where this one's are.
  Coordinates coordinates_of(const Tensor& tensor) const;
  bool fits(const Tensor& tensor) const { return tensor.elements() == row_.statistics.count; }
  // Whether the tensor, rounded to this one's type, has as many NaN and infinities.
  bool has_specials_of(const Tensor& tensor) const;

 private:
  double largest() const;  // that the row's type holds

  profiler::TraceRow row_;
  std::optional<Tensor> elements_;
  Coordinates coordinates_;
};

}  // namespace trainscope
