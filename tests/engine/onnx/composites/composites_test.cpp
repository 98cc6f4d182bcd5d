// Ops that the importer writes with others: what is built of them, and what is refused.
#include "engine/onnx/composites/composites.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

std::vector<std::string> ops_of(std::string_view inputs, std::string_view nodes, int opset) {
  const Graph graph = to_graph(read_proto(text_model(inputs, nodes, opset)), all_ops());
  std::vector<std::string> ops;
  for (NodeId id : graph.order()) ops.emplace_back(graph.node(id).op->name);
  return ops;
}

using Ops = std::vector<std::string>;

}  // namespace

TEST_CASE("composites: the ops that stand for one") {
  CHECK(ops_of("int64[2] x, float[1] like", "y = CastLike(x, like)", 19) == Ops{"Cast"});
  CHECK(ops_of("float[2] x, float[1] like", "y = CastLike(x, like)", 15) == Ops{"Identity"});
  CHECK(ops_of("float[2] a, float[2] b", "y = SwiGLU(a, b)", 28) == Ops{"Swish", "Mul"});
  CHECK(ops_of("float[1,2,3,4] q", "y = Attention(q, q, q)", 23) ==
        Ops{"Transpose", "Mul", "MatMul", "Softmax", "MatMul"});
  // A causal model's rows see a key each; of others nothing is known before the run.
  const Ops causal = ops_of("float[1,2,3,4] q", "y = Attention<is_causal = 1>(q, q, q)", 24);
  CHECK(std::ranges::count(causal, "Where") == 0);
  const Ops masked = ops_of("float[1,2,3,4] q, bool[3,3] m", "y = Attention(q, q, q, m)", 24);
  CHECK(std::ranges::count(masked, "Where") == 3);
}

TEST_CASE("composites: CastLike to a type that is only stored keeps what it says of overflow") {
  onnx::ModelProto model =
      text_model("float[2] x, float[1] like", "y = CastLike<saturate = 0>(x, like)", 19);
  constexpr int kFloat8E5M2 = 19;
  auto& types = *model.mutable_graph();
  types.mutable_input(1)->mutable_type()->mutable_tensor_type()->set_elem_type(kFloat8E5M2);
  types.mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(kFloat8E5M2);
  const Graph graph = to_graph(read_proto(model), all_ops());
  const Node& cast = graph.node(graph.order().front());
  CHECK(cast.op->name == "StorageCast");
  CHECK(cast.attributes.integer("saturate", 1) == 0);
  CHECK(cast.attributes.integer("to", 0) == kFloat8E5M2);
}

TEST_CASE("composites: a layer norm in older opsets is as ONNX Runtime wrote it") {
  CHECK(ops_of("float[2,3] x, float[3] s", "y = LayerNormalization(x, s)", 12) ==
        Ops{"LayerNormalization"});
}

TEST_CASE("composites: layers share their causal mask") {
  const Graph graph =
      to_graph(read_proto(text_model("float[1,2,3,4] q",
                                     "a = Attention<is_causal = 1>(q, q, q) "
                                     "b = Attention<is_causal = 1>(a, a, a) "
                                     "y = Attention<is_causal = 1, left_window_size = 1>(b, b, b)",
                                     25)),
               all_ops());
  int masks = 0;
  for (ValueId id : graph.values_of(ValueKind::kConstant)) {
    masks += graph.value(id).type.shape == Shape{3, 3} ? 1 : 0;
  }
  CHECK(masks == 2);
}

TEST_CASE("composites: results have the names that the model gives them") {
  const Graph graph =
      to_graph(read_proto(text_model(
                   "float[1,2,3,4] q, float[1,2,1,4] p",
                   "o, k, v = Attention(q, q, q, , p, p) s = Add(k, v) y = ReduceSum(s)", 24)),
               all_ops());
  CHECK(graph.value(graph.find("o")).type.shape == Shape{1, 2, 3, 4});
  CHECK(graph.value(graph.find("k")).type.shape == Shape{1, 2, 4, 4});
  for (NodeId id : graph.order()) {
    CHECK_FALSE(graph.node(id).provenance.sources.empty());
  }
}

TEST_CASE("composites: a node that does not fit is refused") {
  constexpr RefusedText kCases[] = {
      {"float[2,4,8] q", "y = Attention<q_num_heads = 3, kv_num_heads = 3>(q, q, q)",
       "cannot be cut into 3 heads", 23},
      {"float[2,4,8] q", "y = Attention<q_num_heads = 4, kv_num_heads = 8>(q, q, q)",
       "do not belong together", 23},
      {"float[2,2,4,8] q, float[2,1,4,8] v", "y = Attention(q, q, v)",
       "2 heads of q cannot share 2 of k and 1 of v", 23},
      {"float[2,2,4,8] q", "y = Attention<left_window_size = 2>(q, q, q)",
       "attribute 'left_window_size' is not supported", 24},
      {"float[2,2,4,8] q", "a, , , y = Attention<qk_matmul_output_mode = 4>(q, q, q)",
       "qk_matmul_output_mode is 4, 0 to 3 exist", 24},
      {"float[2,2,4,8] q, float[2,2,1,8] p", "y = Attention(q, q, q, , p)",
       "past_key and past_value belong together", 24},
      {"float[2,4,3] x, float[4] s", "y = GroupNormalization<num_groups = 3>(x, s, s)",
       "4 channels cannot be cut into num_groups=3", 21},
      {"float[2,4,3] x, float[2] s", "y = GroupNormalization<num_groups = 2>(x, s, s)",
       "scale and bias must have the shape [4], one is [2]", 21},
      {"float[2] a, float[3] b", "y = SwiGLU(a, b)", "A is [2], B is [3]", 28},
      {"float[2] a", "y = SwiGLU(a)", "input 1 is missing", 28},
      {"float[2] a", "y = SwiGLU(a, a, a)", "3 inputs given, the op has 2", 28},
      {"float[3,4] x", "y = DFT(x)", "the last axis of [3,4] must have 1 element or 2", 20},
      {"float[3,4,2] x, int64 n", "y = DFT(x, n)", "input 1 must be known before the run", 20},
      {"float[3,4,2] x, int64 a = {2}", "y = DFT(x, , a)", "axis 2 holds the real", 20},
      {"float[1,2,4] q", "y, s = LinearAttention<q_num_heads = 2, kv_num_heads = 2>(q, q, q)",
       "update_rule gated_delta asks for a decay and a beta", 27},
      {"float[1,2,4] x, float[3,1,2] w", "y, s = CausalConvWithState(x, w)",
       "[batch, C, length] and [C, 1, k] are expected", 27},
      {"float[2] x", "y = NonZero(x)", "the shape of its result depends on the data", 17},
      {"float[2] x", "y, i = Unique(x)", "the shape of its result depends on the data", 17},
  };
  check_refused(kCases);
}

