// A table of what op names contain; the first that fits counts.
#include "gui/views/op_class.h"

#include <algorithm>
#include <array>

namespace trainscope::gui {
namespace {

struct NameWord {
  std::string_view word;
  OpClass op_class;
};

constexpr NameWord kWords[] = {
    {"CrossEntropy", OpClass::kLoss},
    {"LogLikelihood", OpClass::kLoss},
    {"Loss", OpClass::kLoss},
    {"BceWithLogits", OpClass::kLoss},
    {"MeanSquaredError", OpClass::kLoss},
    {"MeanAbsoluteError", OpClass::kLoss},
    {"Step", OpClass::kOptimizer},
    {"GlobalNorm", OpClass::kOptimizer},
    {"GradientScale", OpClass::kOptimizer},
    {"Attention", OpClass::kAttention},
    {"Softmax", OpClass::kAttention},
    {"MatMul", OpClass::kMatmul},
    {"Gemm", OpClass::kMatmul},
    {"Conv", OpClass::kMatmul},
    {"Einsum", OpClass::kMatmul},
    {"SampleGrad", OpClass::kMatmul},
    {"Norm", OpClass::kNorm},
    {"LRN", OpClass::kNorm},
    {"elu", OpClass::kActivation},
    {"Elu", OpClass::kActivation},
    {"Relu", OpClass::kActivation},
    {"Sigmoid", OpClass::kActivation},
    {"Tanh", OpClass::kActivation},
    {"Swish", OpClass::kActivation},
    {"Erf", OpClass::kActivation},
    {"Softplus", OpClass::kActivation},
    {"Mish", OpClass::kActivation},
    {"Dropout", OpClass::kActivation},
    {"Reduce", OpClass::kReduction},
    {"Pool", OpClass::kReduction},
    {"SumRows", OpClass::kReduction},
    {"Mean", OpClass::kReduction},
    {"AddPartials", OpClass::kReduction},
    {"TopK", OpClass::kReduction},
    {"Region", OpClass::kReduction},
};

constexpr std::string_view kMovements[] = {
    "Reshape",   "Transpose", "Concat",      "Split",        "Slice",        "Gather",
    "Scatter",   "Expand",    "Cast",        "Identity",     "Flatten",      "Squeeze",
    "Unsqueeze", "Pad",       "Tile",        "Fetch",        "Offload",      "Constant",
    "Shape",     "Rows",      "OneHot",      "Trilu",        "DepthToSpace", "SpaceToDepth",
    "Range",     "Resize",    "Interpolate", "Sample",       "Col2Im",       "ReverseSequence",
    "EyeLike",   "Compress",  "RoiAlign",    "ElementIndex", "AffineGrid"};

constexpr std::string_view kPointwise[] = {
    "Add",   "Sub",    "Mul",     "Div",        "Sqrt",       "Pow",       "Exp",
    "Log",   "Where",  "Neg",     "Abs",        "Clip",       "Sum",       "Max",
    "Min",   "Equal",  "Not",     "Reciprocal", "Sign",       "And",       "Or",
    "Xor",   "Less",   "Greater", "Mod",        "Accumulate", "Quantize",  "Shift",
    "Ceil",  "Floor",  "Round",   "Sin",        "Cos",        "Tan",       "IsInf",
    "IsNaN", "Rotary", "Shrink",  "Random",     "Uniform",    "Bernoulli", "Dequantize"};

bool has_any(std::string_view op, auto&& words) {
  return std::ranges::any_of(
      words, [op](std::string_view word) { return op.find(word) != std::string_view::npos; });
}

}  // namespace

OpClass class_of(std::string_view op) {
  for (const NameWord& row : kWords) {
    if (op.find(row.word) != std::string_view::npos) return row.op_class;
  }
  if (has_any(op, kMovements)) return OpClass::kMovement;
  if (has_any(op, kPointwise)) return OpClass::kPointwise;
  return OpClass::kOther;
}

std::string_view name_of(OpClass op_class) {
  static constexpr std::array<std::string_view, kOpClasses> kNames = {
      "matmul",    "attention", "norm", "activation", "pointwise",
      "reduction", "movement",  "loss", "optimizer",  "other"};
  return kNames[static_cast<std::size_t>(op_class)];
}

}  // namespace trainscope::gui
