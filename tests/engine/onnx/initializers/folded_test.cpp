// Slices that are equal along an axis, and the first of them.
#include "engine/onnx/initializers/folded.h"

#include <doctest/doctest.h>

#include <vector>

namespace trainscope::test {
namespace {

Tensor tensor(Shape shape, const std::vector<float>& elements) {
  return Tensor::of<float>(shape, elements);
}

std::vector<float> elements_of(const Tensor& tensor) {
  return {tensor.values<float>().begin(), tensor.values<float>().end()};
}

}  // namespace

TEST_CASE("folded: axes along which all slices are equal") {
  CHECK(repeated_axes(tensor({2, 2}, {1, 2, 1, 2})) == std::vector{0});
  CHECK(repeated_axes(tensor({2, 2}, {1, 1, 2, 2})) == std::vector{1});
  CHECK(repeated_axes(tensor({2, 2}, {1, 2, 2, 1})).empty());
  CHECK(repeated_axes(tensor({2, 1, 2}, {3, 3, 3, 3})) == std::vector{0, 2});
  CHECK(repeated_axes(tensor({2, 2, 2}, {1, 2, 1, 2, 3, 4, 3, 4})) == std::vector{1});
  // Equal in the first block alone.
  CHECK(repeated_axes(tensor({2, 2, 2}, {1, 2, 1, 2, 3, 4, 5, 6})).empty());
  CHECK(repeated_axes(tensor({0, 2}, {})).empty());
}

TEST_CASE("folded: the first slice along an axis") {
  const Tensor whole = tensor({2, 2, 2}, {1, 2, 1, 2, 3, 4, 3, 4});
  CHECK(elements_of(first_slice(whole, 1)) == std::vector<float>{1, 2, 3, 4});
  CHECK(first_slice(whole, 1).shape() == Shape{2, 1, 2});
  CHECK(elements_of(first_slice(whole, 0)) == std::vector<float>{1, 2, 1, 2});
  CHECK(elements_of(first_slice(whole, 2)) == std::vector<float>{1, 1, 3, 3});
}

}  // namespace trainscope::test
