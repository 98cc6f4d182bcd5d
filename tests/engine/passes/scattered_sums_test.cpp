// scattered_sums: which additions an embedding's gradient takes over, and that numbers stay.
#include <doctest/doctest.h>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kTied =
    "(int64[6] ids) => (float[6,10] y) <float[10,2] table = "
    "{1,-2,3,4,-5,6,7,8,-9,10,11,12,-13,14,15,16,17,-18,19,20}>"
    "{ x = Gather(table, ids)  h = Tanh(x)  t = Transpose <perm = [1, 0]> (table)"
    "  y = MatMul(h, t) }";

CompileOptions training(GraphMode mode) {
  CompileOptions options;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  options.training.mode = mode;
  return options;
}

CompileOptions without_pass(CompileOptions options) {
  options.passes.disabled = {"scattered_sums"};
  return options;
}

// A graph with ops of ours in it.
Graph own(std::string text) {
  const std::string header = R"(<ir_version: 8, opset_import: ["" : 17, "ai.trainscope" : 1]> g )";
  return graph(OnnxModel::parse_text(header + text));
}

bool stays(std::string_view nodes) {
  return !changes(own("(float[2,3] g, float[5,3] s, int64[2] i) => " + std::string(nodes)),
                  "scattered_sums");
}

}  // namespace

TEST_CASE("scattered_sums: the rows go into the rest of the sum, on either side") {
  for (const std::string sum : {"Add(s, r)", "Add(r, s)"}) {
    CAPTURE(sum);
    const Graph before =
        own("(float[2,3] g, float[5,3] s, int64[2] i) => (float[5,3] y)"
            "{ r = ai.trainscope.GatherGrad <shape = [5, 3]> (g, i)  y = " +
            sum + " }");
    const Graph after = passed(before, {"scattered_sums"});
    CHECK(node_lines(after) == "y f32[5,3] = ts.GatherGrad(g, i, s) shape={5,3}\noutput y\n");
    const Tensors inputs = random_inputs(before, 3);
    CHECK(difference(outputs_of(after, inputs), outputs_of(before, inputs)) < 1e-6);
    CHECK_FALSE(changes(after, "scattered_sums"));
  }
}

TEST_CASE("scattered_sums: of many lookups one starts the sum") {
  const Graph after =
      passed(own("(float[2,3] g, float[2,3] h, float[2,3] k, int64[2] i) => (float[5,3] y)"
                 "{ a = ai.trainscope.GatherGrad <shape = [5, 3]> (g, i)"
                 "  b = ai.trainscope.GatherGrad <shape = [5, 3]> (h, i)"
                 "  c = ai.trainscope.GatherGrad <shape = [5, 3]> (k, i)"
                 "  ab = Add(a, b)  y = Add(ab, c) }"),
             {"scattered_sums"});
  CHECK(count_ops(after, "Add") == 0);
  CHECK(count_ops(after, "GatherGrad") == 3);
}

TEST_CASE("scattered_sums: rows that others read, or that are broadcast, stay") {
  CHECK(
      stays("(float[5,3] y, float[5,3] z)"
            "{ r = ai.trainscope.GatherGrad <shape = [5, 3]> (g, i)  y = Add(r, s)"
            "  z = Exp(r) }"));
  CHECK(
      stays("(float[5,3] r, float[5,3] y)"
            "{ r = ai.trainscope.GatherGrad <shape = [5, 3]> (g, i)  y = Add(r, s) }"));
  CHECK(
      stays("(float[2,5,3] y) <float[2,1,1] k = {1, 2}>"
            "{ r = ai.trainscope.GatherGrad <shape = [5, 3]> (g, i)  y = Add(r, k) }"));
  CHECK(
      stays("(float[5,3] y)"
            "{ r = ai.trainscope.GatherGrad <shape = [5, 3]> (g, i)  y = Mul(r, s) }"));
}

TEST_CASE("scattered_sums: a tied table's gradient, without a second table in memory") {
  const CompileOptions with = training(GraphMode::kGradients);
  const Graph rewritten = stages(kTied, with).back().graph;
  const Graph plain = stages(kTied, without_pass(with)).back().graph;
  CHECK(count_ops(rewritten, "Add") == count_ops(plain, "Add") - 1);
  const Tensors inputs = random_inputs(plain, 3);
  CHECK(difference(results_of(rewritten, inputs), results_of(plain, inputs)) < 1e-5);

  const std::unique_ptr<Compiled> step = compile(model(kTied), training(GraphMode::kTrain));
  const Program& program = step->program;
  const auto buffer = [&program](ValueId v) { return program.place(v).buffer; };
  int scatters = 0;
  for (NodeId id : program.graph.order()) {
    const Node& node = program.graph.node(id);
    if (node.op->name != "GatherGrad") continue;
    ++scatters;
    REQUIRE(node.inputs.size() == 3);
    CHECK(buffer(node.inputs[2]) == buffer(node.outputs[0]));
  }
  CHECK(scatters == 1);
}

}  // namespace trainscope::test
