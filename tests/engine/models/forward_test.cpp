// The builders' models, imported and run, against plain loops in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "engine/core/error.h"
#include "engine/models/models.h"
#include "engine/session.h"

using namespace trainscope;

namespace {

constexpr std::int64_t kLayers = 2, kHeads = 2, kWidth = 16, kVocab = 11, kContext = 12;

ModelArguments gpt2_arguments(bool bias, const std::string& activation) {
  return {{"layers", kLayers},   {"heads", kHeads}, {"embedding", kWidth},     {"vocab", kVocab},
          {"context", kContext}, {"bias", bias},    {"activation", activation}};
}

OnnxModel read(const PlainModel& model) {
  const std::string bytes = onnx_bytes(model);
  return OnnxModel::from_bytes(std::as_bytes(std::span(bytes)));
}

// Scales and biases off 1 and 0, weights large enough for every layer to matter.
PlainModel shaken(PlainModel model) {
  std::uint64_t stream = 0;
  for (PlainInitializer& each : model.initializers) {
    each.elements = [make = each.elements, stream] {
      Tensor elements = make();
      std::uint64_t index = 0;
      for (float& element : elements.values<float>()) {
        element += static_cast<float>(0.3 * random_normal(99, stream, index++));
      }
      return elements;
    };
    ++stream;
  }
  return model;
}

Tensor random_ids(std::int64_t batch, std::int64_t length, std::uint64_t seed = 3) {
  Tensor ids({.dtype = DType::kI64, .shape = {batch, length}});
  std::uint64_t index = 0;
  for (std::int64_t& id : ids.values<std::int64_t>()) {
    id = static_cast<std::int64_t>(random_below(seed, 0, index++, kVocab));
  }
  return ids;
}

Tensor logits_of(const OnnxModel& model, const Tensor& ids, DType float_type) {
  CompileOptions options;
  options.import.float_type = float_type;
  options.import.dims = {{"batch", ids.shape()[0]}, {"sequence", ids.shape()[1]}};
  options.training.mode = GraphMode::kInference;
  const auto compiled = compile(model, options);
  Executor executor(compiled->program);
  executor.load_initial();
  executor.write("ids", ids);
  executor.run_micro_step();
  return convert(executor.read("logits"), DType::kF64);
}

// --- GPT-2's forward for one row of ids, in loops ------------------------------------------------

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // [T][width]

class PlainGpt2 {
 public:
  PlainGpt2(const PlainModel& model, std::string activation) : activation_(std::move(activation)) {
    for (const PlainInitializer& each : model.initializers) {
      const Tensor wide = convert(each.elements(), DType::kF64);
      parameters_[each.name] = Row(wide.values<double>().begin(), wide.values<double>().end());
    }
  }

  Rows logits(std::span<const std::int64_t> ids) const {
    Rows x(ids.size(), Row(kWidth));
    for (std::size_t t = 0; t < ids.size(); ++t) {
      for (std::size_t c = 0; c < kWidth; ++c) {
        x[t][c] = at("wte.weight")[static_cast<std::size_t>(ids[t]) * kWidth + c] +
                  at("wpe.weight")[t * kWidth + c];
      }
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string path = "h." + std::to_string(layer);
      const Rows qkv = linear(path + ".attn.c_attn", norm(path + ".ln_1", x));
      add(x, linear(path + ".attn.c_proj", attention(qkv)));
      Rows hidden = linear(path + ".mlp.c_fc", norm(path + ".ln_2", x));
      for (Row& row : hidden)
        std::ranges::transform(row, row.begin(), [&](double v) { return act(v); });
      add(x, linear(path + ".mlp.c_proj", hidden));
    }
    Rows result(ids.size(), Row(kVocab, 0.0));
    const Rows last = norm("ln_f", x);
    for (std::size_t t = 0; t < ids.size(); ++t) {
      for (std::size_t i = 0; i < kVocab * kWidth; ++i) {
        result[t][i / kWidth] += last[t][i % kWidth] * at("wte.weight")[i];
      }
    }
    return result;
  }

 private:
  const Row& at(const std::string& name) const { return parameters_.at(name); }
  // Absent biases are zeros.
  double bias(const std::string& path, std::size_t i) const {
    const auto found = parameters_.find(path + ".bias");
    return found == parameters_.end() ? 0.0 : found->second[i];
  }

