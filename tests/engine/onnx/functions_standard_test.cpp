// Every body that ONNX's opsets 1 to 17 give an op in terms of others: it imports without a row of
// its own and means what the row means, and hostile nodes of such ops are refused.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <onnx/defs/schema.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

struct Call {
  std::string_view op;
  int opset;
  std::string_view inputs;  // of the graph
  std::string_view node;
  std::string_view output = "float[] y";
};

constexpr Call kCalls[] = {
    {"Celu", 12, "float[2, 3] x", "y = Celu<alpha = 0.5>(x)"},
    {"Celu", 17, "float[2, 3] x", "y = Celu(x)"},
    {"GreaterOrEqual", 12, "float[2, 3] x, float[3] b", "y = GreaterOrEqual(x, b)", "bool[] y"},
    {"GreaterOrEqual", 16, "float[2, 3] x, float[3] b", "y = GreaterOrEqual(x, b)", "bool[] y"},
    {"LessOrEqual", 12, "float[2, 3] x, float[3] b", "y = LessOrEqual(x, b)", "bool[] y"},
    {"LessOrEqual", 17, "float[2, 3] x, float[3] b", "y = LessOrEqual(x, b)", "bool[] y"},
    {"HardSwish", 14, "float[2, 3] x", "y = HardSwish(x)"},
    {"MeanVarianceNormalization", 9, "float[2, 3, 4, 5] x", "y = MeanVarianceNormalization(x)"},
    {"MeanVarianceNormalization", 13, "float[2, 3, 4] x",
     "y = MeanVarianceNormalization<axes = [0, 2]>(x)"},
    {"CastLike", 15, "float[2, 3] x, int64[1] b", "y = CastLike(x, b)", "int64[] y"},
    {"LayerNormalization", 17, "float[2, 3] x, float[3] s, float[3] b",
     "y = LayerNormalization<epsilon = 0.5>(x, s, b)"},
    {"Softmax", 13, "float[2, 3] x", "y = Softmax<axis = 0>(x)"},
    {"LogSoftmax", 13, "float[2, 3] x", "y = LogSoftmax(x)"},
    {"NegativeLogLikelihoodLoss", 12, "float[2, 3] x, int64[2] t",
     "y = NegativeLogLikelihoodLoss(x, t)"},
    {"NegativeLogLikelihoodLoss", 13, "float[2, 3, 4] x, int64[2, 4] t, float[3] w",
     "y = NegativeLogLikelihoodLoss<reduction = \"sum\", ignore_index = 1>(x, t, w)"},
    {"SoftmaxCrossEntropyLoss", 12, "float[2, 3] x, int64[2] t",
     "y = SoftmaxCrossEntropyLoss<reduction = \"none\">(x, t)"},
    {"SoftmaxCrossEntropyLoss", 13, "float[2, 3] x, int64[2] t",
     "y, p = SoftmaxCrossEntropyLoss(x, t)"},
    {"HannWindow", 17, "", "y = HannWindow(size)"},
    {"HammingWindow", 17, "", "y = HammingWindow<periodic = 0>(size)"},
    {"BlackmanWindow", 17, "", "y = BlackmanWindow(size)"},
};
// What bodies are made of that no op of ours is: subgraphs, 8-bit integers, random numbers.
constexpr std::string_view kWithout[] = {"SequenceMap", "DynamicQuantizeLinear", "Bernoulli",
                                         "Range"};

const Evaluate& evaluate() {
  static const Evaluate function = evaluator(all_ops(), cpu_kernels());
  return function;
}

OnnxModel model_of(const Call& call) {
  return OnnxModel::parse_text(
      fmt::format("<ir_version: 7, opset_import: [\"\" : {}]>\ng ({}) => ({}) <int64 size = {{5}}> "
                  "{{ {} }}",
                  call.opset, call.inputs, call.output, call.node));
}

// All rows but the one of this op.
OpTable without(std::string_view op) {
  std::vector<OpDef> rows;
  for (const OpDef* row : all_ops().rows()) {
    if (row->name != op) rows.push_back(*row);
  }
  OpTable table;
  table.add(std::move(rows));
  return table;
}

