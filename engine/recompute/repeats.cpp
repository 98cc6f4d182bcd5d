// Clones nodes and leads their later readers to the clones.
#include "engine/recompute/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/rewriter.h"

namespace trainscope {
namespace {

class RepeatBuilder {
 public:
  RepeatBuilder(Graph& graph, const OpTable& ops, std::span<const Repeat> repeats)
      : graph_(graph),
        rewriter_(graph, ops, "recompute", nullptr),
        repeats_(repeats),
        order_(graph.order()),
        position_(graph.node_capacity(), 0),
        last_use_(graph.value_capacity(), -1),
        newest_(graph.value_capacity(), kNoValue) {
    inputs_.resize(graph.node_capacity());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_[index(order_[i])] = static_cast<std::int64_t>(i);
      inputs_[index(order_[i])] = graph.node(order_[i]).inputs;
    }
  }

  void run() {
    find_last_uses();
    std::size_t next = 0;
    for (NodeId id : order_) {
      for (; next < repeats_.size() && repeats_[next].before == id; ++next) add(repeats_[next]);
      read_newest(id);
    }
    CHECK_INVARIANT(next == repeats_.size());  // sorted by position
  }

  NodeId origin(NodeId id) const {
    const auto found = origin_.find(id);
    return found == origin_.end() ? id : found->second;
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  // By value of the original graph: the last position at which a node or a repeat reads it.
  void find_last_uses() {
    const auto use = [this](NodeId reader, std::int64_t at) {
      for (ValueId v : inputs_[index(reader)]) {
        if (v != kNoValue) last_use_[index(v)] = std::max(last_use_[index(v)], at);
      }
    };
    for (NodeId id : order_) use(id, position_[index(id)]);
    for (const Repeat& repeat : repeats_) use(repeat.node, position_[index(repeat.before)]);
  }

  ValueId newest(ValueId v) const {
    if (v == kNoValue || newest_[index(v)] == kNoValue) return v;
    return newest_[index(v)];
  }

  // Whether anything at or after a position reads the node's results.
  bool is_wanted(const Node& node, std::int64_t at) const {
    return std::ranges::any_of(
        node.outputs, [&](ValueId v) { return v != kNoValue && last_use_[index(v)] >= at; });
  }

  void add(const Repeat& repeat) {
    const std::int64_t at = position_[index(repeat.before)];
    const Node& node = graph_.node(repeat.node);
    CHECK_INVARIANT(node.phase == Phase::kForward || node.op->is_view);
    CHECK_INVARIANT(position_[index(repeat.node)] < at);
    if (!is_wanted(node, at)) return;
    Builder::Spec spec{.op = node.op,
                       .name = graph_.unique_name(node.name + "/again"),
                       .inputs = {},
                       .output_names = {},
                       .attributes = node.attributes,
                       .provenance = {.sources = node.provenance.sources, .pass = "recompute"}};
    for (ValueId v : inputs_[index(repeat.node)]) spec.inputs.push_back(newest(v));
    for (ValueId v : node.outputs) {
      const bool wanted = v != kNoValue && last_use_[index(v)] >= at;
      // The first output stays in any case: few ops can do without it.
      const bool keep = v != kNoValue && (wanted || spec.output_names.empty());
      spec.output_names.push_back(keep ? graph_.value(v).name + "/again" : std::string());
    }
    while (spec.output_names.back().empty()) spec.output_names.pop_back();
    const std::vector<ValueId> originals = node.outputs;
    const NodeId clone = rewriter_.before(repeat.before).add(std::move(spec));
    origin_.emplace(clone, repeat.node);
    for (std::size_t i = 0; i < graph_.node(clone).outputs.size(); ++i) {
      const ValueId made = graph_.node(clone).outputs[i];
      if (made != kNoValue) newest_[index(originals[i])] = made;
    }
  }

  void read_newest(NodeId id) {
    const std::vector<ValueId>& originals = inputs_[index(id)];
    for (std::size_t i = 0; i < originals.size(); ++i) {
      const ValueId now = newest(originals[i]);
      if (now != originals[i]) rewriter_.set_input(id, static_cast<int>(i), now);
    }
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::span<const Repeat> repeats_;
  std::vector<NodeId> order_;                  // of the original graph
  std::vector<std::int64_t> position_;         // by NodeId of the original graph
  std::vector<std::vector<ValueId>> inputs_;   // by NodeId, of the original graph
  std::vector<std::int64_t> last_use_;         // by ValueId of the original graph
  std::unordered_map<NodeId, NodeId> origin_;  // of the repeats
  std::vector<ValueId> newest_;  // by ValueId of the original graph: its latest repeat
};

}  // namespace

RepeatedGraph with_repeats(Graph graph, const OpTable& ops, std::span<const Repeat> repeats) {
  RepeatBuilder builder(graph, ops, repeats);
  builder.run();
  RepeatedGraph result{.graph = graph.compacted(), .origin = {}};
  for (NodeId id : graph.order()) result.origin.push_back(builder.origin(id));
  CHECK_INVARIANT(verify(result.graph).empty());
  return result;
}

}  // namespace trainscope
