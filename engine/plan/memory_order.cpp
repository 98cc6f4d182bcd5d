// Program -> order problem, and the order found back as a graph.
#include "engine/plan/memory_order.h"

#include <algorithm>
#include <tuple>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "engine/plan/lifetimes.h"
#include "memplan/order/order.h"
#include "memplan/solution.h"

namespace trainscope {
namespace {

constexpr std::int32_t kNone = -1;

bool is_persistent(ValueKind kind) {
  return kind == ValueKind::kParameter || kind == ValueKind::kState || kind == ValueKind::kConstant;
}

class ProblemBuilder {
 public:
  ProblemBuilder(const Program& program, const LowerOptions& options)
      : program_(program), graph_(program.graph), options_(options) {
    for (const CallId id : calls_by_time(program)) calls_.push_back(&program.call(id));
  }

  memplan::OrderProblem run() {
    find_roots();
    find_values();
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      op_of_node_[static_cast<std::size_t>(calls_[i]->node)] = static_cast<std::int32_t>(i);
    }
    for (const Call* call : calls_) add_op(*call);
    order_updates();
    return std::move(problem_);
  }

 private:
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

  // The value that a view, or a view of a view, is of.
  void find_roots() {
    root_.resize(graph_.value_capacity());
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = static_cast<ValueId>(v);
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.op->is_view) root_[index(node.outputs[0])] = root_[index(node.inputs[0])];
    }
  }

  // Whether the value's bytes are those of a parameter, state or constant.
  bool in_persistent(ValueId v) const {
    const PlannedBuffer* buffer = program_.buffer_of(v);
    return buffer != nullptr && buffer->persistent;
  }

  std::int64_t rounded(std::int64_t bytes) const {
    const std::int64_t unit = program_.arena().alignment_bytes;
    return (bytes + unit - 1) / unit * unit;
  }

  void find_values() {
    value_of_.assign(graph_.value_capacity(), kNone);
    op_of_node_.assign(graph_.node_capacity(), kNone);
    for (ValueId v : graph_.live_values()) {
      const ValueId root = root_[index(v)];
      if (is_persistent(graph_.value(root).kind)) continue;
      if (value_of_[index(root)] == kNone) {
        value_of_[index(root)] = static_cast<std::int32_t>(problem_.values.size());
        problem_.values.emplace_back();
      }
      memplan::OrderValue& value =
          problem_.values[static_cast<std::size_t>(value_of_[index(root)])];
      if (graph_.is_output(v)) value.kept = true;
      if (in_persistent(v)) continue;  // a new state in the old one's place: no bytes of its own
      const auto bytes = static_cast<std::int64_t>(graph_.value(v).type.bytes());
      value.bytes = std::max(value.bytes, rounded(bytes));
    }
  }

  std::int32_t value_of(ValueId v) const {
    return v == kNoValue ? kNone : value_of_[index(root_[index(v)])];
  }

  void add_op(const Call& call) {
    const Node& node = graph_.node(call.node);
    memplan::OrderOp op{.workspace_bytes = rounded(workspace_bytes_of(program_, call)),
                        .phase = static_cast<std::int32_t>(node.phase)};
    for (ValueId v : node.inputs) {
      const std::int32_t value = value_of(v);
      if (value != kNone && std::ranges::find(op.reads, value) == op.reads.end()) {
        op.reads.push_back(value);
      }
    }
    for (ValueId v : node.outputs) {
      if (v != kNoValue) op.makes.push_back(value_of(v));
    }
    if (options_.in_place && node.op->in_place) add_in_place(node, op);
    problem_.ops.push_back(std::move(op));
  }

  // As find_lifetimes lets results take over bytes.
  void add_in_place(const Node& node, memplan::OrderOp& op) const {
    NodeArgs args(graph_, node);
    for (const InPlace& pair : node.op->in_place(*args)) {
      const ValueId input = node.inputs[static_cast<std::size_t>(pair.input)];
      const ValueId output = node.outputs[static_cast<std::size_t>(pair.output)];
      if (input == kNoValue || output == kNoValue) continue;
      const ValueId root = root_[index(input)];
      const bool made = graph_.value(root).kind == ValueKind::kNode;
      if (!made || in_persistent(root) || in_persistent(output)) continue;
      if (graph_.value(input).type.bytes() != graph_.value(output).type.bytes()) continue;
      const auto reads = std::ranges::count_if(
          node.inputs, [&](ValueId v) { return v != kNoValue && root_[index(v)] == root; });
      if (reads == 1) op.in_place.push_back({.read = value_of(input), .made = value_of(output)});
    }
  }

  // What is written straight into a state comes after everything that reads the state.
  void order_updates() {
    std::vector<std::int32_t> writer(graph_.value_capacity(), kNone);  // by root of the state
    for (const Update& update : graph_.updates) {
      const NodeId producer = graph_.value(update.value).producer;
      if (producer == kNoNode || !in_persistent(update.value)) continue;
      writer[index(root_[index(update.state)])] = op_of_node_[static_cast<std::size_t>(producer)];
    }
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      for (ValueId v : graph_.node(calls_[i]->node).inputs) {
        const std::int32_t op = v == kNoValue ? kNone : writer[index(root_[index(v)])];
        if (op <= static_cast<std::int32_t>(i)) continue;
        problem_.ops[static_cast<std::size_t>(op)].after.push_back(static_cast<std::int32_t>(i));
      }
    }
  }

  const Program& program_;
  const Graph& graph_;
  const LowerOptions& options_;
  std::vector<const Call*> calls_;  // by time
  memplan::OrderProblem problem_;
  std::vector<ValueId> root_;             // by ValueId
  std::vector<std::int32_t> value_of_;    // by ValueId of a root: index in the problem
  std::vector<std::int32_t> op_of_node_;  // by NodeId
};

