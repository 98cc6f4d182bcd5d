// Ops that the importer writes with others: their gradients against f64 central differences of
// sum(cotangent * output), by every float input alone.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compile.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/builder.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

constexpr double kBound = 1e-6;  // relative, of all probed elements
constexpr double kStep = 1e-4;
constexpr std::uint64_t kSeed = 19;

using TensorsByName = std::map<std::string, Tensor>;

struct Case {
  std::string_view name;
  std::string_view opsets;
  std::string_view inputs;
  std::string_view outputs;
  std::string_view node;
  std::string_view known = {};  // initializers
};

constexpr std::string_view kNew = R"("" : 28)";
constexpr std::string_view kMicrosoft = R"("" : 17, "com.microsoft" : 1)";

constexpr Case kCases[] = {
    {"swiglu", kNew, "float[2,3] a, float[2,3] b", "float[2,3] y", "y = SwiGLU<alpha = 0.7>(a, b)"},
    {"mish", kNew, "float[2,3] x", "float[2,3] y", "y = Mish(x)"},
    {"group norm by group", R"("" : 18)", "float[2,4,3] x, float[2] s, float[2] b",
     "float[2,4,3] y", "y = GroupNormalization<num_groups = 2>(x, s, b)"},
    {"group norm by channel", kNew, "float[2,4,3,2] x, float[4] s, float[4] b", "float[2,4,3,2] y",
     "y = GroupNormalization<num_groups = 2, epsilon = 0.01>(x, s, b)"},
    {"attention", R"("" : 23)", "float[2,2,3,4] q, float[2,2,5,4] k, float[2,2,5,3] v",
     "float[2,2,3,3] y", "y = Attention(q, k, v)"},
    {"causal attention of grouped heads", kNew, "float[2,3,8] q, float[2,3,4] k, float[2,3,4] v",
     "float[2,3,8] y",
     "y = Attention<q_num_heads = 4, kv_num_heads = 2, is_causal = 1, scale = 0.3>(q, k, v)"},
    {"attention with a trained bias, capped", kNew,
     "float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v, float[2,3,3] m",
     "float[1,2,3,4] y, float[1,2,3,3] s",
     "y, , , s = Attention<softcap = 1.5, qk_matmul_output_mode = 2>(q, k, v, m)"},
    {"attention with a cache and a window", kNew,
     "float[1,2,2,4] q, float[1,2,2,4] k, float[1,2,2,4] v, float[1,2,3,4] pk, float[1,2,3,4] pv",
     "float[1,2,2,4] y, float[1,2,5,4] nk, float[1,2,5,4] nv",
     "y, nk, nv = Attention<is_causal = 1, left_window_size = 2>(q, k, v, , pk, pv)"},
    {"attention of rows that see nothing", kNew,
     "float[2,1,3,4] q, float[2,1,3,4] k, float[2,1,3,4] v", "float[2,1,3,4] y",
     "y = Attention<is_causal = 1>(q, k, v, , , , n)", "int64[2] n = {1, 3}"},
    {"running product", kNew, "float[2,4] x", "float[2,4] y", "y = CumProd<exclusive = 1>(x, axis)",
     "int64 axis = {1}"},
    {"padding that wraps", kNew, "float[2,3] x", "float[6,4] y",
     R"(y = Pad<mode = "wrap">(x, pads))", "int64[4] pads = {1, 2, 3, -1}"},
    {"linear attention", kNew,
     "float[1,3,4] q, float[1,3,4] k, float[1,3,6] v, float[1,2,2,3] p, float[1,3,2] d, "
     "float[1,3,2] b",
     "float[1,3,6] y, float[1,2,2,3] s",
     "y, s = LinearAttention<q_num_heads = 2, kv_num_heads = 2>(q, k, v, p, d, b)"},
    {"causal convolution", kNew, "float[2,3,4] x, float[3,1,3] w, float[3] b, float[2,3,2] p",
     "float[2,3,4] y, float[2,3,2] s",
     R"(y, s = CausalConvWithState<activation = "silu">(x, w, b, p))"},
    {"a transform of 12 numbers, two behind", R"("" : 20)", "float[10,1] x", "float[7,2] y",
     "y = DFT<onesided = 1>(x, n)", "int64 n = {12}"},
    {"a complex transform of a length that is prime", R"("" : 17)", "float[2,7,2] x",
     "float[2,5,2] y", "y = DFT<inverse = 1>(x, n)", "int64 n = {5}"},
    {"a transform back", R"("" : 20)", "float[2,3,2] x", "float[2,4,1] y",
     "y = DFT<inverse = 1, onesided = 1>(x)"},
    {"sequences", kNew, "float[3,4] x, float[1,4] z", "float[3,4] y, float[1,4] e",
     "s = SplitToSequence<axis = 0>(x) t = SequenceInsert(s, z) e = SequenceAt(t, at) u = "
     "SequenceErase(t, at) y = ConcatFromSequence<axis = 0>(u)",
     "int64 at = {-1}"},
    {"fused matmul", kMicrosoft, "float[2,4,3] a, float[2,5,4] b", "float[2,3,5] y",
     "y = com.microsoft.FusedMatMul<transA = 1, transB = 1, alpha = 0.5>(a, b)"},
    {"bias gelu", kMicrosoft, "float[2,3] x, float[3] b", "float[2,3] y",
     "y = com.microsoft.BiasGelu(x, b)"},
    {"fast gelu", kMicrosoft, "float[2,3] x, float[3] b", "float[2,3] y",
     "y = com.microsoft.FastGelu(x, b)"},
    {"skip layer norm", kMicrosoft, "float[2,3,4] x, float[2,3,4] r, float[4] s, float[4] b",
     "float[2,3,4] y, float[2,3,4] t",
     "y, , , t = com.microsoft.SkipLayerNormalization<epsilon = 0.01>(x, r, s, b)"},
    {"skip RMS norm", kMicrosoft, "float[2,3,4] x, float[2,3,4] r, float[4] s", "float[2,3,4] y",
     "y = com.microsoft.SkipSimplifiedLayerNormalization<epsilon = 0.01>(x, r, s)"},
    {"embeddings", kMicrosoft, "float[5,4] w, float[3,4] p, float[4] s, float[4] b",
     "float[2,3,4] y",
     "y = com.microsoft.EmbedLayerNormalization<epsilon = 0.01>(i, , w, p, , s, b)",
     "int64[2,3] i = {0, 4, 1, 2, 2, 0}"},
    {"attention of one input", kMicrosoft, "float[2,3,4] x, float[4,12] w, float[12] b",
     "float[2,3,4] y", "y = com.microsoft.Attention<num_heads = 2>(x, w, b, n)",
     "int64[2] n = {3, 2}"},
    {"multi head attention", kMicrosoft,
     "float[2,3,4] q, float[2,3,4] k, float[2,3,4] v, float[12] b, float[1,2,3,3] m",
     "float[2,3,4] y",
     "y = com.microsoft.MultiHeadAttention<num_heads = 2, unidirectional = 1>(q, k, v, b, , m)"},
    {"group query attention", kMicrosoft,
     "float[1,3,8] q, float[1,3,4] k, float[1,3,4] v, float[3,1] c, float[3,1] s", "float[1,3,8] y",
     "y = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>(q, k, "
     "v, , , n, t, c, s)",
     "int64[1] n = {2}, int64 t = {3}"},
    {"a triangle", kMicrosoft, "float[2,3,3] x", "float[2,3,3] y",
     "y = com.microsoft.Trilu<upper = 0>(x)"},
    {"bias softmax", kMicrosoft, "float[2,3,4] x, float[3,4] b", "float[2,3,4] y",
     "y = com.microsoft.BiasSoftmax<axis = 2>(x, b)"},
    {"a loss with its classes", kMicrosoft, "float[4,5] x, float[5] w", "float y",
     R"(y = com.microsoft.SoftmaxCrossEntropyLossInternal<reduction = "sum">(x, l, w))",
     "int64[4] l = {1, 0, 4, 2}"},
};

