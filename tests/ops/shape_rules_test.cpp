// Broadcast shapes, size checks and windows.
#include "engine/ops/rules/shape_rules.h"

#include <doctest/doctest.h>

#include <limits>

#include "engine/core/error.h"

namespace trainscope {
namespace {

// OpArgs of a node of which only the attributes matter.
OpArgs with_attributes(const Attributes& attributes) {
  return {.attributes = attributes, .inputs = {}, .constants = {}, .present = {}, .outputs = {}};
}

WindowParams window(const Attributes& attributes, const Shape& input, const Ints& kernel) {
  return window_params(with_attributes(attributes), input, kernel);
}

}  // namespace

TEST_CASE("shape_rules: shapes broadcast as in numpy") {
  CHECK(broadcast_shapes({2, 1, 4}, {3, 1}) == Shape{2, 3, 4});
  CHECK(broadcast_shapes({}, {5}) == Shape{5});
  CHECK(broadcast_shapes({0, 3}, {1, 3}) == Shape{0, 3});
  CHECK_THROWS_AS(broadcast_shapes({2}, {3}), Error);
  CHECK_THROWS_AS(broadcast_shapes({0}, {2}), Error);
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK_THROWS_AS(broadcast_shapes({large, 1}, {1, large}), Error);
}

TEST_CASE("shape_rules: a shape must be countable") {
  const std::int64_t large = std::int64_t{1} << 31;
  CHECK(checked_shape(Shape{large, 1 << 14}).elements() == large << 14);
  CHECK_THROWS_AS(checked_shape(Shape{large, 1 << 15}), Error);
  CHECK_THROWS_AS(checked_shape(Shape{large, large}), Error);
  CHECK_THROWS_AS(checked_shape(Shape{large, 0, large}), Error);
  CHECK_THROWS_AS(checked_shape(Shape{-1}), Error);
  CHECK_THROWS_AS(checked_add(std::numeric_limits<std::int64_t>::max(), 1), Error);
  CHECK_THROWS_AS(checked_multiply(std::numeric_limits<std::int64_t>::min(), -1), Error);
}

TEST_CASE("shape_rules: window sizes of strides, dilations and pads") {
  const Attributes attributes{
      {"strides", Ints{2, 1}}, {"dilations", Ints{1, 2}}, {"pads", Ints{1, 0, 1, 2}}};
  const WindowParams w = window(attributes, {1, 3, 7, 9}, {3, 3});
  CHECK(w.pad_end == Spatial{1, 2, 0});
  CHECK(window_output_shape(w, {1, 3, 7, 9}, 5) == Shape{1, 5, 4, 7});
}

TEST_CASE("shape_rules: rounding up adds a partial window that begins inside") {
  const WindowParams pairs = window({{"strides", Ints{2}}}, {1, 1, 5}, {2});
  CHECK(window_output_size(pairs, 0, 5) == 2);
  CHECK(window_output_size(pairs, 0, 5, Rounding::kCeil) == 3);
  // Its third window would begin in the padding after the input.
  const WindowParams padded = window({{"strides", Ints{3}}, {"pads", Ints{0, 2}}}, {1, 1, 3}, {3});
  CHECK(window_output_size(padded, 0, 3, Rounding::kCeil) == 1);
}

TEST_CASE("shape_rules: auto_pad gives ceil(size / stride) windows") {
  const Shape input{1, 1, 6};
  const Attributes upper{{"strides", Ints{2}}, {"auto_pad", std::string("SAME_UPPER")}};
  const WindowParams w = window(upper, input, {3});
  CHECK(w.pad_begin[0] == 0);
  CHECK(w.pad_end[0] == 1);
  CHECK(window_output_size(w, 0, 6) == 3);
  const Attributes lower{{"strides", Ints{2}}, {"auto_pad", std::string("SAME_LOWER")}};
  CHECK(window(lower, input, {3}).pad_begin[0] == 1);
}

TEST_CASE("shape_rules: impossible windows are refused") {
  const Shape input{1, 1, 4};
  CHECK_THROWS_AS(window({{"strides", Ints{0}}}, input, {2}), Error);
  CHECK_THROWS_AS(window({{"strides", Ints{1, 1}}}, input, {2}), Error);
  CHECK_THROWS_AS(window({{"dilations", Ints{-1}}}, input, {2}), Error);
  CHECK_THROWS_AS(window({{"pads", Ints{0, -1}}}, input, {2}), Error);
  CHECK_THROWS_AS(window({{"pads", Ints{std::int64_t{1} << 40, 0}}}, input, {2}), Error);
  CHECK_THROWS_AS(window({{"auto_pad", std::string("BOTH")}}, input, {2}), Error);
  CHECK_THROWS_AS(window({}, input, {0}), Error);
  CHECK_THROWS_AS(window({}, input, {2, 2}), Error);
  CHECK_THROWS_AS(window({}, {1, 1}, {}), Error);
  CHECK_THROWS_AS(window_output_size(window({}, input, {5}), 0, 4), Error);
}

}  // namespace trainscope
