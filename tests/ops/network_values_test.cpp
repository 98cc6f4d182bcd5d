// ConvTranspose, InstanceNormalization, LRN, norms and ONNX's losses on small literals.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/backward.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

Numbers run(const OpCall& call) { return numbers(evaluate(call)[0]); }

void check_close(const Numbers& got, const Numbers& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-9));
}

Tensor row() { return f64({1, 1, 3}, {1, 2, 3}); }
Tensor kernel() { return f64({1, 1, 3}, {1, 10, 100}); }

}  // namespace

TEST_CASE("ConvTranspose: windows are laid over each other") {
  CHECK(run({"ConvTranspose", {row(), kernel()}}) == Numbers{1, 12, 123, 230, 300});
  CHECK(run({"ConvTranspose", {row(), kernel()}, {{"strides", Ints{2}}}}) ==
        Numbers{1, 10, 102, 20, 203, 30, 300});
  CHECK(run({"ConvTranspose", {row(), kernel()}, {{"dilations", Ints{2}}}}) ==
        Numbers{1, 2, 13, 20, 130, 200, 300});
  CHECK(run({"ConvTranspose", {row(), kernel(), f64({1}, {5})}, {{"pads", Ints{1, 2}}}}) ==
        Numbers{17, 128});
}

TEST_CASE("ConvTranspose: output padding beyond the stride is zeros") {
  const Attributes one{{"strides", Ints{2}}, {"output_padding", Ints{1}}};
  CHECK(run({"ConvTranspose", {row(), kernel()}, one}) == Numbers{1, 10, 102, 20, 203, 30, 300, 0});
  const Attributes two{{"output_padding", Ints{2}}, {"dilations", Ints{3}}};
  CHECK(run({"ConvTranspose", {row(), kernel()}, two}) ==
        Numbers{1, 2, 3, 10, 20, 30, 100, 200, 300, 0, 0});
}

TEST_CASE("ConvTranspose: pads follow from the output's shape") {
  const auto shaped = [](std::int64_t size, const std::string& auto_pad) {
    const Attributes attributes{
        {"strides", Ints{2}}, {"output_shape", Ints{size}}, {"auto_pad", auto_pad}};
    return run({"ConvTranspose", {row(), kernel()}, attributes});
  };
  CHECK(shaped(6, "NOTSET") == Numbers{10, 102, 20, 203, 30, 300});
  CHECK(shaped(6, "SAME_UPPER") == Numbers{1, 10, 102, 20, 203, 30});
  CHECK(shaped(9, "NOTSET") == Numbers{1, 10, 102, 20, 203, 30, 300, 0, 0});
  const Attributes lower{{"strides", Ints{2}}, {"auto_pad", std::string("SAME_LOWER")}};
  CHECK(run({"ConvTranspose", {row(), kernel()}, lower}) == Numbers{10, 102, 20, 203, 30, 300});
}

TEST_CASE("ConvTranspose: groups and channels") {
  const Tensor x = f64({1, 2, 1}, {1, 2});
  const Tensor w = f64({2, 2, 1}, {1, 10, 3, 30});
  CHECK(run({"ConvTranspose", {x, w}}) == Numbers{7, 70});
  CHECK(run({"ConvTranspose", {x, w}, {{"group", std::int64_t{2}}}}) == Numbers{1, 10, 6, 60});
}

TEST_CASE("InstanceNormalization: each channel of each example by itself") {
  const Tensor x = f64({2, 1, 2}, {1, 3, 10, 30});
  const Attributes exact{{"epsilon", 0.0}};
  check_close(run({"InstanceNormalization", {x, f64({1}, {2}), f64({1}, {5})}, exact}),
              {3, 7, 3, 7});
  check_close(run({"InstanceNormalization", {x, f64({1}, {1}), f64({1}, {0})}, {{"epsilon", 3.0}}}),
              {-0.5, 0.5, -10 / std::sqrt(103), 10 / std::sqrt(103)});
}

TEST_CASE("LRN: sums of squares over neighbouring channels") {
  const Tensor x = f64({1, 4, 1}, {1, 2, 3, 4});
  const Attributes odd{{"size", std::int64_t{3}}, {"alpha", 3.0}, {"beta", 1.0}, {"bias", 1.0}};
  check_close(run({"LRN", {x}, odd}), {1.0 / 6, 2.0 / 15, 3.0 / 30, 4.0 / 26});
  const Attributes even{{"size", std::int64_t{2}}, {"alpha", 2.0}, {"beta", 1.0}, {"bias", 0.0}};
  check_close(run({"LRN", {x}, even}), {1.0 / 5, 2.0 / 13, 3.0 / 25, 4.0 / 16});
}

TEST_CASE("norms: LpNormalization, LpPool, GlobalLpPool; GlobalMaxPool") {
  check_close(run({"LpNormalization", {f64({1, 2}, {3, -4})}}), {0.6, -0.8});
  check_close(run({"LpNormalization", {f64({1, 2}, {1, -3})}, {{"p", std::int64_t{1}}}}),
              {0.25, -0.75});
  const Tensor x = f64({1, 1, 3}, {3, -4, 12});
  check_close(run({"LpPool", {x}, {{"kernel_shape", Ints{2}}}}), {5, std::sqrt(160)});
  check_close(run({"GlobalLpPool", {x}}), {13});
  check_close(run({"GlobalLpPool", {x}, {{"p", std::int64_t{1}}}}), {19});
  check_close(run({"GlobalMaxPool", {x}}), {12});
}

