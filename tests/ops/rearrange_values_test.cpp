// Range, Tile, OneHot, Compress, blocks of space and depth, reversed sequences on small literals.
#include <doctest/doctest.h>

#include <limits>

#include "engine/core/error.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

Numbers run(const OpCall& call) { return numbers(evaluate(call)[0]); }

Tensor scalar(std::int64_t value) { return Tensor::scalar(value); }

}  // namespace

TEST_CASE("Range: the limit is not reached, in either direction") {
  CHECK(run({"Range", {scalar(1), scalar(7), scalar(3)}}) == Numbers{1, 4});
  CHECK(run({"Range", {scalar(10), scalar(6), scalar(-3)}}) == Numbers{10, 7});
  CHECK(run({"Range", {scalar(3), scalar(9), scalar(-1)}}).empty());
  const Tensor half = Tensor::scalar(0.5);
  CHECK(run({"Range", {Tensor::scalar(1.0), Tensor::scalar(2.2), half}}) == Numbers{1, 1.5, 2});
}

TEST_CASE("Range: steps over more than 63 bits") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const Tensor y = evaluate({"Range", {scalar(kLeast), scalar(kMost), scalar(kMost)}})[0];
  const auto values = y.values<std::int64_t>();
  CHECK(Ints(values.begin(), values.end()) == Ints{kLeast, -1, kMost - 1});
  CHECK_THROWS_AS(evaluate({"Range", {scalar(kLeast), scalar(kMost), scalar(1)}}), Error);
  CHECK_THROWS_AS(evaluate({"Range", {scalar(0), scalar(1), scalar(0)}}), Error);
}

TEST_CASE("Tile: repeats along every axis") {
  const Tensor x = f64({2, 2}, {0, 1, 2, 3});
  CHECK(run({"Tile", {x, i64({2}, {2, 2})}}) ==
        Numbers{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(run({"Tile", {x, i64({2}, {1, 2})}}) == Numbers{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(run({"Tile", {x, i64({2}, {2, 1})}}) == Numbers{0, 1, 2, 3, 0, 1, 2, 3});
}

TEST_CASE("OneHot: negative indices count from the depth, those outside are all off") {
  const OpCall call{"OneHot", {i64({3}, {0, -1, 3}), scalar(3), f64({2}, {2, 5})}};
  CHECK(run(call) == Numbers{5, 2, 2, 2, 2, 5, 2, 2, 2});
}

TEST_CASE("OneHot: the new axis may be the first or in between") {
  const Tensor indices = i64({2, 2}, {1, 0, 0, 1});
  const Tensor values = f64({2}, {0, 1});
  const OpCall first{"OneHot", {indices, scalar(2), values}, {{"axis", std::int64_t{0}}}};
  CHECK(run(first) == Numbers{0, 1, 1, 0, 1, 0, 0, 1});
  const OpCall middle{
      "OneHot", {indices, Tensor::scalar(2.0), values}, {{"axis", std::int64_t{-2}}}};
  CHECK(evaluate(middle)[0].shape() == Shape{2, 2, 2});
  CHECK(run(middle) == Numbers{0, 1, 1, 0, 1, 0, 0, 1});
}

TEST_CASE("DepthToSpace: both orders of block and depth") {
  // Channel c holds 10 * c + column.
  const Tensor x =
      f64({1, 8, 1, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51, 60, 61, 70, 71});
  const Attributes depth_first{{"blocksize", std::int64_t{2}}};
  const OpCall dcr{"DepthToSpace", {x}, depth_first};
  CHECK(evaluate(dcr)[0].shape() == Shape{1, 2, 2, 4});
  CHECK(run(dcr) == Numbers{0, 20, 1, 21, 40, 60, 41, 61, 10, 30, 11, 31, 50, 70, 51, 71});
  const Attributes column_first{{"blocksize", std::int64_t{2}}, {"mode", std::string("CRD")}};
  CHECK(run({"DepthToSpace", {x}, column_first}) ==
        Numbers{0, 10, 1, 11, 20, 30, 21, 31, 40, 50, 41, 51, 60, 70, 61, 71});
}

TEST_CASE("SpaceToDepth: undoes DepthToSpace") {
  const Tensor x = counting({2, 2, 4, 6});
  const Attributes attributes{{"blocksize", std::int64_t{2}}};
  const Tensor depth = evaluate({"SpaceToDepth", {x}, attributes})[0];
  CHECK(depth.shape() == Shape{2, 8, 2, 3});
  CHECK(depth.values<double>()[6] == 24);  // channel 1 is that of the second image channel
  CHECK(run({"DepthToSpace", {depth}, attributes}) == numbers(x));
}

TEST_CASE("ReverseSequence: only the first steps of each example") {
  const Tensor x = counting({4, 2});
  CHECK(run({"ReverseSequence", {x, i64({2}, {3, 1})}}) == Numbers{4, 1, 2, 3, 0, 5, 6, 7});
  const Attributes batch_first{{"time_axis", std::int64_t{1}}, {"batch_axis", std::int64_t{0}}};
  CHECK(run({"ReverseSequence", {counting({2, 3}), i64({2}, {2, 3})}, batch_first}) ==
        Numbers{1, 0, 2, 5, 4, 3});
}

TEST_CASE("Compress: along an axis, and of all elements in a row") {
  const Tensor x = counting({3, 2});
  CHECK(run({"Compress", {x, bools({3}, {false, true, true})}, {{"axis", std::int64_t{0}}}}) ==
        Numbers{2, 3, 4, 5});
  CHECK(run({"Compress", {x, bools({2}, {false, true})}, {{"axis", std::int64_t{1}}}}) ==
        Numbers{1, 3, 5});
  CHECK(run({"Compress", {x, bools({5}, {false, true, false, false, true})}}) == Numbers{1, 4});
}

}  // namespace trainscope::test
