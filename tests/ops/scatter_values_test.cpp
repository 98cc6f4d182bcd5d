// GatherElements, GatherND, ScatterElements and ScatterND on small literals.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/core/error.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

Numbers run(const OpCall& call) { return numbers(evaluate(call)[0]); }

}  // namespace

TEST_CASE("GatherElements: each index replaces one coordinate of its own place") {
  const Tensor x = f64({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(run({"GatherElements", {x, i64({2, 3}, {1, 2, 0, 2, 0, 0})}}) == Numbers{4, 8, 3, 7, 2, 3});
  CHECK(run({"GatherElements", {x, i64({2, 3}, {-1, -2, 0, -2, 0, 0})}}) ==
        Numbers{7, 5, 3, 4, 2, 3});
  CHECK(run({"GatherElements", {x, i64({3, 1}, {2, 0, 1})}, {{"axis", std::int64_t{1}}}}) ==
        Numbers{3, 4, 8});
}

TEST_CASE("GatherElements: an index outside gives NaN, never another element") {
  const Tensor x = f64({2, 2}, {1, 2, 3, 4});
  const Numbers y =
      run({"GatherElements", {x, i64({2, 2}, {2, 1, -3, 0})}, {{"axis", std::int64_t{1}}}});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 2);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 3);
}

TEST_CASE("GatherND: rows of the indices name elements or slices") {
  const Tensor x = f64({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const OpCall elements{"GatherND", {x, i64({2, 3}, {0, 0, 1, 1, -1, 0})}};
  CHECK(run(elements) == Numbers{1, 6});
  const OpCall rows{"GatherND", {x, i64({2, 1, 2}, {0, 1, 1, 0})}};
  CHECK(evaluate(rows)[0].shape() == Shape{2, 1, 2});
  CHECK(run(rows) == Numbers{2, 3, 4, 5});
}

TEST_CASE("GatherND: batch axes are walked along with the indices") {
  const Tensor x = f64({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  const OpCall call{"GatherND", {x, i64({2, 1}, {1, 0})}, {{"batch_dims", std::int64_t{1}}}};
  CHECK(evaluate(call)[0].shape() == Shape{2, 2});
  CHECK(run(call) == Numbers{2, 3, 4, 5});
}

TEST_CASE("GatherND: a coordinate outside gives NaN even where the flat place would be inside") {
  const Tensor x = f64({2, 3}, {0, 1, 2, 3, 4, 5});
  const Numbers y = run({"GatherND", {x, i64({3, 2}, {0, 3, 1, 0, -2, -3})}});
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == 3);
  CHECK(y[2] == 0);
}

TEST_CASE("ScatterElements: replaces, adds and multiplies") {
  const Tensor x = f64({3, 3}, {1, 1, 1, 2, 2, 2, 3, 3, 3});
  const Tensor indices = i64({2, 3}, {1, 0, 2, 0, 2, 1});
  const Tensor updates = f64({2, 3}, {10, 11, 12, 20, 21, 22});
  CHECK(run({"ScatterElements", {x, indices, updates}}) ==
        Numbers{20, 11, 1, 10, 2, 22, 3, 21, 12});
  const Tensor row = f64({1, 5}, {1, 2, 3, 4, 5});
  const Tensor twice = i64({1, 2}, {1, -4});
  const Attributes add{{"axis", std::int64_t{1}}, {"reduction", std::string("add")}};
  CHECK(run({"ScatterElements", {row, twice, f64({1, 2}, {0.5, 2})}, add}) ==
        Numbers{1, 4.5, 3, 4, 5});
  const Attributes mul{{"axis", std::int64_t{1}}, {"reduction", std::string("mul")}};
  CHECK(run({"ScatterElements", {row, twice, f64({1, 2}, {3, 2})}, mul}) ==
        Numbers{1, 12, 3, 4, 5});
}

TEST_CASE("ScatterElements: of two that meet the later one stays") {
  const Tensor x = f64({3}, {1, 2, 3});
  CHECK(run({"ScatterElements", {x, i64({3}, {1, 0, 1}), f64({3}, {7, 8, 9})}}) ==
        Numbers{8, 9, 3});
}

TEST_CASE("ScatterElements: an index outside is not silent") {
  const OpCall call{"ScatterElements", {f64({2}, {1, 2}), i64({1}, {2}), f64({1}, {7})}};
  for (double y : run(call)) CHECK(std::isnan(y));
}

TEST_CASE("ScatterND: slices and elements") {
  const Tensor x = f64({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor rows = i64({2, 1}, {-1, 1});
  const Tensor updates = f64({2, 2}, {10, 20, 30, 40});
  CHECK(run({"ScatterND", {x, rows, updates}}) == Numbers{1, 2, 30, 40, 5, 6, 10, 20});
  CHECK(run({"ScatterND", {x, rows, updates}, {{"reduction", std::string("add")}}}) ==
        Numbers{1, 2, 33, 44, 5, 6, 17, 28});
  CHECK(run({"ScatterND", {x, rows, updates}, {{"reduction", std::string("mul")}}}) ==
        Numbers{1, 2, 90, 160, 5, 6, 70, 160});
  CHECK(run({"ScatterND", {x, i64({2, 2}, {0, 1, 3, 0}), f64({2}, {50, 60})}}) ==
        Numbers{1, 50, 3, 4, 5, 6, 60, 8});
}

TEST_CASE("MultiplyRowsGrad: a factor of zero has the gradient that the others give it") {
  const Tensor g = f64({1, 1}, {5});
  const OpCall call{"MultiplyRowsGrad", {g, i64({3}, {0, 0, 0}), f64({3, 1}, {2, 0, 3})}};
  CHECK(run(call) == Numbers{0, 30, 0});
}

TEST_CASE("ScatterElements: the larger and the smaller stay, a NaN wins") {
  const Tensor x = f64({4}, {1, 5, 3, 4});
  const Tensor indices = i64({5}, {0, 1, 1, 2, 3});
  const Tensor updates = f64({5}, {2, 7, 6, 3, std::nan("")});
  const Numbers larger =
      run({"ScatterElements", {x, indices, updates}, {{"reduction", std::string("max")}}});
  CHECK(Numbers(larger.begin(), larger.begin() + 3) == Numbers{2, 7, 3});
  CHECK(std::isnan(larger[3]));
  const Numbers smaller =
      run({"ScatterElements", {x, indices, updates}, {{"reduction", std::string("min")}}});
  CHECK(Numbers(smaller.begin(), smaller.begin() + 3) == Numbers{1, 5, 3});
}

TEST_CASE("TensorScatter: steps go on at the beginning where the cache is circular") {
  const Tensor cache = f64({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Tensor update = f64({2, 2, 1}, {10, 20, 30, 40});
  CHECK(run({"TensorScatter", {cache, update, i64({2}, {1, 0})}}) == Numbers{1, 10, 20, 30, 40, 6});
  CHECK(run({"TensorScatter",
             {cache, update, i64({2}, {2, 0})},
             {{"mode", std::string("circular")}}}) == Numbers{20, 2, 10, 30, 40, 6});
  // A step outside must not reach the next example's.
  const Numbers outside = run({"TensorScatter", {cache, update, i64({2}, {2, 0})}});
  for (double element : outside) CHECK(std::isnan(element));
}

}  // namespace trainscope::test
