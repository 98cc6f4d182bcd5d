// The oracle of steps of small models: what is measured, and what overflows.
#include "engine/run/numerics/oracle.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/engine/run/run_tools.h"

namespace trainscope {
namespace {

constexpr std::int64_t kExamples = 4;

// By key, of a step on `x` [4,3].
std::map<std::string, OracleRow> oracle_of(std::string_view text, float x,
                                           OptimizerKind optimizer = OptimizerKind::kSgd) {
  CompileOptions options;
  options.import.dims["n"] = kExamples;
  options.training.mode = GraphMode::kTrain;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  options.training.optimizer.kind = optimizer;
  std::map<std::string, Tensor> batch;
  Tensor inputs({.dtype = DType::kF32, .shape = {kExamples, 3}});
  for (std::size_t i = 0; i < 12; ++i) {
    inputs.values<float>()[i] = x * (1.0F + 0.1F * static_cast<float>(i));
  }
  batch.emplace("x", std::move(inputs));
  batch.emplace("labels", Tensor({.dtype = DType::kF32, .shape = {kExamples, 2}}));
  std::map<std::string, OracleRow> rows;
  for (OracleRow& row : Oracle(test::model(text), options).rows(batch, {}, {})) {
    rows.emplace(row.row.key(), std::move(row));
  }
  return rows;
}

TEST_CASE("oracle: values and gradients of a step, with what f32 makes of them") {
  const auto rows = oracle_of(
      "(float[n,3] x) => (float[n,2] y)"
      "<float[3,2] w = {1, 0.3, 0.7, 1, 0.1, 0.5}> { h = MatMul(x, w) y = Tanh(h) }",
      0.1F);
  for (const std::string key : {"act:h", "act:y", "grad:w", "loss:loss"}) {
    CAPTURE(key);
    REQUIRE(rows.contains(key));
    const OracleRow& row = rows.at(key);
    REQUIRE(row.noise.has_value());
    CHECK(*row.noise < 1e-6);
    CHECK(row.row.dtype == "f64");
    CHECK(row.row.statistics.l2 > 0.0);
  }
  CHECK(*rows.at("act:h").noise > 0.0);
}

// e^113 and more are beyond f32, and finite in f64.
TEST_CASE("oracle: what overflows in f32 has no noise, what comes before it has") {
  const auto rows = oracle_of(
      "(float[n,3] x) => (float[n,2] y)"
      "<float[3,2] w = {1, 0.3, 0.7, 1, 0.1, 0.5}> { h = MatMul(x, w) y = Exp(h) }",
      60.0F);
  REQUIRE(rows.contains("act:h"));
  CHECK(rows.at("act:h").noise.has_value());
  REQUIRE(rows.contains("act:y"));
  CHECK_FALSE(rows.at("act:y").noise.has_value());
  CHECK(std::isfinite(rows.at("act:y").row.statistics.l2));
  REQUIRE(rows.contains("grad:w"));
  CHECK_FALSE(rows.at("grad:w").noise.has_value());
}

// Neither input of the second unit's Relu is above 0: its gradients are exactly 0. The first one's
// are large, but for that of the third weight, whose input is tiny.
TEST_CASE("oracle: what noise makes of the first step, where steps do not depend on sizes") {
  const std::string_view text =
      "(float[n,3] x) => (float[n,2] y)"
      "<float[3,2] w = {1, -1, 0.3, -1, 0.7, -1}, float[1,3] size = {1, 1, 1e-9}> "
      "{ s = Mul(x, size) h = MatMul(s, w) y = Relu(h) }";
  CHECK_FALSE(oracle_of(text, 0.1F).at("grad:w").step_noise.has_value());
  const auto rows = oracle_of(text, 0.1F, OptimizerKind::kAdamW);
  REQUIRE(rows.at("grad:w").step_noise.has_value());
  CHECK(*rows.at("grad:w").step_noise < 1e-2);
  // Softmax of two: the gradients of both biases add up to 0, in f32 but nearly so.
  const auto shifted = oracle_of(
      "(float[n,3] x) => (float[n,2] y)"
      "<float[3,2] w = {1, 0.3, 0.7, 1, 0.1, 0.5}, float[1] shift = {0.2}> "
      "{ h = MatMul(x, w) s = Add(h, shift) y = Softmax(s) }",
      0.1F, OptimizerKind::kAdamW);
  REQUIRE(shifted.at("grad:shift").step_noise.has_value());
  CHECK(*shifted.at("grad:shift").step_noise > 0.1);
  CHECK_FALSE(rows.at("act:h").step_noise.has_value());
}

TEST_CASE("oracle: a batch of one example has no other order") {
  CompileOptions options;
  options.import.dims["n"] = 1;
  options.training.mode = GraphMode::kTrain;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  const Oracle oracle(test::model("(float[n,3] x) => (float[n,2] y)"
                                  "<float[3,2] w = {1, 0, 0, 1, 0.5, 0.5}> { y = MatMul(x, w) }"),
                      options);
  const std::map<std::string, Tensor> batch = {
      {"x", Tensor::of<float>(Shape{1, 3}, std::vector<float>{0.1F, 0.2F, 0.3F})},
      {"labels", Tensor({.dtype = DType::kF32, .shape = {1, 2}})}};
  for (const OracleRow& row : oracle.rows(batch, {}, {})) {
    CAPTURE(row.row.key());
    CHECK(row.noise.has_value());
  }
}

}  // namespace
}  // namespace trainscope
