// Leads later readers to what runs again: first in numbers, then as clones of nodes.
#include "engine/recompute/repeats.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/rewriter.h"

namespace trainscope {
namespace {

constexpr std::int32_t kNone = RunOrder::kNone;

class RepeatedRuns {
 public:
  RepeatedRuns(const Graph& graph, std::span<const NodeId> order, std::span<const Repeat> repeats)
      : graph_(graph),
        order_(order),
        repeats_(repeats),
        position_(graph.node_capacity(), 0),
        last_use_(graph.value_capacity(), -1),
        newest_(graph.value_capacity(), kNone),
        offloaded_(graph.value_capacity(), kNone) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      position_[index(order[i])] = static_cast<std::int64_t>(i);
    }
    result_.runs.reserve(order.size() + repeats.size());
  }

  RunOrder run() {
    find_last_uses();
    std::size_t next = 0;
    for (NodeId id : order_) {
      for (; next < repeats_.size() && repeats_[next].before == id; ++next) add(repeats_[next]);
      begin_run(id, RunKind::kFirst);
      for (ValueId v : graph_.node(id).outputs) {
        result_.operands.push_back(static_cast<std::int32_t>(v));
      }
      end_run();
      offload_results(graph_.node(id));
    }
    CHECK_INVARIANT(next == repeats_.size());  // sorted by position
    return std::move(result_);
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  // By value of the graph: the last position at which a node or a repeat reads it.
  void find_last_uses() {
    const auto use = [this](NodeId reader, std::int64_t at) {
      for (ValueId v : graph_.node(reader).inputs) {
        if (v != kNoValue) last_use_[index(v)] = std::max(last_use_[index(v)], at);
      }
    };
    for (NodeId id : order_) use(id, position_[index(id)]);
    for (const Repeat& repeat : repeats_) {
      if (repeat.node != kNoNode) use(repeat.node, position_[index(repeat.before)]);
    }
    for (const Repeat& repeat : repeats_) {
      if (repeat.node != kNoNode) continue;
      const std::int64_t at = position_[index(repeat.before)];
      if (is_wanted(repeat.fetch, at)) offloaded_[index(repeat.fetch)] = kOffloadLater;
    }
  }

  bool is_wanted(ValueId v, std::int64_t at) const {
    return v != kNoValue && last_use_[index(v)] >= at;
  }

  void offload_results(const Node& node) {
    for (ValueId v : node.outputs) {
      if (v == kNoValue || offloaded_[index(v)] != kOffloadLater) continue;
      begin_transfer(RunKind::kOffload, static_cast<std::int32_t>(v));
      offloaded_[index(v)] = new_number(v);
      result_.operands.push_back(offloaded_[index(v)]);
      end_run();
    }
  }

  void fetch(ValueId v, std::int64_t at) {
    if (!is_wanted(v, at)) return;
    CHECK_INVARIANT(offloaded_[index(v)] >= 0);
    begin_transfer(RunKind::kFetch, offloaded_[index(v)]);
    result_.operands.push_back(newest_[index(v)] = new_number(v));
    end_run();
  }

  void begin_transfer(RunKind kind, std::int32_t number) {
    result_.runs.push_back({.kind = kind,
                            .begin = static_cast<std::uint32_t>(result_.operands.size()),
                            .input_count = 1});
    result_.operands.push_back(number);
  }

  void begin_run(NodeId id, RunKind kind) {
    const Node& node = graph_.node(id);
    result_.runs.push_back({.node = id,
                            .kind = kind,
                            .begin = static_cast<std::uint32_t>(result_.operands.size()),
                            .input_count = static_cast<std::uint32_t>(node.inputs.size())});
    for (ValueId v : node.inputs) {
      const bool remade = v != kNoValue && newest_[index(v)] != kNone;
      result_.operands.push_back(remade ? newest_[index(v)] : static_cast<std::int32_t>(v));
    }
  }

  void end_run() {
    Run& run = result_.runs.back();
    run.output_count =
        static_cast<std::uint32_t>(result_.operands.size()) - run.begin - run.input_count;
  }

  void add(const Repeat& repeat) {
    const std::int64_t at = position_[index(repeat.before)];
    if (repeat.node == kNoNode) return fetch(repeat.fetch, at);
    const Node& node = graph_.node(repeat.node);
    CHECK_INVARIANT(node.phase == Phase::kForward || node.op->is_view);
    CHECK_INVARIANT(position_[index(repeat.node)] < at);
    const auto wanted = [&](ValueId v) { return is_wanted(v, at); };
    if (std::ranges::none_of(node.outputs, wanted)) return;
    begin_run(repeat.node, RunKind::kAgain);
    // What nobody reads again is left out, but keeps its place: a Split goes by how many there are.
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      // The first output stays in any case: few ops can do without it.
      const bool keep = wanted(v) || (i == 0 && v != kNoValue);
      if (keep) newest_[index(v)] = new_number(v);
      result_.operands.push_back(keep ? newest_[index(v)] : kNone);
    }
    end_run();
  }

