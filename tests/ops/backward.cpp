// Reverse mode over one node, or over the nodes that it decomposes into.
#include "tests/ops/backward.h"

#include <algorithm>
#include <map>
#include <memory>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"

namespace trainscope::test {
namespace {

bool none(const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [](ValueId v) { return v == kNoValue; });
}

std::vector<ValueId> by_rule(Builder& b, const Node& node, const std::vector<ValueId>& dy,
                             const std::vector<bool>& wanted) {
  const auto flags = std::make_unique<bool[]>(wanted.size());
  std::copy(wanted.begin(), wanted.end(), flags.get());
  std::vector<ValueId> dx = node.op->gradient({.b = b,
                                               .node = node,
                                               .x = node.inputs,
                                               .y = node.outputs,
                                               .dy = dy,
                                               .wanted = {flags.get(), wanted.size()}});
  require(dx.size() == node.inputs.size(), ErrorCode::kBadInput,
          "the gradient rule of {} gives {} gradients for {} inputs", node.op->name, dx.size(),
          node.inputs.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (dx[i] == kNoValue || !wanted[i]) {
      dx[i] = kNoValue;
      continue;
    }
    require(b.type(dx[i]) == b.type(node.inputs[i]), ErrorCode::kBadInput,
            "the gradient of input {} of {} has another type than the input", i, node.op->name);
  }
  return dx;
}

// Gradients collected per value, added up when asked for.
class Contributions {
 public:
  void add(Builder& b, ValueId of, ValueId gradient) {
    if (of == kNoValue || gradient == kNoValue) return;
    const auto [entry, fresh] = sums_.emplace(of, gradient);
    if (!fresh) entry->second = b("Add", {entry->second, gradient});
  }
  ValueId of(ValueId value) const {
    const auto entry = sums_.find(value);
    return entry == sums_.end() ? kNoValue : entry->second;
  }

 private:
  std::map<ValueId, ValueId> sums_;
};

bool can_flow(const Builder& b, ValueId v) { return v != kNoValue && is_float(b.type(v).dtype); }

std::vector<NodeId> nodes_after(const Graph& graph, NodeId last) {
  std::vector<NodeId> nodes;
  for (NodeId id = last == kNoNode ? graph.first() : graph.node(last).next; id != kNoNode;
       id = graph.node(id).next) {
    nodes.push_back(id);
  }
  return nodes;
}

std::vector<ValueId> by_decomposition(Builder& b, const Node& node, const std::vector<ValueId>& dy,
                                      const std::vector<bool>& wanted) {
  const NodeId last = b.graph().last();
  const std::vector<ValueId> y = node.op->decompose(b, node);
  const std::vector<NodeId> nodes = nodes_after(b.graph(), last);
  Contributions gradients;
  for (std::size_t k = 0; k < dy.size(); ++k) gradients.add(b, y[k], dy[k]);
  for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
    const Node simple = b.graph().node(*id);
    if (simple.op->differentiable == Differentiable::kNo) continue;
    std::vector<ValueId> node_dy;
    for (ValueId v : simple.outputs) node_dy.push_back(gradients.of(v));
    if (none(node_dy)) continue;
    std::vector<bool> node_wanted;
    for (ValueId v : simple.inputs) node_wanted.push_back(can_flow(b, v));
    // As deep as decompositions nest, which the op table bounds.
    const std::vector<ValueId> dx = backward(b, *id, node_dy, node_wanted);
    for (std::size_t i = 0; i < dx.size(); ++i) gradients.add(b, simple.inputs[i], dx[i]);
  }
  std::vector<ValueId> result;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    result.push_back(wanted[i] ? gradients.of(node.inputs[i]) : kNoValue);
  }
  return result;
}

}  // namespace

std::vector<ValueId> backward(Builder& b, NodeId id, const std::vector<ValueId>& dy,
                              const std::vector<bool>& wanted) {
  const Node node = b.graph().node(id);  // a copy: the graph's storage grows
  if (node.op->gradient) return by_rule(b, node, dy, wanted);
  require(node.op->decompose != nullptr, ErrorCode::kBadInput, "{} has no gradient", node.op->name);
  return by_decomposition(b, node, dy, wanted);
}

}  // namespace trainscope::test
