// Every op of a model that cannot be imported, in one list.
#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "engine/onnx/adapters/adapters.h"
#include "engine/onnx/composites/composites.h"
#include "engine/onnx/import.h"
#include "engine/onnx/importer/functions.h"
#include "engine/onnx/importer/sequences.h"
#include "engine/onnx/model_impl.h"
#include "engine/onnx/node_names.h"
#include "engine/onnx/validate.h"

namespace trainscope {
namespace {

// Why nodes of this op cannot be imported; empty when they can, as far as the op itself decides.
std::string why_missing(const OnnxModel::Impl& model, const OpTable& ops, const BodyOp& call) {
  if (has_model_function(model, call.domain, call.op)) return {};
  if (call.domain.empty() && call.op == "Constant") return {};
  if (is_sequence_op(call.domain, call.op)) return {};
  if (call.domain.empty() && is_control_flow(call.op)) return {};
  AdapterChoice choice;
  if (call.domain.empty()) choice = adapter_for(call.op, call.opset);
  if (is_replaced(choice)) {
    const std::string_view becomes = choice.row->becomes;
    bool there = ops.find(becomes) != nullptr || ops.find(becomes, kTrainscopeDomain) != nullptr;
    return there ? "" : fmt::format("there is no {}, which stands in for it", becomes);
  }
  if (ops.find(call.op, call.domain) == nullptr) {
    if (find_composite(call.domain, call.op, call.opset) != nullptr) return {};
    if (has_standard_function(call.domain, call.op, call.opset)) return {};
    const std::string_view why = out_of_scope(call.domain, call.op);
    return std::string(why.empty() ? "there is no such op" : why);
  }
  bool unknown = choice.adaptation == Adaptation::kUnknown;
  return unknown ? fmt::format("no conversion from opset {} is known", call.opset) : "";
}

bool is_function(const OnnxModel::Impl& model, const OpTable& ops, const BodyOp& call) {
  return has_model_function(model, call.domain, call.op) ||
         ops.find(call.op, call.domain) == nullptr;
}

// The missing ones among an op and all ops that its bodies are made of.
std::set<BodyOp> missing_below(const OnnxModel::Impl& model, const OpTable& ops,
                               const BodyOp& call) {
  std::set<BodyOp> missing;
  std::set<BodyOp> seen{call};
  std::vector<BodyOp> waiting{call};
  while (!waiting.empty()) {
    BodyOp next = std::move(waiting.back());
    waiting.pop_back();
    const bool has_graph = next.domain.empty() && is_control_flow(next.op);
    if (!why_missing(model, ops, next).empty() || (has_graph && next != call)) {
      missing.insert(next);
    } else if (is_function(model, ops, next)) {
      for (BodyOp& inner : body_ops(model, next)) {
        if (seen.insert(inner).second) waiting.push_back(std::move(inner));
      }
    }
  }
  return missing;
}

// The model's graph, or a body, with what stands before the names of its nodes.
struct Graphs {
  const pb::GraphProto* graph;
  std::string prefix;
};

}  // namespace

std::vector<MissingOp> missing_ops(const OnnxModel& model, const OpTable& ops) {
  const OnnxModel::Impl& impl = model.impl();
  std::map<BodyOp, std::set<BodyOp>> known;             // what is missing for an op of the graph
  std::map<BodyOp, std::vector<std::string>> nodes_of;  // a missing op
  std::vector<Graphs> waiting{{.graph = &impl.proto.graph(), .prefix = {}}};
  for (std::size_t at = 0; at < waiting.size(); ++at) {
    const Graphs around = waiting[at];
    NodeNames names(*around.graph);
    for (int i = 0; i < around.graph->node_size(); ++i) {
      const pb::NodeProto& node = around.graph->node(i);
      const std::string name = around.prefix + names.take(node, i);
      BodyOp call{.domain = std::string(plain_domain(node.domain())), .op = node.op_type()};
      call.opset = impl.facts.opsets.find(call.domain)->second;
      auto found = known.find(call);
      if (found == known.end()) {
        found = known.emplace(call, missing_below(impl, ops, call)).first;
      }
      for (const BodyOp& each : found->second) {
        nodes_of[each].push_back(name);
      }
      for (const pb::AttributeProto& a : node.attribute()) {
        if (a.has_g()) waiting.push_back({.graph = &a.g(), .prefix = name + "/"});
      }
    }
  }
  std::vector<MissingOp> missing;
  for (auto& [op, nodes] : nodes_of) {
    std::string why = why_missing(impl, ops, op);
    if (why.empty()) why = "it is in the body of a function, where no graphs are read";
    missing.push_back({.op = op.op,
                       .domain = op.domain,
                       .opset = op.opset,
                       .why = std::move(why),
                       .nodes = std::move(nodes)});
  }
  return missing;
}

}  // namespace trainscope
