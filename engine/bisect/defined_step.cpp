// Two unfused steps of one model, and the names by which traces know their values.
#include "engine/bisect/defined_step.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "engine/ir/op_def.h"
#include "engine/ir/well_known.h"

namespace trainscope {

CompileOptions in_f64(CompileOptions options) {
  options.import.float_type = DType::kF64;
  options.training.precision = StepPrecision::kF32;
  return options;
}

RowKeys::RowKeys(const UnfusedStep& step)
    : keys_(step.graph().value_capacity()), next_(step.graph().value_capacity()) {
  const Graph& graph = step.graph();
  std::unordered_map<std::string, std::vector<std::string>> others;
  for (const profiler::TraceName& name : step.values().names()) {
    if (!name.row.empty() && name.row != name.value) others[name.row].push_back(name.value);
  }
  for (const ValueId id : graph.live_values()) {
    const TracedAs& as = step.values().of(id);
    if (as.kind == profiler::TraceKind::kOwn) continue;
    std::vector<std::string>& keys = keys_[index(id)];
    keys.push_back(fmt::format("{}:{}", name_of(as.kind), as.name));
    const auto found = others.find(keys.front());
    if (found == others.end()) continue;
    keys.insert(keys.end(), found->second.begin(), found->second.end());
  }
  for (const Update& update : graph.updates) {
    const Value& state = graph.value(update.state);
    const auto kind = state.kind == ValueKind::kParameter ? profiler::TraceKind::kParameter
                                                          : profiler::TraceKind::kState;
    next_[index(update.value)] = fmt::format("{}:{}", name_of(kind), state.name);
  }
}

DefinedStep::DefinedStep(const OnnxModel& model, const CompileOptions& options)
    : truth_(model, in_f64(options), UnfusedEnd::kUpdate),
      single_(model, options),
      keys_(truth_),
      single_keys_(single_) {}

NodeId forward_node(const Graph& graph, const Node& node) {
  const Serial serial = node.provenance.backward_of;
  if (serial == kNoSerial) return kNoNode;
  for (const NodeId id : graph.order()) {
    if (graph.node(id).serial == serial) return id;
  }
  return kNoNode;
}

NamedNode model_node(const Graph& graph, const Node& node) {
  const NodeId forward = forward_node(graph, node);
  const Node& of = forward == kNoNode ? node : graph.node(forward);
  const SourceNames& sources = of.provenance.sources;
  const bool is_made = of.provenance.pass != kImportPass && !sources.empty();
  return {.op = std::string(of.op->name), .name = is_made ? *sources.begin() : of.name};
}

}  // namespace trainscope
