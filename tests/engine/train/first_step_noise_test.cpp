// Elements near their noise, and near epsilon, step whichever way; others do not.
#include "engine/train/first_step_noise.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainscope {
namespace {

Tensor gradient_of(const Shape& shape, const std::vector<double>& elements) {
  Tensor tensor({.dtype = DType::kF64, .shape = shape});
  std::ranges::copy(elements, tensor.values<double>().begin());
  return tensor;
}

TEST_CASE("first step noise: of a vector, elements below their noise turn around") {
  // A norm of 2; noise of each element is 2e-3 / 2 = 1e-3.
  const Tensor gradient = gradient_of({4}, {1.0, -1.0, 1.0, -1.0});
  const FirstStepNoise none = first_step_noise(gradient, 1.0, 1e-3, 0.0);
  CHECK(none.move == doctest::Approx(2.0));
  CHECK(none.apart == 0.0);
  const Tensor small = gradient_of({4}, {1.0, -1.0, 1e-5, 0.0});
  const FirstStepNoise one = first_step_noise(small, 1.0, 1e-3, 0.0);
  CHECK(one.move == doctest::Approx(std::sqrt(3.0)));  // zeros do not move
  CHECK(one.apart == doctest::Approx(2.0));
}

TEST_CASE("first step noise: epsilon makes a step depend on the size of its gradient") {
  // g = epsilon: u = 1 / 2; of 2 g it is 2 / 3, of 0 it is 0.
  const Tensor gradient = gradient_of({1}, {1e-8});
  const FirstStepNoise noise = first_step_noise(gradient, 1.0, 1.0, 1e-8);
  CHECK(noise.move == doctest::Approx(0.5));
  CHECK(noise.apart == doctest::Approx(0.5));
  // Scaled to a hundredth: u = 0.01 / 1.01, of twice that 0.02 / 1.02.
  const FirstStepNoise scaled = first_step_noise(gradient, 0.01, 1.0, 1e-8);
  CHECK(scaled.move == doctest::Approx(0.01 / 1.01));
  CHECK(scaled.apart == doctest::Approx(0.01 / 1.01));
}

// The second row is rounding beside the first; its own noise is in proportion to it.
TEST_CASE("first step noise: of a matrix noise is in proportion to rows and columns") {
  const Tensor matrix = gradient_of({2, 2}, {1.0, 1.0, 1e-6, 1e-6});
  CHECK(first_step_noise(matrix, 1.0, 1e-2, 0.0).apart == 0.0);
  const Tensor vector = gradient_of({4}, {1.0, 1.0, 1e-6, 1e-6});
  CHECK(first_step_noise(vector, 1.0, 1e-2, 0.0).apart == doctest::Approx(std::sqrt(8.0)));
}

TEST_CASE("first step noise: of nothing, and of zeros, there is none") {
  CHECK(first_step_noise(gradient_of({0}, {}), 1.0, 1.0, 1e-8).move == 0.0);
  CHECK(first_step_noise(gradient_of({2, 0}, {}), 1.0, 1.0, 1e-8).apart == 0.0);
  CHECK(first_step_noise(gradient_of({3}, {0.0, 0.0, 0.0}), 1.0, 1.0, 1e-8).apart == 0.0);
}

}  // namespace
}  // namespace trainscope
