// Leads later readers to what is rematerialized: first in numbers, then as clones of nodes.
#include "engine/recompute/rematerialize.h"

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

constexpr std::int32_t kNone = ExecutionOrder::kNone;
constexpr const char* kSuffix = "/rematerialized";  // of the names of clones and their outputs

// Leaves out second executions and transfers of which nobody reads anything: uses were counted
// before it was known which second executions there are. Numbers from `capacity` on are theirs.
class UnreadRemoval {
 public:
  UnreadRemoval(ExecutionOrder& order, std::size_t capacity)
      : order_(order), capacity_(capacity), is_read_(order.originals.size(), false) {}

  void run() {
    std::vector<Execution> kept;
    for (auto it = order_.executions.rbegin(); it != order_.executions.rend(); ++it) {
      if (it->kind != ExecutionKind::kFirst && !any_read(order_.outputs(*it))) continue;
      kept.push_back(*it);
      for (std::int32_t number : order_.inputs(*it)) {
        if (is_ours(number)) is_read_[place(number)] = true;
      }
    }
    if (kept.size() == order_.executions.size()) return;
    std::ranges::reverse(kept);
    renumber(std::move(kept));
  }

 private:
  bool is_ours(std::int32_t number) const {
    return number >= 0 && static_cast<std::size_t>(number) >= capacity_;
  }
  std::size_t place(std::int32_t number) const {
    return static_cast<std::size_t>(number) - capacity_;
  }
  bool any_read(std::span<const std::int32_t> numbers) const {
    return std::ranges::any_of(numbers,
                               [this](std::int32_t n) { return is_ours(n) && is_read_[place(n)]; });
  }

  void renumber(std::vector<Execution> kept) {
    ExecutionOrder result{.executions = std::move(kept), .operands = {}, .originals = {}};
    std::vector<std::int32_t> renamed(order_.originals.size(), ExecutionOrder::kNone);
    for (Execution& execution : result.executions) {
      const auto operands =
          std::span(order_.operands)
              .subspan(execution.begin, execution.input_count + execution.output_count);
      execution.begin = static_cast<std::uint32_t>(result.operands.size());
      for (std::int32_t number : operands) {
        if (is_ours(number)) {
          std::int32_t& now = renamed[place(number)];
          if (now == ExecutionOrder::kNone) {
            now = static_cast<std::int32_t>(capacity_ + result.originals.size());
            result.originals.push_back(order_.originals[place(number)]);
          }
          number = now;
        }
        result.operands.push_back(number);
      }
    }
    order_ = std::move(result);
  }

  ExecutionOrder& order_;
  std::size_t capacity_;
  std::vector<bool> is_read_;  // by number less capacity
};

// Makes the order of executions, in which values are numbers.
class OrderBuilder {
 public:
  OrderBuilder(const Graph& graph, std::span<const NodeId> order,
               std::span<const Rematerialization> rematerializations)
      : graph_(graph),
        order_(order),
        rematerializations_(rematerializations),
        position_(graph.node_capacity(), 0),
        last_use_(graph.value_capacity(), -1),
        newest_(graph.value_capacity(), kNone),
        offloaded_(graph.value_capacity(), kNone) {
    for (std::size_t i = 0; i < order.size(); ++i) {
      position_[index(order[i])] = static_cast<std::int64_t>(i);
    }
    result_.executions.reserve(order.size() + rematerializations.size());
  }

