// Look-ups in the table.
#include "profiler/import/aten_ops.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace trainscope::profiler {
namespace {

using Table = std::map<std::string_view, std::string_view>;

const Table& forward_ops() {
  static const Table kOps = {
#define ATEN(name, op) {#name, #op},
#include "profiler/import/aten_ops.def"
#undef ATEN
  };
  return kOps;
}

const Table& gradient_ops() {
  static const Table kOps = {
#define AUTOGRAD(name, op) {#name, #op},
#include "profiler/import/autograd_ops.def"
#undef AUTOGRAD
  };
  return kOps;
}

std::string found_in(const Table& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? std::string() : std::string(found->second);
}

bool take_prefix(std::string_view& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  return true;
}

// "AdamW.step" -> "AdamWStep".
std::string step_of(std::string_view optimizer) {
  const std::string name(optimizer.substr(0, optimizer.find('.')));
  return (name == "SGD" ? "Sgd" : name) + "Step";
}

// "AddmmBackward0": the digits count versions of it.
std::string gradient_of(std::string_view name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  constexpr std::string_view kBackward = "Backward";
  if (name.ends_with(kBackward)) name.remove_suffix(kBackward.size());
  const std::string op = found_in(gradient_ops(), name);
  return op.empty() ? op : op + "Grad";
}

// Of ops that multiply matrices: which input is the left one, the right one following, and how
// many dimensions both have.
struct MatmulOp {
  std::string_view name;
  std::size_t left;
  std::size_t rank;
};
constexpr std::array<MatmulOp, 4> kMatmuls = {
    {{"aten::mm", 0, 2}, {"aten::addmm", 1, 2}, {"aten::bmm", 0, 3}, {"aten::baddbmm", 1, 3}}};

}  // namespace

std::string_view without_engine(std::string_view name) {
  take_prefix(name, "autograd::engine::evaluate_function: ");
  return name;
}

std::int64_t matmul_flops(std::string_view name,
                          const std::vector<std::vector<std::int64_t>>& shapes) {
  constexpr double kMost = 1e15;
  const auto* op = std::ranges::find(kMatmuls, name, &MatmulOp::name);
  if (op == kMatmuls.end() || shapes.size() < op->left + 2) return 0;
  const std::vector<std::int64_t>& left = shapes[op->left];       // [.., m, k]
  const std::vector<std::int64_t>& right = shapes[op->left + 1];  // [.., k, n]
  if (left.size() != op->rank || right.size() != op->rank) return 0;
  if (left.back() != right[op->rank - 2]) return 0;
  double flops = 2.0 * static_cast<double>(right.back());
  for (const std::int64_t size : left) flops *= static_cast<double>(size);
  return flops > 0.0 && flops < kMost ? static_cast<std::int64_t>(flops) : 0;
}

std::string onnx_op_of(std::string_view name) {
  name = without_engine(name);
  if (take_prefix(name, "onnx::")) return std::string(name);
  if (take_prefix(name, "aten::")) {
    const std::string op = found_in(forward_ops(), name);
    if (!op.empty() || !name.ends_with('_')) return op;
    return found_in(forward_ops(), name.substr(0, name.size() - 1));
  }
  if (name == "torch::autograd::AccumulateGrad") return "Accumulate";
  if (name == "torch::autograd::CopyBackwards") return "IdentityGrad";
  if (take_prefix(name, "Optimizer.step#")) return step_of(name);
  if (name.starts_with("Optimizer.zero_grad#")) return "ConstantOfShape";
  if (name == "detach" || name == "detach_") return "Identity";
  return gradient_of(name);
}

}  // namespace trainscope::profiler