TEST_CASE("composites: recurrent ops are ours, with transposes where the batch comes first") {
  constexpr std::string_view kInputs =
      "float[5,2,3] x, float[1,8,3] w, float[1,8,2] r, float[1,16] b, int32[2] n, float[1,2,2] h";
  CHECK(ops_of(kInputs, "y = LSTM<hidden_size = 2>(x, w, r, b)", 7) == Ops{"Lstm"});
  CHECK(ops_of(kInputs, "y = LSTM<hidden_size = 2>(x, w, r, b, n)", 14) == Ops{"Cast", "Lstm"});
  CHECK(ops_of("float[2,5,3] x, float[1,6,3] w, float[1,6,2] r",
               "y = GRU<hidden_size = 2, layout = 1>(x, w, r)",
               22) == Ops{"Transpose", "Gru", "Transpose"});
}

TEST_CASE("composites: a recurrent node that does not fit is refused") {
  constexpr const char* kInputs = "float[5,2,3] x, float[1,8,3] w, float[1,8,2] r";
  constexpr RefusedText kCases[] = {
      {kInputs, "y = LSTM<hidden_size = 3>(x, w, r)", "hidden_size is 3, but R is [1,8,2]", 14},
      {kInputs, "y = GRU<hidden_size = 2>(x, w, r)", "[1,6,3]", 14},
      {kInputs, R"(y = LSTM<direction = "bidirectional">(x, w, r))", "[2,8,3]", 14},
      {kInputs, R"(y = LSTM<direction = "back">(x, w, r))",
       "direction is 'back', expected forward, reverse or bidirectional", 14},
      {kInputs, "y = LSTM<layout = 2>(x, w, r)", "layout is 2, expected 0 or 1", 14},
      {kInputs, "y = LSTM<layout = 1>(x, w, r)", "attribute 'layout' is not supported", 13},
      {kInputs, R"(y = LSTM<activations = ["Sigmoid", "Tanh"]>(x, w, r))",
       "activations names 2 functions, 3 are expected", 14},
      {kInputs, R"(y = LSTM<activations = ["Sigmoid", "Tanh", "Sine"]>(x, w, r))",
       "there is no function 'Sine'", 14},
      {kInputs, R"(y = LSTM<activations = ["Sigmoid", "two words", "Tanh"]>(x, w, r))",
       "'two words' is no name of a function", 14},
      {kInputs, "y = LSTM<activation_alpha = [0.5]>(x, w, r)",
       "activation_alpha has 1 numbers, the functions of the cell take 0", 14},
      {kInputs,
       R"(y = LSTM<activations = ["LeakyRelu", "Tanh", "Tanh"], activation_alpha = [-0.5]>(x, w, r))",
       "LeakyRelu with alpha=-0.5, which is below 0", 14},
      {kInputs, "y = LSTM<clip = -1.0>(x, w, r)", "clip is -1, expected 0 or more", 14},
      {kInputs, "y = LSTM(x, w)", "X, W and R must be given", 14},
  };
  check_refused(kCases);
}

TEST_CASE("composites: packed weights of sizes whose product does not fit are refused") {
  onnx::ModelProto model =
      text_model("float[1,64] x, int32[4] q, float[4] s",
                 "y = MatMulNBits<N = 4, K = 64, bits = 4, block_size = 2305843009213693952>"
                 "(x, q, s)",
                 17);
  model.mutable_graph()->mutable_node(0)->set_domain("com.microsoft");
  onnx::OperatorSetIdProto& domain = *model.add_opset_import();
  domain.set_domain("com.microsoft");
  domain.set_version(1);
  const std::optional<Error> error = error_of([&] { to_graph(read_proto(model), all_ops()); });
  REQUIRE(error.has_value());
  CHECK(error->message().find("at most 1073741824 are supported") != std::string::npos);
}

TEST_CASE("composites: the newest form up to an opset") {
  CHECK(find_composite("", "Attention", 22) == nullptr);
  CHECK(find_composite("", "Attention", 23)->from == 23);
  CHECK(find_composite("", "Attention", 28)->from == 25);
  CHECK(find_composite("com.microsoft", "Attention", 1) != nullptr);
  CHECK(find_composite("com.else", "Attention", 24) == nullptr);
  CHECK(out_of_scope("ai.onnx.ml", "Scaler") != "");
  CHECK(out_of_scope("", "Relu").empty());
}

}  // namespace trainscope::test
