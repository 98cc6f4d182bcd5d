// Classifiers of LSTM, GRU and RNN layers, and of an RNN that is a Scan, are trained by the program
// as PyTorch trains them: ten steps of SGD on two batches in turn, the losses in float64. Format of
// the folders: tests/data/README.md.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/bundle/reader.h"
#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

constexpr double kLimit = 1e-5;
constexpr std::size_t kSteps = 10;

// The examples of both batches, one behind the other.
Tensor both_batches(const SafetensorsFile& stored, const std::string& name) {
  const Tensor first = stored.tensor("batch.0:" + name);
  const Tensor second = stored.tensor("batch.1:" + name);
  Shape shape = first.shape();
  shape[0] += second.shape()[0];
  Tensor both({.dtype = first.dtype(), .shape = shape});
  std::copy_n(first.data(), first.bytes(), both.data());
  std::copy_n(second.data(), second.bytes(), both.data() + first.bytes());
  return both;
}

// Trains in the folder "r" of `folder`, on the data of `source`.
RunReader trained(const TemporaryFolder& folder, const fs::path& source,
                  const std::vector<std::string>& more) {
  const SafetensorsFile stored = SafetensorsFile::open(source / "reference.safetensors");
  const Tensor x = both_batches(stored, "x");
  const Tensor labels = both_batches(stored, "labels");
  const std::vector<NamedTensor> data = {{.name = "x", .tensor = x.view()},
                                         {.name = "labels", .tensor = labels.view()}};
  write_safetensors(folder / "data.safetensors", data);
  std::vector<std::string> words = {"train",          (source / "model.onnx").string(),
                                    "--data",         "tensors:data.safetensors",
                                    "--shuffle",      "none",
                                    "--validation",   "none",
                                    "--steps",        std::to_string(kSteps),
                                    "--optimizer",    "sgd",
                                    "--lr",           "0.02",
                                    "--momentum",     "0.9",
                                    "--weight-decay", "5e-4",
                                    "--run-dir",      "r"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished finished = run(words, {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  return RunReader::open(folder / "r");
}

// The largest difference of the losses of all steps, relative to PyTorch's.
double largest_difference(const RunReader& run, const fs::path& source) {
  const SafetensorsFile curve = SafetensorsFile::open(source / "sgdm.safetensors");
  const Tensor truth = convert(curve.tensor("losses.f64:"), DType::kF64);
  REQUIRE(truth.elements() == kSteps);
  const Metrics metrics = run.metrics();
  REQUIRE(metrics.steps.size() == kSteps);
  double largest = 0.0;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const double want = truth.values<double>()[step];
    largest = std::max(largest, std::abs(metrics.steps[step].loss - want) / want);
  }
  return largest;
}

void follows(const std::string& name, const std::vector<std::string>& more = {}) {
  const fs::path source = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data" / name;
  const TemporaryFolder folder;
  const double difference = largest_difference(trained(folder, source, more), source);
  MESSAGE(fmt::format("{}: losses differ by at most {:.2g}", name, difference));
  CHECK(difference <= kLimit);
}

}  // namespace

TEST_CASE("recurrent: an LSTM of two layers in both directions follows PyTorch") {
  follows("models/lstm");
}
TEST_CASE("recurrent: a GRU of two layers follows PyTorch") { follows("models/gru"); }
TEST_CASE("recurrent: an RNN in both directions follows PyTorch") { follows("models/rnn"); }

TEST_CASE("recurrent: an RNN that is a Scan follows PyTorch, also where its trips run again") {
  follows("scan-rnn");
  follows("scan-rnn", {"--recompute", "2"});
}

}  // namespace trainscope::test