  double act(double x) const {
    if (activation_ == "relu") return std::max(x, 0.0);
    if (activation_ == "tanh") return std::tanh(x);
    if (activation_ == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }

  Rows norm(const std::string& path, const Rows& x) const {
    Rows result = x;
    for (Row& row : result) {
      double mean = 0, variance = 0;
      for (double v : row) mean += v / kWidth;
      for (double v : row) variance += (v - mean) * (v - mean) / kWidth;
      for (std::size_t c = 0; c < kWidth; ++c) {
        row[c] =
            (row[c] - mean) / std::sqrt(variance + 1e-5) * at(path + ".weight")[c] + bias(path, c);
      }
    }
    return result;
  }

  Rows linear(const std::string& path, const Rows& x) const {
    const Row& weight = at(path + ".weight");
    const std::size_t inputs = x.front().size();
    const std::size_t outputs = weight.size() / inputs;
    Rows result(x.size(), Row(outputs));
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t o = 0; o < outputs; ++o) {
        result[t][o] = bias(path, o);
        for (std::size_t i = 0; i < inputs; ++i) result[t][o] += x[t][i] * weight[i * outputs + o];
      }
    }
    return result;
  }

  static Rows attention(const Rows& qkv) {
    constexpr std::size_t kHead = kWidth / kHeads;
    Rows result(qkv.size(), Row(kWidth, 0.0));
    for (std::size_t i = 0; i < qkv.size() * kHeads; ++i) {
      const std::size_t t = i / kHeads;
      const std::size_t first = i % kHeads * kHead;
      Row weights(t + 1);
      double sum = 0;
      for (std::size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (std::size_t c = first; c < first + kHead; ++c) score += qkv[t][c] * qkv[s][kWidth + c];
        weights[s] = std::exp(score / std::sqrt(static_cast<double>(kHead)));
        sum += weights[s];
      }
      for (std::size_t s = 0; s <= t; ++s) {
        for (std::size_t c = first; c < first + kHead; ++c) {
          result[t][c] += weights[s] / sum * qkv[s][2 * kWidth + c];
        }
      }
    }
    return result;
  }

  static void add(Rows& x, const Rows& y) {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t c = 0; c < x[t].size(); ++c) x[t][c] += y[t][c];
    }
  }

  std::map<std::string, Row> parameters_;
  std::string activation_;
};

// The largest difference, relative to the largest number.
double distance(const Tensor& logits, const Tensor& ids, const PlainGpt2& plain) {
  const auto length = static_cast<std::size_t>(ids.shape()[1]);
  double most = 0, difference = 0;
  for (std::size_t row = 0; row < static_cast<std::size_t>(ids.shape()[0]); ++row) {
    const Rows expected = plain.logits(ids.values<std::int64_t>().subspan(row * length, length));
    for (std::size_t i = 0; i < length * kVocab; ++i) {
      const double wanted = expected[i / kVocab][i % kVocab];
      most = std::max(most, std::fabs(wanted));
      const double found = logits.values<double>()[row * length * kVocab + i];
      difference = std::max(difference, std::fabs(found - wanted));
    }
  }
  return difference / most;
}

// Loss before any step on uniformly random labels.
double initial_loss(const OnnxModel& model, GraphMode mode, std::int64_t length) {
  CompileOptions options;
  options.import.dims = {{"batch", 4}, {"sequence", length}};
  options.training.mode = mode;
  options.training.loss.output = "logits";
  const auto compiled = compile(model, options);
  Executor executor(compiled->program);
  executor.load_initial();
  executor.write("ids", random_ids(4, length));
  executor.write("labels", random_ids(4, length, 4));
  executor.run_micro_step();
  return read_loss(executor);
}

}  // namespace

TEST_CASE("gpt2: logits equal GPT-2's formulas, for every activation, with and without biases") {
  const Tensor ids = random_ids(3, 7);
  for (const std::string activation : {"gelu", "gelu_tanh", "relu", "tanh"}) {
    for (const bool bias : {true, false}) {
      CAPTURE(activation);
      CAPTURE(bias);
      const PlainModel built = shaken(build_model("gpt2", gpt2_arguments(bias, activation), 1));
      const OnnxModel model = read(built);
      const PlainGpt2 plain(built, activation);
      // Constants in the file are float32, also when the engine computes in double.
      CHECK(distance(logits_of(model, ids, DType::kF64), ids, plain) < 1e-6);
      CHECK(distance(logits_of(model, ids, DType::kF32), ids, plain) < 1e-4);
    }
  }
}

