// The cases by which ONNX Runtime Training tests its gradients, by the names that they have there,
// each with our error beside the tolerance there. Shapes and numbers are our own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/error.h"
#include "tests/ops/gradient_probe.h"

namespace trainscope::test {
namespace {

constexpr double kBound = 1e-6;

struct NamedCase {
  std::string_view name;
  std::string_view op;  // what computes it here
  std::string_view example;
  double tolerance = 1.5e-2;  // there: of the largest element's absolute error, in f32
};

constexpr NamedCase kCases[] = {
    {"ErfGrad", "Erf", "[2,3,4]"},
    {"SqrtGrad", "Sqrt", "[2,3,4]>0"},
    {"AddGrad", "Add", "[2,3,4], [3,1]"},
    {"SubGrad", "Sub", "[2,3,4], [3,1]"},
    {"MulGrad", "Mul", "[2,3,4], [3,1]"},
    {"DivGrad", "Div", "[2,3,4], [3,1]>0"},
    {"PowGrad", "Pow", "[2,3]>0, [2,3]"},
    {"MatMulGrad", "MatMul", "[2,3,4], [2,4,5]"},
    {"SinGrad", "Sin", "[2,3,4]"},
    {"CosGrad", "Cos", "[2,3,4]"},
    {"NegGrad", "Neg", "[2,3,4]"},
    {"AbsGrad", "Abs", "[2,3,4]~"},
    {"LogGrad", "Log", "[2,3,4]>0"},
    {"ExpGrad", "Exp", "[2,3,4]"},
    {"FlattenGrad", "Flatten", "[2,3,4]; axis=2"},
    {"TanhGrad", "Tanh", "[2,3,4]"},
    {"GemmGrad", "Gemm", "[4,2], [4,3], [3]; transA=1 alpha=0.7 beta=5.0"},
    {"ReduceMeanGrad", "ReduceMean", "[4,3,2]; axes={0,2} keepdims=0"},
    {"ReduceSumGrad", "ReduceSum", "[4,3,2], i64[2]={0,2}; keepdims=0"},
    {"ReduceL2Grad", "ReduceL2", "[4,3,2]; axes={1} keepdims=0"},
    {"ReduceLogSumExpGrad", "ReduceLogSumExp", "[4,3,2]; axes={0,2} keepdims=0"},
    {"ReluGrad", "Relu", "[2,3,4]~"},
    {"CastGrad", "Cast", "[2,3,4]; to=11"},
    {"SplitGrad", "Split", "[9,5]; outputs=3"},
    {"MaxPoolGrad", "MaxPool", "[2,2,7,7]~; kernel_shape={3,3} strides={2,2} pads={1,1,1,1}"},
    {"GlobalAveragePoolGrad", "GlobalAveragePool", "[2,3,5,5]", 1e-3},
    {"ConvGrad", "Conv", "[1,2,5,5], [3,2,3,3], [3]; pads={1,1,1,1} strides={2,2}", 1e-1},
    {"ConcatGrad", "Concat", "[3,2,3], [1,2,3], [2,2,3]; axis=0"},
    {"ConcatTrainingGrad", "Concat", "[2,3], [2,1], [2,4]; axis=1"},
    {"AveragePoolGrad", "AveragePool", "[2,3,7,7]; kernel_shape={3,3} strides={2,2} pads={1,1,1,1}",
     4e-3},
    {"TransposeGrad", "Transpose", "[2,3,4]; perm={1,0,2}"},
    {"SqueezeGrad", "Squeeze", "[1,2,1,3], i64[2]={0,2}"},
    {"UnsqueezeGrad", "Unsqueeze", "[2,3], i64[2]={1,3}"},
    {"BatchNormalizationGrad", "BatchNormalization",
     "[2,3,4,5], [3], [3], [3], [3]>0; training_mode=1 outputs=3", 2e-2},
    {"SigmoidGrad", "Sigmoid", "[2,3,4]"},
    {"QuickGeluGrad", "Swish", "[2,3,4]; alpha=1.702"},
    {"SoftMaxGrad", "Softmax", "[3,4,2]; axis=1"},
    {"LogSoftMaxGrad", "LogSoftmax", "[3,4,2]; axis=2"},
    {"SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLoss", "[8,5,2], i64[8,2]<5, [5]>0"},
    {"SparseSoftmaxCrossEntropyGrad", "CrossEntropy", "[8,5], i64[8]<5"},
    {"GeluGrad", "Gelu", "[2,3,4]"},
    {"FastGeluGrad", "Gelu", "[2,3,4]; approximate='tanh'"},
    {"Dropout", "Dropout", "[2,2,2,2], []={0}, bool[]={1}"},
    {"DropoutGrad", "RandomDropout", "[2,4,2], i64[]={3}; ratio=0.4 seed=7 stream=1"},
    {"GatherGrad", "Gather", "[5,3,4], i64[2,2]<3; axis=1"},
    {"GatherNDGrad_repeat_float_data", "GatherND", "[2,3,4], i64[4,2]<2"},
    {"GatherNDGrad_unique_float_data", "GatherND", "[3,4], i64[3,1]={2,0,1}"},
    {"LayerNormGrad", "LayerNormalization", "[2,3,4], [4], [4]; axis=-1"},
    {"SimplifiedLayerNormGrad", "RMSNormalization", "[2,3,4], [4]; axis=-1"},
    {"WhereGrad", "Where", "bool[4,3], [4,3], [3]"},
    {"SliceGrad", "Slice", "[4,5], i64[2]={1,0}, i64[2]={3,4}"},
    {"ExpandGrad", "Expand", "[2,1,3], i64[3]={2,4,3}"},
    {"GatherElementsGrad", "GatherElements", "[3,3], i64[2,3]<3"},
    {"TopKGrad", "TopK", "[4,5]~, i64[1]={3}; outputs=2"},
    {"ClipGrad", "Clip", "[2,3,4]~, []={-0.5}, []={0.5}"},
    {"MinGrad", "Min", "[2,3]~, [3]~, [2,1]~"},
    {"MaxGrad", "Max", "[2,3]~, [3]~, [2,1]~"},
    {"TileGrad", "Tile", "[2,3], i64[2]={2,2}"},
    {"PadGrad", "Pad", "[2,3], i64[4]={0,1,0,2}"},
    {"ScatterNDGrad", "ScatterND", "[4,4,3], i64[2,1]={2,0}, [2,4,3]"},
    {"ScatterElementsGrad", "ScatterElements", "[3,3], i64[2,3]={1,0,2,0,2,1}, [2,3]"},
    {"TriluGrad", "Trilu", "[2,3,4]; upper=0"},
    {"ReciprocalGrad", "Reciprocal", "[2,3,4]>0"},
    {"LeakyReluGrad", "LeakyRelu", "[2,3,4]~; alpha=0.1"},
    {"ConvTransposeGrad", "ConvTranspose", "[1,2,4,4], [2,3,3,3], [3]; strides={2,2}", 1e-1},
    {"ResizeGrad", "Resize", "[1,2,3,4], -, [4]={1,1,2,2}; mode='linear'"},
};

// The largest error of a gradient, relative to its size.
double worst_error(const Tables& tables, const NamedCase& named) {
  const OpCase op_case(tables.ops.get(named.op), named.example, DType::kF64);
  const Probe probe(tables, op_case);
  const std::vector<bool> wanted = probe.differentiable_inputs();
  const std::vector<bool> outputs = probe.differentiable_outputs(wanted);
  const auto gradients = probe.analytic(outputs, wanted);
  double worst = 0.0;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const Tensor gradient = gradients[i].value_or(Tensor(op_case.inputs()[i].type()));
    const Errors errors = compare(probe, outputs, i, gradient);
    worst = std::max({worst, errors.direction, errors.elements});
    ++compared;
  }
  CHECK(compared > 0);
  return worst;
}

}  // namespace

// The other 5 of its 71, of ops that are written with others when a model is read, are in
// tests/engine/check/named_gradients_test.cpp. Both dropouts are switched off there.
TEST_CASE("named gradients: ONNX Runtime Training's cases, far below its tolerances") {
  static_assert(std::size(kCases) == 66);
  const Tables tables;
  std::string table;
  for (const NamedCase& named : kCases) {
    INFO(named.name, ": ", named.op, " \"", named.example, "\"");
    try {
      const double error = worst_error(tables, named);
      CHECK(error <= kBound);
      table += fmt::format("\n  {:<36} {:<24} {:.1e} of {:.1e}", named.name, named.op, error,
                           named.tolerance);
    } catch (const Error& error) {
      FAIL_CHECK(error.message());
    }
  }
  MESSAGE(std::size(kCases), " cases, error and tolerance there:", table);
}

}  // namespace trainscope::test
