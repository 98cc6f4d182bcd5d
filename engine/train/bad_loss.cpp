// The first bad tensor of a step whose loss is no number, and whether a trained constant made it.
#include "engine/train/bad_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

bool is_exponent(const Graph& graph, ValueId id) {
  return std::ranges::any_of(graph.value(id).uses, [&graph](const Use& use) {
    return use.input == graph.node(use.node).op->exponent_input;
  });
}

// Where a number that training brings to zero or below gives no number any more.
bool is_divisor(const Graph& graph, ValueId id) {
  return std::ranges::any_of(graph.value(id).uses, [&graph](const Use& use) {
    const std::vector<int>& poles = graph.node(use.node).op->poles;
    return std::ranges::find(poles, use.input) != poles.end();
  });
}

bool is_trained_constant(const Graph& graph, ValueId id, const UnmarkedNames& unmarked) {
  if (id == kNoValue) return false;
  const Value& value = graph.value(id);
  if (value.kind != ValueKind::kParameter) return false;
  return value.type.shape.rank == 0 || is_exponent(graph, id) ||
         (unmarked.contains(value.name) && is_divisor(graph, id));
}

std::string place_of(const BadTensor& bad) {
  const std::string counts =
      fmt::format("{} NaN, {} infinite of {} elements", bad.nan, bad.infinite, bad.elements);
  if (bad.node.empty()) {
    return fmt::format("first bad tensor: {} '{}': {}", bad.op, printable(bad.value), counts);
  }
  return fmt::format("first bad tensor: '{}' of {} '{}': {}", printable(bad.value), bad.op,
                     printable(bad.node), counts);
}

}  // namespace

std::string trained_constant(const Graph& graph, const BadTensor& bad,
                             const UnmarkedNames& unmarked) {
  if (bad.node.empty()) {
    const ValueId id = graph.find(bad.value);
    return is_trained_constant(graph, id, unmarked) ? bad.value : "";
  }
  const NodeId node = graph.find_node(bad.node);
  if (node == kNoNode) return "";
  for (ValueId input : graph.node(node).inputs) {
    if (is_trained_constant(graph, input, unmarked)) return graph.value(input).name;
  }
  return "";
}

Error bad_loss_error(Executor& executor, double loss, std::int64_t step,
                     const UnmarkedNames& unmarked) {
  const std::string_view what = std::isnan(loss) ? "NaN" : "infinite";
  Error error(ErrorCode::kNumeric, fmt::format("the loss is {} at step {}", what, step));
  const std::optional<BadTensor> bad = executor.find_bad_tensor();
  if (!bad) {
    error.hint("lower --lr, clip gradients (--clip 1), or look at the data of this step");
    return error;
  }
  error.at(place_of(*bad));
  const Graph& graph = executor.program().graph;
  const std::string constant = trained_constant(graph, *bad, unmarked);
  if (!constant.empty()) {
    const bool known = is_trained_constant(graph, graph.find(constant), {});
    error.at(fmt::format("it comes of '{}', which is trained here: {}", printable(constant),
                         known ? "an exponent or a single number, that models mostly hold constant"
                               : "the file does not tell whether it is a parameter, or a buffer "
                                 "that PyTorch leaves as it is"));
    error.hint(fmt::format("leave it as the model has it: --freeze {}", printable(constant)));
  }
  error.hint("lower --lr, clip gradients (--clip 1), or look at the data of this step");
  return error;
}

}  // namespace trainscope
