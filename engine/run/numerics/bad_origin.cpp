// From the first bad row back along the operands with the largest elements.
#include "engine/run/numerics/bad_origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "engine/ir/well_known.h"
#include "engine/run/numerics/traced_values.h"

namespace trainscope {
namespace {

using profiler::Trace;
using profiler::TraceKind;
using profiler::TracePhase;
using profiler::TraceRow;

constexpr std::size_t kLongestChain = 6;

// The first with a NaN or +infinity: -infinity is what attention masks are made of.
const TraceRow* first_bad(const Trace& trace) {
  const auto first = [&trace](auto is_bad_row) -> const TraceRow* {
    const auto found = std::ranges::find_if(trace.rows(), is_bad_row);
    return found == trace.rows().end() ? nullptr : &*found;
  };
  const TraceRow* nan = first([](const TraceRow& row) { return row.statistics.nan > 0; });
  const TraceRow* infinite =
      first([](const TraceRow& row) { return row.statistics.positive_infinite > 0; });
  if (nan == nullptr) return infinite;
  if (infinite == nullptr) return nan;
  return infinite < nan ? infinite : nan;
}

// Of a state of the optimizer, "ai.trainscope.KIND/PARAMETER", the parameter, whose name may hold
// slashes; else the row's own value.
std::string parameter_of(const TraceRow& row) {
  const bool of_optimizer = row.kind == TraceKind::kState && row.value.starts_with(kOwnPrefix);
  const std::size_t slash = of_optimizer ? row.value.find('/') : std::string::npos;
  return slash == std::string::npos ? row.value : row.value.substr(slash + 1);
}

// The rows of a node's operands: those of the step, else what the step began with.
class Operands {
 public:
  Operands(const Replayed& replayed, const TraceRow& bad)
      : graph_(replayed.compiled->program.graph),
        values_(replayed.compiled->stages, graph_, ViewRows::kOfTheViewed) {
    for (const TraceRow& row : replayed.trace->rows()) {
      const bool before = row.step < bad.step;
      // All micro-batches come before an update.
      const bool same = bad.phase == TracePhase::kUpdate || row.micro_batch == bad.micro_batch;
      const bool here = row.step == bad.step && same && row.order < bad.order;
      if (before || here) rows_.insert_or_assign(row.key(), &row);
    }
  }

  // Of a parameter or state the optimizer's: its gradient, what it was before, and its moments.
  std::vector<const TraceRow*> of(const TraceRow& row) const {
    if (row.phase == TracePhase::kUpdate) return of_update(row);
    std::vector<const TraceRow*> found;
    const NodeId node = row.node.empty() ? kNoNode : graph_.find_node(row.node);
    if (node == kNoNode) return found;
    for (ValueId input : graph_.node(node).inputs) {
      if (input == kNoValue) continue;
      const TraceRow* operand = row_of(input);
      if (operand != nullptr && operand != &row) found.push_back(operand);
    }
    return found;
  }

 private:
  std::vector<const TraceRow*> of_update(const TraceRow& row) const {
    const std::string parameter = parameter_of(row);
    std::vector<const TraceRow*> found;
    for (const auto& [key, operand] : rows_) {
      const bool is_gradient = key == "grad:" + parameter;
      const bool is_kept =
          operand->kind == TraceKind::kState || operand->kind == TraceKind::kParameter;
      if (is_gradient || (is_kept && parameter_of(*operand) == parameter)) found.push_back(operand);
    }
    return found;
  }
  const TraceRow* row_of(ValueId id) const {
    const TracedAs& as = values_.of(viewed(graph_, id));
    const auto found = rows_.find(fmt::format("{}:{}", name_of(as.kind), as.name));
    return found == rows_.end() ? nullptr : found->second;
  }

  const Graph& graph_;
  TracedValues values_;
  std::map<std::string, const TraceRow*> rows_;
};

}  // namespace

double largest(const profiler::TensorStatistics& statistics) {
  return std::max(std::abs(statistics.least), std::abs(statistics.most));
}

BadOrigin bad_origin(const Replayed& replayed, std::int64_t step) {
  const TraceRow* bad = first_bad(*replayed.trace);
  require(bad != nullptr, ErrorCode::kUsage,
          "steps {} and {}, run again, have neither NaN nor +infinity: the run's bits were others",
          step - 1, step);
  const Operands operands(replayed, *bad);
  BadOrigin origin{.bad = *bad, .inputs = {}, .chain = {}};
  for (const TraceRow* row : operands.of(*bad)) origin.inputs.push_back(*row);
  const TraceRow* at = bad;
  while (origin.chain.size() < kLongestChain) {
    const std::vector<const TraceRow*> rows = operands.of(*at);
    const auto next = std::ranges::max_element(
        rows, {}, [](const TraceRow* row) { return largest(row->statistics); });
    if (next == rows.end() || (*next)->op.empty()) break;
    at = *next;
    origin.chain.push_back(*at);
  }
  return origin;
}

}  // namespace trainscope
