// Costs of calls, by their operands.
#include "engine/plan/call_costs.h"

#include <vector>

#include "engine/core/saturating.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {
namespace {

std::vector<TensorType> types_of(const std::vector<Operand>& operands) {
  std::vector<TensorType> types;
  for (const Operand& operand : operands) {
    if (operand.value != kNoValue) types.push_back(operand.type);
  }
  return types;
}

std::int64_t bytes_in(const std::vector<Operand>& operands) {
  std::int64_t bytes = 0;
  for (const TensorType& type : types_of(operands)) {
    add_saturating(bytes, static_cast<std::int64_t>(type.bytes()));
  }
  return bytes;
}

}  // namespace

std::vector<TensorView> operand_views(const Graph& graph, const std::vector<Operand>& operands) {
  std::vector<TensorView> views;
  for (const Operand& operand : operands) {
    const bool present = operand.value != kNoValue;
    TensorView view{.type = operand.type, .present = present};
    if (present && operand.slice == TileSlice::kWhole) {
      const Value& value = graph.value(operand.value);
      if (value.kind == ValueKind::kConstant && value.data) view = value.data->view();
    }
    views.push_back(view);
  }
  return views;
}

DType dtype_of(const Call& call) {
  return kernel_dtype(types_of(call.inputs), types_of(call.outputs));
}

Cost definition_of(const Program& program, const Call& call) {
  if (call.kind == CallKind::kStateCopy || call.kind == CallKind::kAddPartials) {
    const std::int64_t sums = static_cast<std::int64_t>(call.inputs.size()) - 1;
    return {.flops = sums * call.outputs[0].type.elements(),
            .bytes_read = bytes_in(call.inputs),
            .bytes_written = bytes_in(call.outputs)};
  }
  const Node& node = program.graph.node(call.node);
  const NodeArgs args(program.graph, node);
  Cost whole = cost_of(*node.op, *args);
  if (call.tile < 0) return whole;
  for (std::int64_t* share : {&whole.flops, &whole.bytes_read, &whole.bytes_written}) {
    *share = *share / program.threads + (call.tile < *share % program.threads ? 1 : 0);
  }
  return whole;
}

Cost kernel_cost_of(const Program& program, const Call& call, const Cost& definition) {
  if (call.kernel == nullptr) return definition;
  const std::vector<TensorView> inputs = operand_views(program.graph, call.inputs);
  const std::vector<TensorView> outputs = operand_views(program.graph, call.outputs);
  const PrepareArgs args{.params = call.params,
                         .inputs = inputs,
                         .outputs = outputs,
                         .threads = call.tile < 0 ? program.threads : 1};
  return at_node(program.graph.node(call.node),
                 [&] { return cost_of(*call.kernel, args, definition); });
}

std::int64_t own_workspace_bytes(const Program& program, const Call& call) {
  if (call.workspace == kNoBuffer) return 0;
  return call.tile < 0 ? program.buffer(call.workspace).bytes
                       : static_cast<std::int64_t>(call.prepared.workspace_bytes);
}

}  // namespace trainscope