std::string text_of(const Case& c) {
  const std::string known = c.known.empty() ? "" : fmt::format("<{}>", c.known);
  return fmt::format("<ir_version: 8, opset_import: [{}]>\ng ({}) => ({}) {} {{ {} }}", c.opsets,
                     c.inputs, c.outputs, known, c.node);
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0.0;
  const std::span<const double> x = a.values<double>();
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * b.values<double>()[i];
  return sum;
}

// A model whose float initializers and inputs are drawn, with sum(cotangent * output) as its loss.
class Probe {
 public:
  explicit Probe(const Case& c)
      : evaluate_(evaluator(op_table(), cpu_kernels(), {.kernels = KernelChoice::kReference})),
        model_(OnnxModel::parse_text(text_of(c))) {
    graph_ = to_graph(model_, op_table(), {.float_type = DType::kF64, .evaluate = &evaluate_});
    Builder b(graph_, op_table());
    b.set_evaluate(&evaluate_);
    b.set_provenance({.sources = {}, .pass = "test"});
    for (const ModelTensor& output : model_.outputs()) {
      const ValueId y = graph_.find(output.name);
      const std::string name = "cotangent of " + output.name;
      const ValueId cotangent = b.input(name, b.type(y));
      data_.emplace(name, drawn(b.type(y)));
      const ValueId product = b("Mul", {y, cotangent});
      const ValueId sum = b("ReduceSum", {product}, {{"keepdims", std::int64_t{0}}});
      graph_.loss = graph_.loss == kNoValue ? sum : b("Add", {graph_.loss, sum});
    }
    graph_.outputs = {graph_.loss};
    for (ValueId v : graph_.values_of(ValueKind::kInput)) add_data(v);
  }