  std::int32_t new_number(ValueId v) {
    const std::size_t number = graph_.value_capacity() + result_.remade.size();
    result_.remade.push_back(v);
    return static_cast<std::int32_t>(number);
  }

  const Graph& graph_;
  std::span<const NodeId> order_;
  std::span<const Repeat> repeats_;
  std::vector<std::int64_t> position_;  // by NodeId
  std::vector<std::int64_t> last_use_;  // by ValueId
  std::vector<std::int32_t> newest_;    // by ValueId: the number of its latest repeat
  // By ValueId: the number of what is in host memory.
  static constexpr std::int32_t kOffloadLater = -2;
  std::vector<std::int32_t> offloaded_;
  RunOrder result_;
};

// Carries such an order out on its graph.
class RepeatBuilder {
 public:
  RepeatBuilder(Graph& graph, const OpTable& ops, const RunOrder& order)
      : graph_(graph),
        rewriter_(graph, ops, "recompute", nullptr),
        order_(order),
        capacity_(graph.value_capacity()) {}

  void run() {
    std::size_t waiting = 0;  // the first of the repeats since the last node
    for (std::size_t i = 0; i < order_.runs.size(); ++i) {
      const Run& run = order_.runs[i];
      if (run.kind != RunKind::kFirst) continue;
      for (; waiting < i; ++waiting) add(order_.runs[waiting], run.node);
      waiting = i + 1;
      const std::span<const std::int32_t> inputs = order_.inputs(run);
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const bool remade = inputs[k] >= static_cast<std::int32_t>(capacity_);
        if (remade) rewriter_.set_input(run.node, static_cast<int>(k), value(inputs[k]));
      }
    }
    CHECK_INVARIANT(waiting == order_.runs.size());
  }

  NodeId origin(NodeId id) const {
    const auto found = origin_.find(id);
    return found == origin_.end() ? id : found->second;
  }

 private:
  ValueId value(std::int32_t number) const {
    const auto at = static_cast<std::size_t>(number);
    return number < 0 || at < capacity_ ? ValueId(number) : made_[at - capacity_];
  }

  void add(const Run& run, NodeId before) {
    const bool transfer = run.node == kNoNode;
    const NodeId clone = rewriter_.before(before).add(transfer ? transfer_of(run) : again(run));
    origin_.emplace(clone, run.node);
    const std::span<const std::int32_t> outputs = order_.outputs(run);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kNone) continue;
      CHECK_INVARIANT(static_cast<std::size_t>(outputs[i]) == capacity_ + made_.size());
      made_.push_back(graph_.node(clone).outputs[i]);
    }
  }

  Builder::Spec transfer_of(const Run& run) const {
    const bool fetch = run.kind == RunKind::kFetch;
    const Value& original = graph_.value(original_of(order_.outputs(run)[0]));
    const Node& producer = graph_.node(original.producer);
    const std::string name = original.name + (fetch ? "/fetch" : "/offload");
    return {.op = &rewriter_.ops().get(fetch ? "Fetch" : "Offload"),
            .name = graph_.unique_name(name),
            .inputs = {value(order_.inputs(run)[0])},
            .output_names = {name},
            .attributes = {},
            .provenance = {.sources = producer.provenance.sources, .pass = "recompute"}};
  }

  Builder::Spec again(const Run& run) const {
    const Node& node = graph_.node(run.node);
    Builder::Spec spec{.op = node.op,
                       .name = graph_.unique_name(node.name + "/again"),
                       .inputs = {},
                       .output_names = {},
                       .attributes = node.attributes,
                       .provenance = {.sources = node.provenance.sources, .pass = "recompute"}};
    for (std::int32_t v : order_.inputs(run)) spec.inputs.push_back(value(v));
    for (std::int32_t v : order_.outputs(run)) {
      spec.output_names.push_back(v == kNone ? std::string()
                                             : graph_.value(original_of(v)).name + "/again");
    }
    return spec;
  }

  ValueId original_of(std::int32_t number) const {
    return order_.remade[static_cast<std::size_t>(number) - capacity_];
  }

  Graph& graph_;
  Rewriter rewriter_;
  const RunOrder& order_;
  std::size_t capacity_;                       // of values, before the first repeat
  std::vector<ValueId> made_;                  // by number less the capacity
  std::unordered_map<NodeId, NodeId> origin_;  // of new nodes
};

}  // namespace

RunOrder repeated_order(const Graph& graph, std::span<const NodeId> order,
                        std::span<const Repeat> repeats) {
  return RepeatedRuns(graph, order, repeats).run();
}

RepeatedGraph with_repeats(Graph graph, const OpTable& ops, const RunOrder& order) {
  RepeatBuilder builder(graph, ops, order);
  builder.run();
  RepeatedGraph result{.graph = graph.compacted(), .origin = {}};
  for (NodeId id : graph.order()) result.origin.push_back(builder.origin(id));
  CHECK_INVARIANT(verify(result.graph).empty());
  return result;
}

}  // namespace trainscope
