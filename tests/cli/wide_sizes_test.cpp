// Models whose sizes are beyond 32 bits, and FLOPs beyond 63: a result, or an error that names the
// node or the file. Each once ended by a signal, or by a library's exception.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_codes.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

// A verb on a model in ONNX's text form.
Finished run_on(const std::string& text, std::vector<std::string> words) {
  const TemporaryFolder folder;
  const std::string model = (folder / "m.onnx").string();
  write_model("<ir_version: 8, opset_import: [\"\" : 17]> g " + text, model);
  words.insert(words.begin() + 1, model);
  return run(words, {}, folder.path());
}

// Done, or refused with one error line.
void check_ends_well(const Finished& finished) {
  CAPTURE(finished.err);
  const bool done = finished.exit_code == 0;
  const bool refused = (finished.exit_code == 3 || finished.exit_code == 5) &&
                       finished.err.find("error: ") != std::string::npos;
  CHECK((done || refused));
}

const std::vector<std::string> kModels = {
    // 2^40 rows of a product.
    "(float[1099511627776,1] x) => (float[1099511627776,1] y) <float[1,1] w = {1}>"
    "{ y = Gemm(x, w) }",
    // 2^32 terms of its sums.
    "(float[1,4294967296] x) => (float[1,1] y) <float[1,1] one = {1}>"
    "{ t = Transpose(x) z = Mul(t, one) y = MatMul(x, z) }",
    "(float[1,1,4294967296,4] x) => (float[1,1,4294967295,3] y) <float[1,1,2,2] w = {1,2,3,4}>"
    "{ y = Conv(x, w) }",
    "(float[1,1,4,1] x) => (float[1,1,3221225473,1] y) <float[1,1,1,1] w = {1}>"
    "{ y = ConvTranspose<strides=[1073741824,1]>(x, w) }",
    "(float[1,1,4294967296,4] x) => (float[1,1,4294967295,3] y) <float[1] w = {1}>"
    "{ z = Mul(x, w) y = AveragePool<kernel_shape=[2,2]>(z) }",
    "(float[5,1,8589934592,32] x) => (float[5,1,4294967296,16] y)"
    "<float[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}>"
    "{ y = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w) }"};

}  // namespace

TEST_CASE("wide sizes: check and plan end with a result or an error") {
  for (const std::string& text : kModels) {
    CAPTURE(text);
    check_ends_well(run_on(text, {"check", "--loss", "mse:output=y"}));
    check_ends_well(run_on(text, {"plan", "--loss", "mse:output=y", "--threads", "3"}));
  }
}

TEST_CASE("wide sizes: FLOPs beyond 63 bits are shown as the largest number") {
  const Finished finished = run_on(
      "(float[4194304,4194304] x) => (float[4194304,4194304] y)"
      "<float[1,1] w = {1}, int64[2] s = {4194304,4194304}>"
      "{ W = Expand(w, s) y = MatMul(x, W) }",
      {"inspect", "--loss", "mse:output=y", "--stages"});
  CAPTURE(finished.err);
  CHECK(finished.exit_code == 0);
  CHECK(finished.out.find("9223372036854775807") != std::string::npos);
  CHECK(finished.out.find(" -") == std::string::npos);
}

TEST_CASE("wide sizes: values that together are beyond 63 bits have a plan") {
  // 2^46 numbers of eight bytes, 17,000 times.
  std::string nodes = "W = Mul(x, w) v0 = Expand(W, s) ";
  for (int i = 1; i <= 17'000; ++i) nodes += fmt::format("v{} = Tanh(v{}) ", i, i - 1);
  const Finished finished =
      run_on("(double[1] x) => (double y) <double[1] w = {1}, int64[1] s = {70368744177664}> { " +
                 nodes + "y = ReduceSum <keepdims = 0> (v17000) }",
             {"plan", "--loss", "output:y"});
  CAPTURE(finished.err);
  CHECK(finished.err.find("check failed") == std::string::npos);
  check_ends_well(finished);
}

TEST_CASE("wide sizes: a batch of no examples is refused by name") {
  const std::string text =
      "(float[0,4] x) => (float[0,3] y) <float[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}>"
      "{ y = MatMul(x, w) }";
  const std::vector<std::string> data = {"--data", "synthetic", "--loss", "mse:output=y"};
  for (std::vector<std::string> words :
       {std::vector<std::string>{"train", "--steps", "1"}, std::vector<std::string>{"eval"}}) {
    words.insert(words.end(), data.begin(), data.end());
    const Finished finished = run_on(text, words);
    CHECK(finished.exit_code == 3);
    CHECK(finished.err.find("by the first dimension of input 'x'") != std::string::npos);
  }
  // Before data is opened.
  CHECK(run_on(text, {"train", "--steps", "1", "--data", "tensors:missing.safetensors", "--loss",
                      "mse:output=y"})
            .exit_code == 3);
}

TEST_CASE("wide sizes: a model without inputs has no examples to divide") {
  const Finished finished =
      run_on("() => (float[2] y) <float[2] x = {1, 2}> { y = Exp(x) }",
             {"plan", "--batch", "2", "--loss", "mse:output=y", "--micro-batches"});
  CHECK(finished.exit_code == 2);
  CHECK(
      finished.err ==
      "error: the model has no inputs, so there are no examples\n  try: export it with its data as "
      "an input, which --data and --micro-batches need\n");
}

}  // namespace trainscope::test
