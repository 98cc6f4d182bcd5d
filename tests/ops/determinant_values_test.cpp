// Det and its gradient where the matrix has no inverse, integers' bits, and random numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

Numbers run(const OpCall& call) { return numbers(evaluate(call)[0]); }

struct Moments {
  double mean = 0.0;
  double variance = 0.0;
};
Moments moments_of(const Numbers& numbers) {
  Moments m;
  const auto n = static_cast<double>(numbers.size());
  for (double v : numbers) m.mean += v / n;
  for (double v : numbers) m.variance += (v - m.mean) * (v - m.mean) / n;
  return m;
}

}  // namespace

TEST_CASE("Det: signs of exchanges, singular matrices") {
  CHECK(run({"Det", {f64({2, 2}, {0, 1, 1, 0})}}) == Numbers{-1});
  CHECK(run({"Det", {f64({2, 2}, {1, 2, 2, 4})}}) == Numbers{0});
  CHECK(run({"Det", {f64({0, 0}, {})}}) == Numbers{1});
  CHECK(run({"Det", {f64({3, 3}, {2, 0, 0, 0, 0, 3, 0, 4, 0})}}) == Numbers{-24});
}

TEST_CASE("Det: the gradient is the cofactors, of a singular matrix too") {
  const Tensor one = f64({}, {1});
  CHECK(run({"DetGrad", {one, f64({2, 2}, {1, 2, 2, 4})}}) == Numbers{4, -2, -2, 1});
  CHECK(run({"DetGrad", {one, f64({2, 2}, {0, 0, 0, 0})}}) == Numbers{0, 0, 0, 0});
  CHECK(run({"DetGrad", {one, f64({1, 1}, {0})}}) == Numbers{1});
  // Of rank 2 the cofactors are not 0, of rank 1 they are.
  CHECK(run({"DetGrad", {one, f64({3, 3}, {1, 0, 0, 0, 2, 0, 0, 0, 0})}}) ==
        Numbers{0, 0, 0, 0, 0, 0, 0, 0, 2});
  CHECK(run({"DetGrad", {one, f64({3, 3}, {1, 2, 4, 2, 4, 8, 4, 8, 16})}}) == Numbers(9, 0.0));
}

TEST_CASE("BitShift: places beyond all bits leave nothing but the sign") {
  const Tensor x = i64({4}, {-8, 4, -1, 3});
  const Tensor places = i64({4}, {-1, 1, 64, 62});
  const auto shift = [&](const std::string& direction) {
    return run({"BitShift", {x, places}, {{"direction", direction}}});
  };
  CHECK(shift("RIGHT") == Numbers{-1, 2, -1, 0});
  CHECK(shift("LEFT") == Numbers{0, 8, 0, -4611686018427387904.0});
}

TEST_CASE("random numbers: the moments that are asked for, others for another step or stream") {
  const auto drawn = [](std::string_view op, std::int64_t step, std::int64_t stream) {
    return run({op,
                {i64({}, {step})},
                {{"shape", Ints{100000}}, {"dtype", std::int64_t{11}}, {"stream", stream}}});
  };
  const Moments uniform = moments_of(drawn("UniformNumbers", 1, 0));
  CHECK(std::abs(uniform.mean - 0.5) < 0.005);
  CHECK(std::abs(uniform.variance - 1.0 / 12) < 0.002);
  const Moments normal = moments_of(drawn("NormalNumbers", 1, 0));
  CHECK(std::abs(normal.mean) < 0.02);
  CHECK(std::abs(normal.variance - 1.0) < 0.03);
  CHECK(drawn("UniformNumbers", 1, 0) == drawn("UniformNumbers", 1, 0));
  CHECK(drawn("UniformNumbers", 1, 0) != drawn("UniformNumbers", 2, 0));
  CHECK(drawn("UniformNumbers", 1, 0) != drawn("UniformNumbers", 1, 1));
}

TEST_CASE("random numbers: Bernoulli and Multinomial draw by the probabilities") {
  const Numbers coins =
      run({"Bernoulli", {evaluate({"Expand", {f64({}, {0.25}), i64({1}, {40000})}})[0]}});
  CHECK(std::abs(moments_of(coins).mean - 0.25) < 0.01);
  const Tensor odds = f64({1, 3}, {std::log(6.0), std::log(1.0), std::log(3.0)});
  const Numbers classes = run({"Multinomial", {odds}, {{"sample_size", std::int64_t{40000}}}});
  std::vector<double> share(3, 0.0);
  for (double c : classes) share[static_cast<std::size_t>(c)] += 1.0 / 40000;
  CHECK(std::abs(share[0] - 0.6) < 0.01);
  CHECK(std::abs(share[1] - 0.1) < 0.01);
  CHECK(std::abs(share[2] - 0.3) < 0.01);
}

TEST_CASE("random numbers: what cannot be drawn is refused") {
  CHECK_THROWS_AS(run({"RandomNormalLike", {i64({2}, {1, 2})}}), Error);
  CHECK_THROWS_AS(
      run({"UniformNumbers", {i64({}, {1})}, {{"shape", Ints{2}}, {"dtype", std::int64_t{7}}}}),
      Error);
}

}  // namespace trainscope::test
