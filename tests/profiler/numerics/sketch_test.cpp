// Places by the formula, estimates against norms.
#include "profiler/numerics/sketch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/api/random.h"

namespace trainscope::profiler {
namespace {

// Computed with Python's integers from the formula of docs/run-format.md.
TEST_CASE("sketch: where elements go") {
  struct Row {
    std::uint64_t index;
    int bucket;
    bool negative;
  };
  const Row rows[] = {{0, 64, true},          {1, 80, false},         {2, 88, false},
                      {3, 9, false},          {1000, 51, true},       {1000000, 88, false},
                      {1ull << 32, 55, true}, {1ull << 40, 119, true}};
  for (const Row& row : rows) {
    CAPTURE(row.index);
    CHECK(sketch_place(row.index).bucket == row.bucket);
    CHECK(sketch_place(row.index).negative == row.negative);
  }
}

TEST_CASE("sketch: pieces add up to the whole, and what is not finite is left out") {
  std::vector<double> elements(1000);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = random_normal(1, 2, i);
  Sketch whole{};
  add_to_sketch(elements, 0, whole);
  Sketch pieces{};
  add_to_sketch({elements.data(), 300}, 0, pieces);
  add_to_sketch({elements.data() + 300, 700}, 300, pieces);
  CHECK(pieces == whole);
  Sketch by_place{};
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const SketchPlace place = sketch_place(i);
    by_place[static_cast<std::size_t>(place.bucket)] += place.negative ? -elements[i] : elements[i];
  }
  CHECK(by_place == whole);
  elements[7] = std::numeric_limits<double>::quiet_NaN();
  elements[8] = std::numeric_limits<double>::infinity();
  Sketch finite{};
  CHECK(add_to_sketch(elements, 0, finite) == 2);
  CHECK(std::isfinite(estimated_norm(finite)));
}

// Errors as rounding makes them, of some elements alone, of rows, and in a ramp.
TEST_CASE("sketch: the distance of tensors is within 20 percent in 99 of 100") {
  int outside = 0;
  int trials = 0;
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    const std::size_t count = 50 + 37 * (trial % 100) * (trial % 7 + 1);
    std::vector<double> x(count);
    std::vector<double> y(count);
    double squares = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      x[i] = random_normal(trial, 1, i);
      double error = 1e-6 * random_normal(trial, 2, i);
      if (trial % 4 == 1 && i % 5 != 0) error = 0.0;
      if (trial % 4 == 2) error = 1e-6 * random_normal(trial, 3, i / 32);
      if (trial % 4 == 3) error = 1e-9 * static_cast<double>(i);
      y[i] = x[i] + error;
      squares += (x[i] - y[i]) * (x[i] - y[i]);
    }
    Sketch a{};
    Sketch b{};
    add_to_sketch(x, 0, a);
    add_to_sketch(y, 0, b);
    const double ratio = estimated_distance(a, b) / std::sqrt(squares);
    ++trials;
    if (ratio < 0.8 || ratio > 1.25) ++outside;
  }
  CHECK(outside <= trials / 100);
}

}  // namespace
}  // namespace trainscope::profiler