TEST_CASE("norms: LpNormalization of zeros is 0, and so is its gradient") {
  const OpTable ops = standard_ops();
  const Evaluate evaluate_node =
      evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
  for (const std::int64_t order : {1, 2}) {
    Graph graph;
    Builder b(graph, ops);
    b.set_provenance({.sources = {}, .pass = "test"});
    const ValueId x = b.input("x", {DType::kF64, {2, 2}});
    const ValueId dy = b.input("dy", {DType::kF64, {2, 2}});
    const ValueId y = b("LpNormalization", {x}, {{"p", order}});
    const ValueId dx = backward(b, graph.value(y).producer, {dy}, {true})[0];
    const ReferenceValues values =
        reference_run(graph, {{"x", f64({2, 2}, {0, 0, 3, -4})}, {"dy", f64({2, 2}, {1, 2, 1, 2})}},
                      evaluate_node);
    const double norm = order == 1 ? 7 : 5;
    check_close(numbers(values.at(y)), {0, 0, 3 / norm, -4 / norm});
    // (dy - the norm's gradient * (dy . y)) / norm, where the norm's gradient is sign(x) or y.
    const double along = (3 - 8) / norm;
    const double right = order == 1 ? -1 : -4 / norm;
    const double left = order == 1 ? 1 : 3 / norm;
    check_close(numbers(values.at(dx)),
                {0, 0, (1 - left * along) / norm, (2 - right * along) / norm});
  }
}

TEST_CASE("NegativeLogLikelihoodLoss: reductions, weights, ignored labels") {
  const Tensor x = f64({3, 2}, {-1, -2, -3, -4, -5, -6});
  const Tensor labels = i64({3}, {1, 0, 1});
  const Tensor weights = f64({2}, {10, 1});
  const auto loss = [&](const std::string& reduction, std::vector<Tensor> inputs) {
    return run({"NegativeLogLikelihoodLoss", std::move(inputs), {{"reduction", reduction}}});
  };
  CHECK(loss("none", {x, labels}) == Numbers{2, 3, 6});
  CHECK(loss("sum", {x, labels}) == Numbers{11});
  check_close(loss("mean", {x, labels}), {11.0 / 3});
  CHECK(loss("none", {x, labels, weights}) == Numbers{2, 30, 6});
  check_close(loss("mean", {x, labels, weights}), {38.0 / 12});
  const Attributes ignore{{"ignore_index", std::int64_t{0}}};
  check_close(run({"NegativeLogLikelihoodLoss", {x, labels}, ignore}), {4});
  check_close(run({"NegativeLogLikelihoodLoss", {x, labels, weights}, ignore}), {4});
}

TEST_CASE("NegativeLogLikelihoodLoss: a label outside is NaN, an ignored one may be outside") {
  const Tensor x = f64({2, 2}, {-1, -2, -3, -4});
  const Tensor labels = i64({2}, {1, 9});
  CHECK(std::isnan(run({"NegativeLogLikelihoodLoss", {x, labels}})[0]));
  const Attributes none{{"reduction", std::string("none")}, {"ignore_index", std::int64_t{9}}};
  CHECK(run({"NegativeLogLikelihoodLoss", {x, labels}, none}) == Numbers{2, 0});
}

TEST_CASE("SoftmaxCrossEntropyLoss: the loss and the logarithms of the probabilities") {
  const double third = std::log(3.0);
  const Tensor x = f64({2, 2}, {0, std::log(2.0), 0, 0});  // probabilities 1/3, 2/3; 1/2, 1/2
  const Tensor labels = i64({2}, {0, 1});
  const double half = std::log(2.0);
  check_close(run({"SoftmaxCrossEntropyLoss", {x, labels}}), {(third + half) / 2});
  const std::vector<Tensor> both = evaluate({.op = "SoftmaxCrossEntropyLoss",
                                             .inputs = {x, labels, f64({2}, {3, 1})},
                                             .attributes = {{"reduction", std::string("mean")}},
                                             .outputs = 2});
  check_close(numbers(both[0]), {(3 * third + half) / 4});
  check_close(numbers(both[1]), {-third, half - third, -half, -half});
}

TEST_CASE("SoftmaxCrossEntropyLoss: classes are axis 1, labels have the other axes") {
  const double half = std::log(2.0);
  const Tensor x = f64({1, 2, 3}, {0, 0, 0, 0, 0, 0});
  const Attributes none{{"reduction", std::string("none")}, {"ignore_index", std::int64_t{-1}}};
  check_close(run({"SoftmaxCrossEntropyLoss", {x, i64({1, 3}, {0, -1, 1})}, none}),
              {half, 0, half});
}

}  // namespace trainscope::test
