// Resize on small literals: coordinate transformations, filters, regions; where taps lie.
#include <doctest/doctest.h>

#include <string>

#include "engine/core/error.h"
#include "engine/ops/pool/resize_taps.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

// x [n] resized to `size` elements.
Numbers resized(const Tensor& x, std::int64_t size, Attributes attributes) {
  const Tensor none;
  const OpCall call{.op = "Resize",
                    .inputs = {x, none, none, i64({1}, {size})},
                    .attributes = std::move(attributes),
                    .absent = {false, true, true}};
  return numbers(evaluate(call)[0]);
}

Numbers scaled(const Tensor& x, double scale, Attributes attributes) {
  const Tensor none;
  const OpCall call{.op = "Resize",
                    .inputs = {x, none, f64({1}, {scale})},
                    .attributes = std::move(attributes),
                    .absent = {false, true}};
  return numbers(evaluate(call)[0]);
}

Attributes mode(const std::string& filter, const std::string& coordinates) {
  return {{"mode", filter}, {"coordinate_transformation_mode", coordinates}};
}

Attributes nearest(const std::string& coordinates, const std::string& rounding) {
  Attributes attributes = mode("nearest", coordinates);
  attributes.set("nearest_mode", rounding);
  return attributes;
}

void check_close(const Numbers& got, const Numbers& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-9));
}

}  // namespace

TEST_CASE("Resize: linear under each coordinate transformation") {
  const Tensor x = f64({2}, {0, 4});
  check_close(resized(x, 4, mode("linear", "half_pixel")), {0, 1, 3, 4});
  check_close(resized(x, 4, mode("linear", "align_corners")), {0, 4.0 / 3, 8.0 / 3, 4});
  check_close(resized(x, 4, mode("linear", "asymmetric")), {0, 2, 4, 4});
  const Tensor four = f64({4}, {0, 1, 2, 3});
  check_close(resized(four, 1, mode("linear", "half_pixel")), {1.5});
  check_close(resized(four, 1, mode("linear", "pytorch_half_pixel")), {0});
  check_close(resized(four, 2, mode("nearest", "tf_half_pixel_for_nn")), {1, 3});
}

TEST_CASE("Resize: scales round the size down, and corners align to what was before") {
  const Tensor x = f64({4}, {1, 2, 3, 4});
  check_close(scaled(x, 0.6, mode("linear", "half_pixel")), {0.5 / 0.6 + 0.5, 1.5 / 0.6 + 0.5});
  // 2.4 elements: the last of two lies 1 / 1.4 of the way from the first corner to the last one.
  check_close(scaled(x, 0.6, mode("linear", "align_corners")), {1, 1 + 3 / 1.4});
}

TEST_CASE("Resize: nearest rounds as asked for") {
  const Tensor x = f64({2}, {0, 1});
  // Coordinates 0, 0.5, 1, 1.5.
  CHECK(resized(x, 4, nearest("asymmetric", "round_prefer_floor")) == Numbers{0, 0, 1, 1});
  CHECK(resized(x, 4, nearest("asymmetric", "round_prefer_ceil")) == Numbers{0, 1, 1, 1});
  CHECK(resized(x, 4, nearest("asymmetric", "floor")) == Numbers{0, 0, 1, 1});
  CHECK(resized(x, 4, nearest("asymmetric", "ceil")) == Numbers{0, 1, 1, 1});
  const Tensor four = f64({4}, {0, 1, 2, 3});
  CHECK(resized(four, 2, nearest("half_pixel", "floor")) == Numbers{0, 2});
  CHECK(resized(four, 2, nearest("half_pixel", "ceil")) == Numbers{1, 3});
}

TEST_CASE("Resize: integers move to their nearest places") {
  const Tensor none;
  const OpCall call{.op = "Resize",
                    .inputs = {i64({1, 2}, {7, 9}), none, none, i64({2}, {2, 4})},
                    .absent = {false, true, true}};
  CHECK(numbers(evaluate(call)[0]) == Numbers{7, 7, 9, 9, 7, 7, 9, 9});
}

TEST_CASE("Resize: cubic keeps a line inside, and its weights at a quarter are Keys'") {
  const ResizedAxis twice{.in = 4, .out = 8, .scale = 2.0, .length = 8.0};
  const Taps taps = resize_taps({.filter = Filter::kCubic}, twice);
  // Output 3 lies at 1.25, between 1 and 2; a = -0.75.
  CHECK(Ints(taps.index.begin() + 12, taps.index.begin() + 16) == Ints{0, 1, 2, 3});
  check_close(Numbers(taps.weight.begin() + 12, taps.weight.begin() + 16),
              {-0.10546875, 0.87890625, 0.26171875, -0.03515625});
  // Output 0 lies at -0.25: two places are before the first one.
  CHECK(Ints(taps.index.begin(), taps.index.begin() + 4) == Ints{0, 0, 0, 1});
  const Taps inside = resize_taps({.filter = Filter::kCubic, .exclude_outside = true}, twice);
  CHECK(inside.weight[0] == 0);
  CHECK(inside.weight[1] == 0);
  CHECK(inside.weight[2] + inside.weight[3] == doctest::Approx(1.0));
}

TEST_CASE("Resize: a region, and the value outside of it") {
  const Tensor none;
  Attributes attributes = mode("linear", "tf_crop_and_resize");
  attributes.set("extrapolation_value", 10.0);
  const OpCall call{.op = "Resize",
                    .inputs = {f64({1, 5}, {0, 1, 2, 3, 4}), f64({4}, {0, 0.25, 1, 1.25}), none,
                               i64({2}, {1, 5})},
                    .attributes = attributes,
                    .absent = {false, false, true}};
  // From 1 to 5 in steps of 1; the row's only place is the middle of its axis of one element.
  check_close(numbers(evaluate(call)[0]), {1, 2, 3, 4, 10});
}

TEST_CASE("Resize: an image is resized along both axes") {
  const Tensor none;
  const OpCall call{.op = "Resize",
                    .inputs = {f64({1, 1, 2, 2}, {1, 2, 3, 4}), none, f64({4}, {1, 1, 2, 2})},
                    .attributes = {{"mode", std::string("linear")}},
                    .absent = {false, true}};
  check_close(numbers(evaluate(call)[0]),
              {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
}

}  // namespace trainscope::test
