// Classifiers of LSTM, GRU and RNN layers, and of an RNN that is a Scan, follow PyTorch: loss and
// gradients of a batch, the losses of ten steps of SGD. Format of the folders:
// tests/data/README.md.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "engine/core/safetensors.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/onnx/import.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;
using TensorsByName = std::map<std::string, Tensor>;

constexpr double kLimit = 1e-5;     // relative, of float32
constexpr double kLimitF64 = 1e-9;  // of float64
constexpr int kSteps = 10;

Numbers numbers_of(const Tensor& tensor) {
  const Tensor wide = convert(tensor, DType::kF64);
  return {wide.values<double>().begin(), wide.values<double>().end()};
}

double relative(const Numbers& got, const Numbers& want) {
  double difference = 0.0;
  double size = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(got[i] - want[i], 2.0);
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

// A model with its cross entropy and gradients.
class Classifier {
 public:
  Classifier(const std::filesystem::path& folder, DType dtype)
      : dtype_(dtype),
        evaluate_(evaluator(op_table(), cpu_kernels(), {.threads = 2})),
        stored_(SafetensorsFile::open(folder / "reference.safetensors")) {
    const OnnxModel model = OnnxModel::read(folder / "model.onnx");
    graph_ = to_graph(model, op_table(), {.float_type = dtype, .evaluate = &evaluate_});
    Builder b(graph_, op_table());
    b.set_evaluate(&evaluate_);
    b.set_provenance({.sources = {}, .pass = "test"});
    const ValueId logits = graph_.find("logits");
    const ValueId labels = b.input("labels", {DType::kI64, {b.shape(logits)[0]}});
    graph_.loss = b("CrossEntropy", {logits, labels});
    graph_.outputs = {graph_.loss};
    const TrainingOptions options{.mode = GraphMode::kGradients};
    PassContext context{
        .ops = op_table(), .evaluate = &evaluate_, .options = options, .pass = "differentiate"};
    std::ranges::find(default_passes(), "differentiate", &Pass::name)->run(graph_, context);
    for (const GradientOf& each : graph_.gradients) {
      parameters_.emplace(graph_.value(each.of).name, *graph_.value(each.of).data);
    }
  }

  const SafetensorsFile& stored() const { return stored_; }
  const TensorsByName& parameters() const { return parameters_; }

  struct Result {
    double loss = 0.0;
    std::map<std::string, Numbers> gradients;
  };
  Result run(int batch) const {
    TensorsByName data = parameters_;
    for (ValueId v : graph_.values_of(ValueKind::kInput)) {
      const Value& value = graph_.value(v);
      const Tensor given = stored_.tensor(fmt::format("batch.{}:{}", batch, value.name));
      data.emplace(value.name, convert(given, value.type.dtype));
    }
    const ReferenceValues values = reference_run(graph_, data, evaluate_);
    Result result{.loss = numbers_of(values.at(graph_.loss)).front(), .gradients = {}};
    for (const GradientOf& each : graph_.gradients) {
      result.gradients[graph_.value(each.of).name] = numbers_of(values.at(each.gradient));
    }
    return result;
  }

  // SGD as meta.json has it: momentum 0.9, decay 5e-4, rate 0.02.
  void step(const Result& result) {
    for (auto& [name, parameter] : parameters_) {
      Numbers p = numbers_of(parameter);
      Numbers& moment = moments_[name];
      moment.resize(p.size(), 0.0);
      for (std::size_t i = 0; i < p.size(); ++i) {
        moment[i] = 0.9 * moment[i] + result.gradients.at(name)[i] + 5e-4 * p[i];
        p[i] -= 0.02 * moment[i];
      }
      parameter = convert(Tensor::of<double>(parameter.shape(), p), dtype_);
    }
  }

 private:
  DType dtype_;
  Evaluate evaluate_;
  SafetensorsFile stored_;
  Graph graph_;
  TensorsByName parameters_;
  std::map<std::string, Numbers> moments_;
};

void check_folder(const std::string& name, std::size_t parameters, DType dtype) {
  const auto folder = std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "tests/data" / name;
  const double limit = dtype == DType::kF64 ? kLimitF64 : kLimit;
  Classifier classifier(folder, dtype);
  CHECK(classifier.parameters().size() == parameters);
  for (const auto& [parameter, gradient] : classifier.run(0).gradients) {
    CAPTURE(parameter);
    const Numbers truth = numbers_of(classifier.stored().tensor("grad.f64:" + parameter));
    CHECK(relative(gradient, truth) <= limit);
  }
  const SafetensorsFile curve = SafetensorsFile::open(folder / "sgdm.safetensors");
  const Numbers truth = numbers_of(curve.tensor("losses.f64:"));
  REQUIRE(truth.size() == kSteps);
  CHECK(truth.back() < 0.95 * truth.front());
  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    const Classifier::Result result = classifier.run(step % 2);
    CHECK(relative({result.loss}, {truth[static_cast<std::size_t>(step)]}) <= limit);
    classifier.step(result);
  }
}

}  // namespace

TEST_CASE("recurrent curves: LSTM, GRU, RNN and Scan classifiers follow PyTorch for ten steps") {
  for (const DType dtype : {DType::kF64, DType::kF32}) {
    CAPTURE(name_of(dtype));
    check_folder("models/lstm", 18, dtype);
    check_folder("models/gru", 10, dtype);
    check_folder("models/rnn", 10, dtype);
    check_folder("scan-rnn", 5, dtype);
  }
}

}  // namespace trainscope::test