  ExecutionOrder run() {
    find_last_uses();
    std::size_t next = 0;
    for (NodeId id : order_) {
      for (; next < rematerializations_.size() && rematerializations_[next].before == id; ++next)
        add(rematerializations_[next]);
      begin_execution(id, ExecutionKind::kFirst);
      for (ValueId v : graph_.node(id).outputs) {
        result_.operands.push_back(static_cast<std::int32_t>(v));
      }
      end_execution();
      offload_results(graph_.node(id));
    }
    CHECK_INVARIANT(next == rematerializations_.size());  // sorted by position
    UnreadRemoval(result_, graph_.value_capacity()).run();
    return std::move(result_);
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id); }

  // By value of the graph: the last position at which a first or second execution reads it.
  void find_last_uses() {
    const auto use = [this](NodeId reader, std::int64_t at) {
      for (ValueId v : graph_.node(reader).inputs) {
        if (v != kNoValue) last_use_[index(v)] = std::max(last_use_[index(v)], at);
      }
    };
    for (NodeId id : order_) use(id, position_[index(id)]);
    for (const Rematerialization& each : rematerializations_) {
      if (each.node != kNoNode) use(each.node, position_[index(each.before)]);
    }
    for (const Rematerialization& each : rematerializations_) {
      if (each.node != kNoNode) continue;
      const std::int64_t at = position_[index(each.before)];
      if (is_wanted(each.fetch, at)) offloaded_[index(each.fetch)] = kOffloadLater;
    }
  }

  bool is_wanted(ValueId v, std::int64_t at) const {
    return v != kNoValue && last_use_[index(v)] >= at;
  }

  void offload_results(const Node& node) {
    for (ValueId v : node.outputs) {
      if (v == kNoValue || offloaded_[index(v)] != kOffloadLater) continue;
      begin_transfer(ExecutionKind::kOffload, static_cast<std::int32_t>(v));
      offloaded_[index(v)] = new_number(v);
      result_.operands.push_back(offloaded_[index(v)]);
      end_execution();
    }
  }

  void fetch(ValueId v, std::int64_t at) {
    if (!is_wanted(v, at)) return;
    CHECK_INVARIANT(offloaded_[index(v)] >= 0);
    begin_transfer(ExecutionKind::kFetch, offloaded_[index(v)]);
    result_.operands.push_back(newest_[index(v)] = new_number(v));
    end_execution();
  }

  void begin_transfer(ExecutionKind kind, std::int32_t number) {
    result_.executions.push_back({.kind = kind,
                                  .begin = static_cast<std::uint32_t>(result_.operands.size()),
                                  .input_count = 1});
    result_.operands.push_back(number);
  }

  void begin_execution(NodeId id, ExecutionKind kind) {
    const Node& node = graph_.node(id);
    result_.executions.push_back({.node = id,
                                  .kind = kind,
                                  .begin = static_cast<std::uint32_t>(result_.operands.size()),
                                  .input_count = static_cast<std::uint32_t>(node.inputs.size())});
    for (ValueId v : node.inputs) {
      const bool newer = v != kNoValue && newest_[index(v)] != kNone;
      result_.operands.push_back(newer ? newest_[index(v)] : static_cast<std::int32_t>(v));
    }
  }

  void end_execution() {
    Execution& last = result_.executions.back();
    last.output_count =
        static_cast<std::uint32_t>(result_.operands.size()) - last.begin - last.input_count;
  }

  void add(const Rematerialization& each) {
    const std::int64_t at = position_[index(each.before)];
    if (each.node == kNoNode) return fetch(each.fetch, at);
    const Node& node = graph_.node(each.node);
    CHECK_INVARIANT(node.phase == Phase::kForward || node.op->is_view);
    CHECK_INVARIANT(position_[index(each.node)] < at);
    const auto wanted = [&](ValueId v) { return is_wanted(v, at); };
    if (std::ranges::none_of(node.outputs, wanted)) return;
    begin_execution(each.node, ExecutionKind::kRematerialized);
    // What nobody reads later is left out, but keeps its place: a Split goes by how many there are.
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      // The first output stays in any case: few ops can do without it.
      const bool keep = wanted(v) || (i == 0 && v != kNoValue);
      if (keep) newest_[index(v)] = new_number(v);
      result_.operands.push_back(keep ? newest_[index(v)] : kNone);
    }
    end_execution();
  }

  std::int32_t new_number(ValueId v) {
    const std::size_t number = graph_.value_capacity() + result_.originals.size();
    result_.originals.push_back(v);
    return static_cast<std::int32_t>(number);
  }

  const Graph& graph_;
  std::span<const NodeId> order_;
  std::span<const Rematerialization> rematerializations_;
  std::vector<std::int64_t> position_;  // by NodeId
  std::vector<std::int64_t> last_use_;  // by ValueId
  std::vector<std::int32_t> newest_;    // by ValueId: the number of its latest rematerialization
  // By ValueId: the number of what is in host memory.
  static constexpr std::int32_t kOffloadLater = -2;
  std::vector<std::int32_t> offloaded_;
  ExecutionOrder result_;
};

// Carries such an order out on its graph.
class GraphBuilder {
 public:
  GraphBuilder(Graph& graph, const OpTable& ops, const ExecutionOrder& order)
      : graph_(graph),
        rewriter_(graph, ops, "recompute", nullptr),
        order_(order),
        capacity_(graph.value_capacity()) {}

