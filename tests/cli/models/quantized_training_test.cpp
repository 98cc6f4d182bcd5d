// Quantization-aware training: a model with QuantizeLinear and DequantizeLinear around weights and
// activations, against the numbers of PyTorch's fake quantization.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "engine/bundle/reader.h"
#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

fs::path data_file(std::string_view name) {
  return fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/qat-mlp" / name;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.type() == b.type());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.values<float>().size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a.values<float>()[i]) -
                                         static_cast<double>(b.values<float>()[i])));
  }
  return largest;
}

}  // namespace

TEST_CASE("train: quantized weights and activations train as in PyTorch") {
  const TemporaryFolder folder;
  const Finished finished =
      run({"train", data_file("model.onnx").string(), "--data",
           "tensors:" + data_file("batch.safetensors").string() + ",validation=0", "--loss", "mse",
           "--batch", "16", "--optimizer", "sgd", "--lr", "0.1", "--steps", "6", "--run-dir", "r",
           "-q"},
          {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const SafetensorsFile expected = SafetensorsFile::open(data_file("expected.safetensors"));
  const Tensor losses = expected.tensor("losses");
  const Metrics metrics = RunReader::open(folder / "r").metrics();
  REQUIRE(metrics.steps.size() == losses.values<float>().size());
  for (std::size_t i = 0; i < metrics.steps.size(); ++i) {
    CHECK(std::abs(metrics.steps[i].loss - static_cast<double>(losses.values<float>()[i])) < 1e-6);
  }
  const SafetensorsFile trained =
      SafetensorsFile::open(folder / "r/checkpoints/step-00000006/model.safetensors");
  for (const std::string name : {"w1", "b1", "w2", "b2"}) {
    CHECK(largest_difference(trained.tensor(name), expected.tensor("after/" + name)) < 1e-6);
  }
}

}  // namespace trainscope::test
