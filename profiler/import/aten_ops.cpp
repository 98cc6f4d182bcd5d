// Look-ups in the table.
#include "profiler/import/aten_ops.h"

#include <algorithm>
#include <map>

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

}  // namespace

std::string_view without_engine(std::string_view name) {
  take_prefix(name, "autograd::engine::evaluate_function: ");
  return name;
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