TEST_CASE("gpt2: one file serves every batch and every length up to the context") {
  const PlainModel built = shaken(build_model("gpt2", gpt2_arguments(true, "gelu"), 1));
  const OnnxModel model = read(built);
  const PlainGpt2 plain(built, "gelu");
  for (const auto& [batch, length] : {std::pair{1, 1}, std::pair{2, 5}, std::pair{5, 12}}) {
    const Tensor ids = random_ids(batch, length);
    const Tensor logits = logits_of(model, ids, DType::kF64);
    CHECK(logits.shape() == Shape{batch, length, kVocab});
    CHECK(distance(logits, ids, plain) < 1e-6);
  }
  CHECK_THROWS_AS(logits_of(model, random_ids(2, kContext + 1), DType::kF64), Error);
}

TEST_CASE("gpt2: a token changes nothing before it") {
  const OnnxModel model = read(shaken(build_model("gpt2", gpt2_arguments(true, "gelu_tanh"), 1)));
  Tensor ids = random_ids(1, 8);
  const Tensor before = logits_of(model, ids, DType::kF32);
  ids.values<std::int64_t>()[5] = (ids.values<std::int64_t>()[5] + 1) % kVocab;
  const Tensor after = logits_of(model, ids, DType::kF32);
  for (std::size_t t = 0; t < 8; ++t) {
    const auto row = [t](const Tensor& x) {
      return x.values<double>().subspan(t * kVocab, kVocab);
    };
    CHECK(std::ranges::equal(row(before), row(after)) == (t < 5));
  }
}

TEST_CASE("gpt2: the first loss is that of a guess, dropout acts in training only") {
  const double guess = std::log(static_cast<double>(kVocab));
  ModelArguments arguments = gpt2_arguments(true, "gelu");
  const OnnxModel sure = read(build_model("gpt2", arguments, 1));
  CHECK(initial_loss(sure, GraphMode::kTrain, 12) == doctest::Approx(guess).epsilon(0.05));
  arguments.insert_or_assign("dropout", 0.4);
  const OnnxModel dropping = read(build_model("gpt2", arguments, 1));
  CHECK(initial_loss(dropping, GraphMode::kEvaluate, 12) ==
        initial_loss(sure, GraphMode::kEvaluate, 12));
  CHECK(initial_loss(dropping, GraphMode::kTrain, 12) != initial_loss(sure, GraphMode::kTrain, 12));
}

TEST_CASE("mlp: logits equal the formula") {
  const PlainModel built =
      build_model("mlp", {{"dims", Ints{3, 4, 2}}, {"activation", std::string("tanh")}}, 1);
  const auto element = [&](std::size_t tensor, std::size_t i) {
    return static_cast<double>(built.initializers[tensor].elements().values<float>()[i]);
  };
  const OnnxModel model = read(built);
  CompileOptions options;
  options.import.dims = {{"batch", 1}};
  options.training.mode = GraphMode::kInference;
  const auto compiled = compile(model, options);
  Executor executor(compiled->program);
  executor.load_initial();
  const std::array<float, 3> x{0.5F, -2.0F, 1.5F};
  executor.write("x", Tensor::of<float>(Shape{1, 3}, x));
  executor.run_micro_step();
  std::array<double, 4> hidden{};
  for (std::size_t o = 0; o < 4; ++o) {
    double sum = element(1, o);
    for (std::size_t i = 0; i < 3; ++i) sum += element(0, o * 3 + i) * static_cast<double>(x[i]);
    hidden[o] = std::tanh(sum);
  }
  const Tensor logits = executor.read("logits");
  for (std::size_t o = 0; o < 2; ++o) {
    double sum = element(3, o);
    for (std::size_t i = 0; i < 4; ++i) sum += element(2, o * 4 + i) * hidden[i];
    CHECK(static_cast<double>(logits.values<float>()[o]) == doctest::Approx(sum).epsilon(1e-5));
  }
}
