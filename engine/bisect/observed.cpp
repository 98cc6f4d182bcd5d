// All elements where the trace has them, else their sketch.
#include "engine/bisect/observed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "profiler/numerics/sketch.h"

namespace trainscope {
namespace {

// Above these a number rounds to infinity.
constexpr double kLargestF16 = 65520.0;
constexpr double kLargestF32 = 3.4028235677973366e38;

}  // namespace

Coordinates finite_elements(const Tensor& tensor, double largest) {
  const Tensor wide = convert(tensor, DType::kF64);
  Coordinates result(wide.values<double>().begin(), wide.values<double>().end());
  for (double& x : result) {
    if (!(std::abs(x) < largest)) x = 0.0;
  }
  return result;
}

double norm_of(const Coordinates& x) { return std::sqrt(inner_product(x, x)); }

double inner_product(const Coordinates& x, const Coordinates& y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

double distance(const Coordinates& x, const Coordinates& y) {
  double squares = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(squares);
}

Coordinates sum_of(const Coordinates& x, double factor, const Coordinates& y) {
  Coordinates result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) result[i] = x[i] + factor * y[i];
  return result;
}

Observed::Observed(const profiler::IndexedTrace& trace, std::size_t row)
    : row_(trace.row(row)), elements_(trace.full(row_)) {
  if (elements_ && elements_->elements() != row_.statistics.count) elements_.reset();
  if (elements_) {
    coordinates_ = finite_elements(*elements_);
  } else {
    const profiler::Sketch sketch = trace.trace().sketch(row);
    coordinates_.assign(sketch.begin(), sketch.end());
  }
}

double Observed::largest() const {
  if (row_.dtype == name_of(DType::kF64)) return HUGE_VAL;
  return row_.dtype == name_of(DType::kF16) ? kLargestF16 : kLargestF32;
}

Coordinates Observed::coordinates_of(const Tensor& tensor) const {
  if (elements_) return finite_elements(tensor);
  const Coordinates elements = finite_elements(tensor, largest());
  profiler::Sketch sketch{};
  profiler::add_to_sketch(elements, 0, sketch);
  return {sketch.begin(), sketch.end()};
}

bool Observed::has_specials_of(const Tensor& tensor) const {
  const Tensor wide = convert(tensor, DType::kF64);
  const double most = largest();
  std::int64_t nan = 0, positive = 0, negative = 0;
  for (const double x : wide.values<double>()) {
    nan += std::isnan(x) ? 1 : 0;
    positive += x >= most ? 1 : 0;
    negative += x <= -most ? 1 : 0;
  }
  const profiler::TensorStatistics& s = row_.statistics;
  return nan == s.nan && positive == s.positive_infinite && negative == s.negative_infinite;
}

}  // namespace trainscope
