// A graph's words as a trace has them.
#include "engine/run/numerics/trace_rows.h"

#include <fmt/format.h>

#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

profiler::TracePhase phase_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return profiler::TracePhase::kForward;
    case Phase::kBackward:
      return profiler::TracePhase::kBackward;
    case Phase::kUpdate:
      return profiler::TracePhase::kUpdate;
  }
  CHECK_INVARIANT(false);
}

}  // namespace

std::string shape_cell(const Shape& shape) {
  std::string text;
  for (const std::int64_t dim : shape.span()) {
    text += fmt::format("{}{}", text.empty() ? "" : "x", dim);
  }
  return text.empty() ? "scalar" : text;
}

profiler::TraceRow trace_row(const Graph& graph, ValueId id, const TracedAs& as) {
  const Value& value = graph.value(id);
  profiler::TraceRow row{.kind = as.kind,
                         .value = as.name,
                         .dtype = std::string(name_of(value.type.dtype)),
                         .shape = shape_cell(value.type.shape)};
  if (value.producer == kNoNode) return row;
  const Node& node = graph.node(value.producer);
  row.phase = phase_of(node.phase);
  row.op = std::string(node.op->name);
  row.node = node.name;
  return row;
}

}  // namespace trainscope
