// fuse_attention: weights that drop out do so inside, by the same mask.
#include <doctest/doctest.h>

#include <string>

#include "engine/ir/well_known.h"
#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

// 2 examples of 3 tokens, 2 heads of width 4.
constexpr std::string_view kInputs =
    "(float[2,3,2,4] x0) => (float[2,3,2,4] y) <float[1] p = {0.5}, float share = {0.25},"
    " bool train = {1}, float[2,1,1,3] padding = {0,0,-3,0,0,0},"
    " bool[3,3] later = {0,1,1,0,0,1,0,0,0}, float low = {-1e30}>";
constexpr std::string_view kBefore =
    "x = Mul(x0, p)  q = Transpose <perm = [0,2,1,3]> (x)  o = Transpose <perm = [0,2,3,1]> (x)"
    "  r = MatMul(q, o)";
constexpr std::string_view kAfter = "  h = MatMul(d, q)  y = Transpose <perm = [0,2,1,3]> (h)";

Fusion dropping() {
  return {.pass = "fuse_attention",
          .fused = "Attention",
          .inputs = kInputs,
          .before = kBefore,
          .constants = {"share", "train", "padding", "later", "low"}};
}

std::string with_ends(std::string_view nodes) { return std::string(nodes) + std::string(kAfter); }

std::string fused_line(const Stages& all) {
  const std::string lines = node_lines(stage_named(all, "fuse_attention").graph);
  const std::size_t at = lines.find(" = ts.Attention");
  return at == std::string::npos ? "" : lines.substr(at + 3, lines.find('\n', at) - at - 3);
}

}  // namespace

TEST_CASE("fuse_attention: dropout of the weights becomes attributes") {
  const std::string torch_script =
      with_ends("w = Softmax <axis = -1> (r)  d, unused = Dropout(w, share, train)");
  const std::string dynamo =
      with_ends("m = Add(r, padding)  w = Softmax <axis = 3> (m)  d = Dropout(w, share, train)");
  const std::string ours =
      with_ends("m = Where(later, low, r)  w = Softmax <axis = -1> (m)  d = Dropout(w, share)");
  const Spelling spellings[] = {{"PyTorch's TorchScript exporter", torch_script, 6},
                                {"PyTorch's dynamo exporter, with a bias", dynamo, 7},
                                {"our builders, causal", ours, 7}};
  for (const Spelling& spelling : spellings) check_spelling(dropping(), spelling);
  CHECK(fused_line(stages_of(dropping(), ours)) ==
        "ts.Attention(x, x, x, -, ai.trainscope.random_step) causal=1 ratio=0.25 scale=1 seed=0 "
        "stream=0");
}

TEST_CASE("fuse_attention: the mask inside follows the step, as outside") {
  const std::string nodes = with_ends("w = Softmax <axis = -1> (r)  d = Dropout(w, share, train)");
  const Graph fused = stages_of(dropping(), nodes).back().graph;
  const Graph plain = stages_of(dropping(), nodes, false).back().graph;
  CHECK(count_ops(fused, "RandomDropout") == 0);
  CHECK(count_ops(plain, "RandomDropout") == 2);
  Tensors inputs = random_inputs(plain, 3);
  const Tensors first = results_of(fused, inputs);
  inputs.insert_or_assign(std::string(kRandomStepInput), Tensor::scalar<std::int64_t>(2));
  const Tensors second = results_of(fused, inputs);
  CHECK(difference(second, results_of(plain, inputs)) < 4e-6);
  CHECK(difference(first, second) > 0.01);
}

// Blocks of 48 queries, shared keys and values, rows that begin inside a block of four random
// numbers; f64 leaves nothing to rounding.
TEST_CASE("fuse_attention: dropout in f64, of more queries than the kernel takes at once") {
  Fusion shared = dropping();
  shared.inputs =
      "(double[2,101,4,4] x0, double[2,69,2,4] z0, double[2,1,101,69] bias) => (double[2,101,4,4]"
      " y) <double[1] p = {0.5}, double[2,1] s = {0.5, 2}, int64[1] two = {2},"
      " int64[5] times = {1,1,2,1,1}, int64[4] whole = {2,4,69,4}, double tenth = {0.1},"
      " bool train = {1}>";
  shared.before = "x = Mul(x0, p)";
  shared.constants = {"two", "times", "whole", "tenth", "train"};
  constexpr std::string_view kNodes =
      "q = Transpose <perm = [0,2,1,3]> (x)  z = Mul(z0, s)  z1 = Transpose <perm = [0,2,1,3]> (z)"
      "  z2 = Unsqueeze(z1, two)  z3 = Expand(z2, times)  v = Reshape(z3, whole)"
      "  o = Transpose <perm = [0,1,3,2]> (v)  r = MatMul(q, o)  m = Add(r, bias)"
      "  w = Softmax <axis = -1> (m)  d = Dropout(w, tenth, train)  h = MatMul(d, v)"
      "  y = Transpose <perm = [0,2,1,3]> (h)";
  const Graph fused = stages_of(shared, kNodes).back().graph;
  const Graph plain = stages_of(shared, kNodes, false).back().graph;
  CHECK(count_ops(fused, "AttentionGrad") == 1);
  CHECK(count_ops(fused, "RandomDropout") == 0);
  const Tensors inputs = random_inputs(plain, 3);
  CHECK(difference(results_of(fused, inputs), results_of(plain, inputs)) < 1e-12);
}

TEST_CASE("fuse_attention: an evaluated model drops nothing out") {
  CompileOptions options = options_of(dropping());
  options.training.mode = GraphMode::kInference;
  const std::string text =
      text_of(dropping(), with_ends("w = Softmax <axis = -1> (r)  d = Dropout(w, share, train)"));
  CHECK(fused_line(stages(text, options)) == "ts.Attention(x, x, x) causal=0 scale=1");
}

TEST_CASE("fuse_attention: weights that are read beside the dropout stay") {
  constexpr std::string_view kSum = "  t = Transpose <perm = [0,2,1,3]> (h)  y = Add(t, s)";
  const auto near_miss = [&](std::string_view read) {
    return near_misses_of(dropping(),
                          "w = Softmax <axis = -1> (r)  d = Dropout(w, share, train)"
                          "  h = MatMul(d, q)  s = ReduceMax(" +
                              std::string(read) + ")" + std::string(kSum));
  };
  CHECK(near_miss("d") == "'RandomDropout' has 2 readers");
  CHECK(near_miss("w") == "'w' has 2 readers");
}

}  // namespace trainscope::test