Tensor result_of(const Graph& graph) {
  std::map<std::string, Tensor> inputs;
  for (ValueId v : graph.inputs) {
    Tensor tensor(graph.value(v).type);
    for (std::int64_t i = 0; i < tensor.elements(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (tensor.dtype() == DType::kI64) tensor.values<std::int64_t>()[at] = i % 3;
      if (tensor.dtype() == DType::kF32) {
        tensor.values<float>()[at] = static_cast<float>((i * 7) % 5) - 1.5F;
      }
    }
    inputs.emplace(graph.value(v).name, std::move(tensor));
  }
  return reference_run(graph, inputs, evaluate()).at("y");
}

// Values of a model of one node, to be given to it in any order.
constexpr std::string_view kArguments[] = {"matrix", "vector", "labels", "flags", "scalar"};

onnx::ModelProto model_around(const onnx::NodeProto& node, int opset) {
  onnx::ModelProto model;
  model.set_ir_version(7);
  model.add_opset_import()->set_version(opset);
  onnx::GraphProto& graph = *model.mutable_graph();
  *graph.add_input() = value_info("matrix", {2, 3});
  *graph.add_input() = value_info("vector", {3});
  *graph.add_input() = value_info("labels", {2}, onnx::TensorProto::INT64);
  *graph.add_input() = value_info("flags", {2}, onnx::TensorProto::BOOL);
  *graph.add_input() = value_info("scalar", {}, onnx::TensorProto::INT32);
  *graph.add_output() = value_info("y", {2, 3});
  *graph.add_node() = node;
  return model;
}

// "" when the model is refused as bad input or imported, else what happened instead.
std::string outcome(const onnx::ModelProto& model, const OpTable& ops) {
  try {
    return join(verify(to_graph(read_proto(model), ops, {.evaluate = &evaluate()})), "; ");
  } catch (const Error& error) {
    const bool documented = error.code() == ErrorCode::kBadInput && !error.message().empty();
    return documented ? "" : "code or message: " + error.message();
  }
}

// Nodes of the op with up to four arguments, and with attributes of every type.
std::vector<onnx::NodeProto> hostile_nodes(const onnx::OpSchema& schema) {
  std::vector<onnx::NodeProto> nodes;
  onnx::NodeProto node;
  node.set_op_type(schema.Name());
  node.set_name("call");
  node.add_output("y");
  nodes.push_back(node);
  for (std::string_view first : kArguments) {
    for (std::string_view second : kArguments) {
      node.clear_input();
      node.add_input(std::string(first));
      nodes.push_back(node);
      for (int i = 0; i < 3; ++i) {
        node.add_input(std::string(second));
        nodes.push_back(node);
      }
    }
  }
  node.clear_input();
  for (std::string_view name : {"matrix", "labels"}) node.add_input(std::string(name));
  const auto with = [&](const std::string& name, onnx::AttributeProto::AttributeType type) {
    nodes.push_back(node);
    return &add_attribute(nodes.back(), name, type);
  };
  with("unheard", onnx::AttributeProto::INT)->set_i(1);
  for (const auto& [name, attribute] : schema.attributes()) {
    with(name, onnx::AttributeProto::INT)->set_i(std::numeric_limits<std::int64_t>::min());
    with(name, onnx::AttributeProto::FLOAT)->set_f(-1.0F);
    with(name, onnx::AttributeProto::STRING)->set_s("hostile");
    with(name, onnx::AttributeProto::INTS)->add_ints(-7);
    with(name, onnx::AttributeProto::FLOATS);
    *with(name, onnx::AttributeProto::TENSOR)->mutable_t() = float_tensor("", {1}, {1});
    with(name, onnx::AttributeProto::GRAPH)->mutable_g()->set_name("body");
  }
  return nodes;
}

}  // namespace

TEST_CASE("functions: every body of the standard imports and gives what the op's row gives") {
  for (const Call& call : kCalls) {
    CAPTURE(call.op);
    CAPTURE(call.opset);
    const OnnxModel model = model_of(call);
    const OpTable others = without(call.op);
    const Graph expanded = to_graph(model, others, {.evaluate = &evaluate()});
    CHECK(verify(expanded).empty());
    const Tensor result = result_of(expanded);
    if (all_ops().find(call.op) == nullptr) continue;
    const Tensor expected = result_of(to_graph(model, all_ops(), {.evaluate = &evaluate()}));
    REQUIRE(result.type() == expected.type());
    const Tensor a = convert(result, DType::kF64);
    const Tensor b = convert(expected, DType::kF64);
    for (std::size_t i = 0; i < a.values<double>().size(); ++i) {
      CHECK(a.values<double>()[i] == doctest::Approx(b.values<double>()[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("functions: hostile nodes of ops with a body are refused or imported") {
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    const bool has_body = schema.HasFunction() || schema.HasContextDependentFunction();
    if (!has_body || !schema.domain().empty() || schema.since_version() > 17) continue;
    const std::string op = schema.Name();
    CAPTURE(op);
    const OpTable others = without(op);
    for (const onnx::NodeProto& node : hostile_nodes(schema)) {
      CAPTURE(node.ShortDebugString());
      const onnx::ModelProto model = model_around(node, schema.since_version());
      CHECK(outcome(model, others) == "");
      CHECK(outcome(model, all_ops()) == "");
    }
  }
}

TEST_CASE("functions: no body of the standard is forgotten") {
  std::set<std::string_view> tested(std::begin(kWithout), std::end(kWithout));
  for (const Call& call : kCalls) tested.insert(call.op);
  for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
    const bool has_body = schema.HasFunction() || schema.HasContextDependentFunction();
    if (!has_body || !schema.domain().empty()) continue;
    CAPTURE(schema.Name());
    CHECK(tested.contains(schema.Name()));
  }
}

}  // namespace trainscope::test
