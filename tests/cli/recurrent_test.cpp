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
#include "engine/core/file.h"
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

TEST_CASE("recurrent: the plan has room for the longest loop of the data, or more memory is told") {
  const TemporaryFolder folder;
  write_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,3] x, int64[N] lengths) => "
      "(float[N,2] logits) <float[3,3] w = {0.1,0.9,0.2,0.8,0.3,0.1,0.2,0.4,0.7}, float[3,2] v = "
      "{0.3,0.2,-0.1,0.4,0.5,0.1}> { n = ReduceMax<keepdims = 0>(lengths) h = Loop <body = b "
      "(int64 "
      "i, bool c, float[N,3] p) => (bool d, float[N,3] q) { d = Identity(c) m = MatMul(p, w) q = "
      "Tanh(m) }> (n, , x) logits = MatMul(h, v) }",
      folder / "m.onnx");
  constexpr std::int64_t kExamples = 6;
  Tensor x({.dtype = DType::kF32, .shape = {kExamples, 3}});
  for (std::size_t i = 0; i < 18; ++i) x.values<float>()[i] = 0.1F * static_cast<float>(i % 5);
  const std::vector<std::int64_t> of_examples = {1, 2, 40, 4, 2, 9};
  const std::vector<std::int64_t> classes = {0, 1, 1, 0, 1, 0};
  const Tensor lengths = Tensor::of<std::int64_t>(Shape{kExamples}, of_examples);
  const Tensor labels = Tensor::of<std::int64_t>(Shape{kExamples}, classes);
  const std::vector<NamedTensor> data = {{.name = "x", .tensor = x.view()},
                                         {.name = "lengths", .tensor = lengths.view()},
                                         {.name = "labels", .tensor = labels.view()}};
  write_safetensors(folder / "data.safetensors", data);
  const auto train = [&](const std::string& run_folder, std::vector<std::string> more) {
    std::vector<std::string> words = {"train",   "m.onnx",
                                      "--data",  "tensors:data.safetensors",
                                      "--batch", "2",
                                      "--steps", "6",
                                      "--json",  "--validation",
                                      "none",    "--run-dir",
                                      run_folder};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words, {}, folder.path());
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return finished.json();
  };
  const Json whole = train("whole", {});
  CHECK_FALSE(whole.contains("second_arena_bytes"));
  CHECK(whole.get<std::int64_t>("used_bytes") == whole.get<std::int64_t>("predicted_bytes"));
  const Json manifest = read_json_file(folder / "whole/manifest.json");
  CHECK(manifest.at("options").get<std::int64_t>("max-trips") == 40);
  const Json small = train("small", {"--max-trips", "3"});
  CHECK(small.get<std::int64_t>("used_bytes") == small.get<std::int64_t>("predicted_bytes"));
  CHECK(small.get<std::int64_t>("used_bytes") < whole.get<std::int64_t>("used_bytes"));
  CHECK(small.get<std::int64_t>("most_trips") == 40);
  // States [2,3] of 37 trips, in blocks for 16 and 32.
  CHECK(small.get<std::int64_t>("second_arena_bytes") == (16 + 32) * 2 * 3 * 4);
  CHECK(small.get<double>("last_loss") == whole.get<double>("last_loss"));
}

}  // namespace trainscope::test
