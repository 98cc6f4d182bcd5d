// Losses with their gradients, and steps of optimizers, against PyTorch's numbers in float64:
// tests/data/losses-and-steps, whose make.py says how they were made.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "tests/engine/autodiff/optimizer_run.h"

namespace trainscope::test {
namespace {

constexpr double kTableLimit = 1e-12;  // rounding of f64, in sums of another order

Json table() {
  return Json::parse(
      read_file(TRAINSCOPE_SOURCE_DIR "/tests/data/losses-and-steps/pytorch.json", 1 << 20));
}

std::vector<double> doubles(const Json& list) {
  std::vector<double> values;
  for (const Json& item : list.as_array()) values.push_back(item.as_number());
  return values;
}

std::vector<std::int64_t> whole(const Json& list) {
  std::vector<std::int64_t> values;
  for (double value : doubles(list)) values.push_back(static_cast<std::int64_t>(value));
  return values;
}

Tensor tensor_of(const Json& shape, const Json& values, DType dtype) {
  return convert(Tensor::of<double>(Shape(whole(shape)), doubles(values)), dtype);
}

// "huber:delta=0.4".
LossOptions loss_of(const std::string& text) {
  LossOptions loss;
  const std::size_t colon = text.find(':');
  for (LossKind kind : kLossKinds) {
    if (name_of(kind) == text.substr(0, colon)) loss.kind = kind;
  }
  std::map<std::string, double*> keys = {
      {"delta", &loss.delta}, {"gamma", &loss.gamma}, {"alpha", &loss.alpha}};
  for (std::string_view piece : split(std::string_view(text).substr(colon + 1), ',')) {
    const std::string key(piece.substr(0, piece.find('=')));
    const std::string_view value = piece.substr(piece.find('=') + 1);
    const double number = value == "none" ? -1.0 : *parse_number(value);
    if (keys.contains(key)) *keys.at(key) = number;
    if (key == "blank") loss.blank = static_cast<std::int64_t>(number);
    if (key == "most_labels") loss.most_labels = static_cast<std::int64_t>(number);
    if (key == "zero_infinity") loss.zero_infinity = number == 1.0;
  }
  return loss;
}

// A model whose only parameter is its output.
Graph parameter_graph(const Json& shape, const TrainingOptions& options,
                      const std::vector<std::string>& passes) {
  std::string zeros = "0";
  for (std::int64_t i = 1; i < Shape(whole(shape)).elements(); ++i) zeros += ",0";
  const std::string dims = fmt::format("{}", fmt::join(whole(shape), ","));
  const std::string text = fmt::format(
      "(float[1] u) => (float[{0}] y) <float[{0}] w = {{{1}}}> {{ y = Identity(w) }}", dims, zeros);
  return passed(graph(text, {.float_type = DType::kF64}), passes, options);
}

TEST_CASE("losses: values and gradients are PyTorch's") {
  const Json all = table();
  for (const Json& row : all.at("losses").as_array()) {
    const std::string name = row.get<std::string>("loss");
    CAPTURE(name);
    TrainingOptions options = training({});
    options.mode = GraphMode::kGradients;
    options.loss = loss_of(name);
    const Graph g =
        parameter_graph(row.at("shape"), options, {"loss", "decompose", "differentiate"});
    const bool ctc = options.loss.kind == LossKind::kCtc;
    Tensors inputs = random_inputs(g, 1);
    inputs.insert_or_assign("w", tensor_of(row.at("shape"), row.at("scores"), DType::kF64));
    inputs.insert_or_assign("labels", tensor_of(row.at("label_shape"), row.at("labels"),
                                                ctc ? DType::kI64 : DType::kF64));
    if (ctc) {
      const JsonArray& lengths = row.at("lengths").as_array();
      inputs.insert_or_assign(std::string(kInputLengths), Tensor::ints(whole(lengths[0])));
      inputs.insert_or_assign(std::string(kLabelLengths), Tensor::ints(whole(lengths[1])));
    }
    const Tensors results = results_of(g, inputs);
    const double value = numbers(results.at("loss"))[0];
    CHECK(std::abs(value - row.get<double>("value")) <= kTableLimit * std::max(1.0, value));
    CHECK(worst(numbers(results.at("d w")), doubles(row.at("gradient"))) <= kTableLimit);
    CHECK(worst(numbers(results.at("d w")),
                std::vector<double>(doubles(row.at("gradient")).size(), 0.0)) > 1e-3);
  }
}

OptimizerOptions optimizer_of(const Json& row) {
  OptimizerOptions o;
  for (OptimizerKind kind : kOptimizerKinds) {
    if (name_of(kind) == row.get<std::string>("optimizer")) o.kind = kind;
  }
  o.beta2 = 0.99;  // PyTorch's default of both
  const Json& options = row.at("options");
  o.beta1 = options.get_or<double>("beta1", o.beta1);
  o.beta2 = options.get_or<double>("beta2", options.get_or<double>("alpha", o.beta2));
  o.epsilon = options.get_or<double>("eps", o.epsilon);
  o.momentum = options.get_or<double>("momentum", 0.0);
  o.centered = options.get_or<bool>("centered", false);
  o.weight_decay = options.get_or<double>("weight_decay", 0.0);
  return o;
}

TEST_CASE("optimizers: RMSprop, Lion and averages of parameters go PyTorch's way") {
  const Json all = table();
  const Json shape = Json::parse("[2,3]");
  for (const Json& row : all.at("optimizers").as_array()) {
    CAPTURE(row.dump());
    TrainingOptions options = training(optimizer_of(row));
    options.ema_decay = all.get<double>("ema");
    Run run(parameter_graph(
        shape, options, {"loss", "decompose", "differentiate", "accumulate", "optimizer_step"}));
    const std::string average = std::string(kAveragePrefix) + "w";
    for (const std::string& name : {std::string("w"), average}) {
      run.inputs.insert_or_assign(name, tensor_of(shape, row.at("start"), DType::kF64));
    }
    run.inputs.insert_or_assign("labels", tensor_of(shape, row.at("target"), DType::kF64));
    for (std::int64_t step = 0; step < all.get<std::int64_t>("steps"); ++step) {
      run.one(all.get<double>("rate"));
      run.advance();
    }
    CHECK(worst(run.value("w"), doubles(row.at("trained"))) <= kTableLimit);
    CHECK(worst(run.value(average), doubles(row.at("average"))) <= kTableLimit);
    CHECK(worst(run.value("w"), doubles(row.at("start"))) > 1e-2);
    CHECK(worst(run.value("w"), run.value(average)) > 1e-2);
  }
}

}  // namespace
}  // namespace trainscope::test