  void run() {
    std::size_t waiting = 0;  // the first of the rematerializations since the last node
    for (std::size_t i = 0; i < order_.executions.size(); ++i) {
      const Execution& execution = order_.executions[i];
      if (execution.kind != ExecutionKind::kFirst) continue;
      for (; waiting < i; ++waiting) add(order_.executions[waiting], execution.node);
      waiting = i + 1;
      const std::span<const std::int32_t> inputs = order_.inputs(execution);
      for (std::size_t k = 0; k < inputs.size(); ++k) {
        const bool newer = inputs[k] >= static_cast<std::int32_t>(capacity_);
        if (newer) rewriter_.set_input(execution.node, static_cast<int>(k), value(inputs[k]));
      }
    }
    CHECK_INVARIANT(waiting == order_.executions.size());
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

  void add(const Execution& execution, NodeId before) {
    const bool transfer = execution.node == kNoNode;
    const NodeId clone =
        rewriter_.before(before).add(transfer ? transfer_of(execution) : rematerialized(execution));
    origin_.emplace(clone, execution.node);
    note_origin(clone, execution);
    const std::span<const std::int32_t> outputs = order_.outputs(execution);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kNone) continue;
      CHECK_INVARIANT(static_cast<std::size_t>(outputs[i]) == capacity_ + made_.size());
      made_.push_back(graph_.node(clone).outputs[i]);
    }
  }

  // For the rewrite log.
  void note_origin(NodeId clone, const Execution& execution) {
    if (execution.node != kNoNode) return rewriter_.copies(clone, execution.node);
    const Value& original = graph_.value(original_of(order_.outputs(execution)[0]));
    rewriter_.made_of(clone, original.producer);
  }

  Builder::Spec transfer_of(const Execution& execution) const {
    const bool fetch = execution.kind == ExecutionKind::kFetch;
    const Value& original = graph_.value(original_of(order_.outputs(execution)[0]));
    const Node& producer = graph_.node(original.producer);
    const std::string name = original.name + (fetch ? "/fetch" : "/offload");
    return {.op = &rewriter_.ops().get(fetch ? "Fetch" : "Offload"),
            .name = graph_.unique_name(name),
            .inputs = {value(order_.inputs(execution)[0])},
            .output_names = {name},
            .attributes = {},
            .provenance = {.sources = producer.provenance.sources, .pass = kRematerializedBy}};
  }

  Builder::Spec rematerialized(const Execution& execution) const {
    const Node& node = graph_.node(execution.node);
    Builder::Spec spec{.op = node.op,
                       .name = graph_.unique_name(node.name + kSuffix),
                       .inputs = {},
                       .output_names = {},
                       .attributes = node.attributes,
                       .provenance = {.sources = node.provenance.sources,
                                      .pass = kRematerializedBy,
                                      .rematerialized_of = node.serial}};
    for (std::int32_t v : order_.inputs(execution)) spec.inputs.push_back(value(v));
    for (std::int32_t v : order_.outputs(execution)) {
      spec.output_names.push_back(v == kNone ? std::string()
                                             : graph_.value(original_of(v)).name + kSuffix);
    }
    return spec;
  }

  ValueId original_of(std::int32_t number) const {
    return order_.originals[static_cast<std::size_t>(number) - capacity_];
  }

  Graph& graph_;
  Rewriter rewriter_;
  const ExecutionOrder& order_;
  std::size_t capacity_;                       // of values, before the first clone
  std::vector<ValueId> made_;                  // by number less the capacity
  std::unordered_map<NodeId, NodeId> origin_;  // of new nodes
};

}  // namespace

ExecutionOrder rematerialized_order(const Graph& graph, std::span<const NodeId> order,
                                    std::span<const Rematerialization> rematerializations) {
  return OrderBuilder(graph, order, rematerializations).run();
}

RematerializedGraph rematerialized_graph(Graph graph, const OpTable& ops,
                                         const ExecutionOrder& order) {
  GraphBuilder builder(graph, ops, order);
  builder.run();
  RematerializedGraph result{.graph = graph.compacted(), .origin = {}};
  for (NodeId id : graph.order()) result.origin.push_back(builder.origin(id));
  CHECK_INVARIANT(verify(result.graph).empty());
  return result;
}

}  // namespace trainscope
