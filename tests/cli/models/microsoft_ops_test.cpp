// Ops of ONNX Runtime's training in a model: it trains as with the ops of ONNX that they stand for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/bundle/reader.h"
#include "engine/core/safetensors.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kWeights =
    "float[2,3] w = {0.5,-0.25,0.75,-0.5,1,0.25}, float[3,3] u = {1,-1,0.5,0.25,0.5,-0.75,-0.5,1,"
    "0.25}, float[3] s = {1,1,1}, float[3] b = {0,0.5,0}, float[3] m = {0,0,0}, float[3] v = "
    "{1,1,1}, float step = {0.0625}, float middle = {128.0}, uint8 zero = {128}";

// Losses and the last validation loss of a model of these nodes.
std::vector<double> losses(const TemporaryFolder& folder, const std::string& outputs,
                           const std::string& nodes, const Words& more) {
  const std::string inputs =
      outputs == "float loss" ? "float[N,2] x, int64[N] labels" : "float[N,2] x";
  write_model(fmt::format("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
                          "g ({}) => ({}) <{}> {{ {} }}",
                          inputs, outputs, kWeights, nodes),
              folder / "m.onnx");
  const std::string name = fmt::format("r{}", nodes.size());
  Words words = {"train",   "m.onnx", "--data",    "d.safetensors,validation=0.25",
                 "--batch", "4",      "--epochs",  "3",
                 "--lr",    "0.1",    "--run-dir", name,
                 "-q"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished finished = run(words, {}, folder.path());
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const Metrics metrics = RunReader::open(folder / name).metrics();
  std::vector<double> list;
  for (const StepRecord& step : metrics.steps) list.push_back(step.loss);
  list.push_back(metrics.evaluations.back().loss);
  CHECK(list[list.size() - 2] < list.front());
  return list;
}

void put_data(const TemporaryFolder& folder) {
  Tensor x({.dtype = DType::kF32, .shape = {16, 2}});
  Tensor labels({.dtype = DType::kI64, .shape = {16}});
  for (std::size_t n = 0; n < 16; ++n) {
    x.values<float>()[2 * n] = 0.25F * static_cast<float>(n % 5) - 0.5F;
    x.values<float>()[2 * n + 1] = 0.5F * static_cast<float>(n % 3) - 0.5F;
    labels.values<std::int64_t>()[n] = static_cast<std::int64_t>(n % 3);
  }
  const std::vector<NamedTensor> tensors = {{.name = "x", .tensor = x.view()},
                                            {.name = "labels", .tensor = labels.view()}};
  write_safetensors(folder / "d.safetensors", tensors);
}

}  // namespace

TEST_CASE("train: ops of ONNX Runtime's training train as those of ONNX") {
  const TemporaryFolder folder;
  put_data(folder);
  const std::string scores = "float[N,3] y";
  CHECK(losses(folder, scores,
               "h = MatMul(x, w) n, nm, nv, bm, bi = com.microsoft.BatchNormInternal(h, s, b, m, "
               "v) r = Relu(n) y = MatMul(r, u)",
               {}) ==
        losses(folder, scores,
               "h = MatMul(x, w) n, nm, nv = BatchNormalization<training_mode = 1>(h, s, b, m, v) "
               "r = Relu(n) y = MatMul(r, u)",
               {}));
  CHECK(losses(folder, scores,
               "q, k = com.microsoft.FakeQuant(w, step, middle) h = MatMul(x, q) r = Add(h, b) "
               "y = MatMul(r, u)",
               {}) ==
        losses(folder, scores,
               "i = QuantizeLinear(w, step, zero) q = DequantizeLinear(i, step, zero) "
               "h = MatMul(x, q) r = Add(h, b) y = MatMul(r, u)",
               {}));
  const std::string net = "h = MatMul(x, w) r = Add(h, b) y = MatMul(r, u)";
  CHECK(losses(folder, "float loss",
               net + " loss = com.microsoft.SparseSoftmaxCrossEntropy(y, labels)",
               {"--loss", "output:loss"}) == losses(folder, scores, net, {}));
}

}  // namespace trainscope::test