  std::vector<std::string> float_inputs() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : data_) {
      const bool cotangent = name.starts_with("cotangent");
      if (!cotangent && tensor.dtype() == DType::kF64) names.push_back(name);
    }
    return names;
  }

  double loss(const TensorsByName& data) const {
    return reference_run(graph_, data, evaluate_).at(graph_.loss).values<double>()[0];
  }

  // By this input alone, after all passes.
  Tensor gradient(const std::string& input) const {
    TrainingOptions training;
    training.mode = GraphMode::kGradients;
    training.keep_gradients = true;
    training.gradient_of = {input};
    const PassContext context{
        .ops = op_table(), .evaluate = &evaluate_, .options = training, .pass = {}, .counters = {}};
    const Stages stages = run_passes(Graph(graph_), default_passes(), context,
                                     {.disabled = {"training_form"}, .stop_after = {}});
    const Graph& graph = stages.back().graph;
    const ReferenceValues values = reference_run(graph, bound_in(graph), evaluate_);
    for (const GradientOf& each : graph.gradients) {
      if (graph.value(each.of).name == input) return values.at(each.gradient);
    }
    return Tensor(data_.at(input).type());
  }

  const TensorsByName& data() const { return data_; }

 private:
  static Tensor drawn(const TensorType& type) {
    static std::uint64_t stream = 0;
    return random_tensor(type, kSeed, ++stream);
  }

  void add_data(ValueId v) {
    const Value& value = graph_.value(v);
    if (!data_.contains(value.name)) data_.emplace(value.name, drawn(value.type));
  }

  TensorsByName bound_in(const Graph& graph) const {
    TensorsByName bound;
    for (const auto& [name, tensor] : data_) {
      if (graph.find(name) != kNoValue) bound.emplace(name, tensor);
    }
    return bound;
  }

  Evaluate evaluate_;
  OnnxModel model_;
  Graph graph_;
  TensorsByName data_;
};

// Relative L2 difference of the gradient and central differences, element by element.
double worst_error(const Probe& probe, const std::string& input) {
  const Tensor gradient = probe.gradient(input);
  Tensor differences(gradient.type());
  TensorsByName data = probe.data();
  std::span<double> x = data.at(input).values<double>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double before = x[i];
    x[i] = before + kStep;
    const double above = probe.loss(data);
    x[i] = before - kStep;
    const double below = probe.loss(data);
    x[i] = before;
    differences.values<double>()[i] = (above - below) / (2.0 * kStep);
  }
  double error = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += std::pow(gradient.values<double>()[i] - differences.values<double>()[i], 2.0);
  }
  return std::sqrt(error / std::max(1e-12, dot(differences, differences)));
}

}  // namespace

TEST_CASE("composite gradients: those of what an op is written with, checked by differences") {
  double worst = 0.0;
  int checked = 0;
  for (const Case& each : kCases) {
    CAPTURE(each.name);
    const Probe probe(each);
    CHECK_FALSE(probe.float_inputs().empty());
    for (const std::string& input : probe.float_inputs()) {
      CAPTURE(input);
      const double error = worst_error(probe, input);
      CHECK(error <= kBound);
      worst = std::max(worst, error);
      ++checked;
    }
  }
  MESSAGE(fmt::format("{} gradients of {} models, largest relative error {:.1e}", checked,
                      std::size(kCases), worst));
}

}  // namespace trainscope::test