// All nodes: those with a call as `order` has them, each view as early in its phase as can be.
std::vector<NodeId> with_views(const Program& program, const std::vector<std::int32_t>& order) {
  const Graph& graph = program.graph;
  std::vector<std::int64_t> position(graph.node_capacity(), -1);  // of calls, by NodeId
  const std::vector<CallId> calls = calls_by_time(program);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Call& call = program.call(calls[static_cast<std::size_t>(order[i])]);
    position[static_cast<std::size_t>(call.node)] = static_cast<std::int64_t>(i);
  }
  std::vector<std::tuple<Phase, std::int64_t, std::int64_t, NodeId>> rows;
  std::int64_t views = 0;
  for (NodeId id : phase_order(graph)) {
    const Node& node = graph.node(id);
    if (!node.op->is_view) {
      rows.emplace_back(node.phase, position[static_cast<std::size_t>(id)], 0, id);
      continue;
    }
    const NodeId from = graph.value(node.inputs[0]).producer;
    // A view stands where the call does whose bytes it shows; those of an earlier phase are there
    // from the start.
    if (from != kNoNode && graph.node(from).phase == node.phase) {
      position[static_cast<std::size_t>(id)] = position[static_cast<std::size_t>(from)];
    }
    rows.emplace_back(node.phase, position[static_cast<std::size_t>(id)], ++views, id);
  }
  std::ranges::sort(rows);
  std::vector<NodeId> nodes;
  for (const auto& row : rows) nodes.push_back(std::get<NodeId>(row));
  return nodes;
}

// Of the search in a placement that only says whether an order is worth it; lower() goes on.
constexpr std::uint64_t kTrialVisits = 1'000'000;

// An arena that is enough for the nodes in this order; none where it is beyond any memory.
std::optional<std::int64_t> arena_of(const Program& program, std::span<const NodeId> nodes,
                                     const LowerOptions& options) {
  const std::vector<std::int64_t> workspace_of = workspaces_of(program);
  std::vector<std::int64_t> workspaces;
  for (NodeId id : nodes) {
    if (program.graph.node(id).op->is_view) continue;
    workspaces.push_back(workspace_of[static_cast<std::size_t>(id)]);
  }
  const memplan::Problem problem =
      placement_problem(find_lifetimes(program.graph, nodes, options, workspaces), workspaces,
                        program.arena().alignment_bytes);
  const memplan::Result placed = memplan::solve(problem, {.seconds = options.seconds,
                                                          .threads = options.threads,
                                                          .most_visits = kTrialVisits,
                                                          .stop = options.watch.stop});
  options.watch.check();
  if (placed.status != memplan::Status::kPlaced) return std::nullopt;
  return placed.solution.height_bytes;
}

}  // namespace

memplan::OrderProblem order_problem(const Program& program, const LowerOptions& options) {
  return ProblemBuilder(program, options).run();
}

std::optional<Graph> ordered_for_memory(const Program& program, const LowerOptions& options) {
  const memplan::OrderResult found =
      memplan::improve_order(order_problem(program, options), {.stop = options.watch.stop});
  options.watch.check();
  if (!found.message.empty()) return std::nullopt;  // sizes whose sum is beyond 63 bits
  if (found.peak_bytes >= found.given_peak_bytes) return std::nullopt;
  const std::vector<NodeId> nodes = with_views(program, found.order);
  const std::optional<std::int64_t> arena_bytes = arena_of(program, nodes, options);
  if (!arena_bytes || *arena_bytes >= program.arena().bytes) return std::nullopt;
  return program.graph.reordered(nodes);
}

}  // namespace trainscope
