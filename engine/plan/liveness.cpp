// Lifetimes of values, and which values share bytes: views, updates of states, in-place results.
#include <algorithm>
#include <numeric>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/plan/lower.h"

namespace trainscope {
namespace {

class Liveness {
 public:
  Liveness(const Graph& graph, std::span<const NodeId> order, const LowerOptions& options)
      : graph_(graph), order_(order), options_(options) {
    std::size_t n = graph.value_capacity();
    parent_.resize(n);
    std::iota(parent_.begin(), parent_.end(), 0);
    first_.assign(n, kNever);
    last_.assign(n, -1);
    pinned_.assign(n, false);
  }

  Lifetimes run() {
    number_steps();
    join_views();
    find_extent();
    refuse_exchanges();
    join_updates();
    if (options_.in_place) join_in_place();
    return collect();
  }

 private:
  static constexpr std::int64_t kNever = std::int64_t{1} << 60;
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

  std::size_t find(std::size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  std::size_t find(ValueId v) { return find(index(v)); }

  // The class of b joins that of a.
  void join(ValueId a, ValueId b) {
    std::size_t ra = find(a);
    std::size_t rb = find(b);
    if (ra == rb) return;
    parent_[rb] = ra;
    first_[ra] = std::min(first_[ra], first_[rb]);
    last_[ra] = std::max(last_[ra], last_[rb]);
    pinned_[ra] = pinned_[ra] || pinned_[rb];
  }

  void number_steps() {
    step_.reserve(order_.size());
    for (NodeId id : order_) step_.push_back(graph_.node(id).op->is_view ? steps_ : steps_++);
  }

  void join_views() {
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.op->is_view) join(node.inputs[0], node.outputs[0]);
    }
  }

  void touch(ValueId v, std::int64_t step) {
    std::size_t root = find(v);
    first_[root] = std::min(first_[root], step);
    last_[root] = std::max(last_[root], step);
  }

  void find_extent() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Node& node = graph_.node(order_[i]);
      if (node.op->is_view) continue;
      for (ValueId v : node.inputs) {
        if (v != kNoValue) touch(v, step_[i]);
      }
      for (ValueId v : node.outputs) {
        if (v != kNoValue) touch(v, step_[i]);
      }
    }
    for (ValueId v : graph_.live_values()) {
      const Value& value = graph_.value(v);
      if (value.kind != ValueKind::kNode) pinned_[find(v)] = true;
    }
    for (ValueId v : graph_.outputs) keep_to_end(v);
    for (const GradientOf& g : graph_.gradients) keep_to_end(g.gradient);
    if (graph_.loss != kNoValue) keep_to_end(graph_.loss);
    for (ValueId v : graph_.inputs) {  // written before the first instruction, if anything reads it
      if (last_[find(v)] >= 0) touch(v, 0);
    }
  }

  void keep_to_end(ValueId v) { touch(v, steps_); }

  // The new value may be written straight into the state's storage when nothing reads the state
  // after the writing instruction, and that instruction reads it in place or not at all.
  bool can_update_in_place(const Update& update, std::int64_t position) {
    if (position < 0) return false;
    const Node& node = graph_.node(order_[static_cast<std::size_t>(position)]);
    std::size_t state = find(update.state);
    if (node.op->is_view || find(update.value) == state) return false;
    std::int64_t step = step_[static_cast<std::size_t>(position)];
    if (last_[state] > step || pinned_[find(update.value)]) return false;
    auto reads = std::ranges::count_if(
        node.inputs, [&](ValueId v) { return v != kNoValue && find(v) == state; });
    if (reads == 0) return last_[state] < step;
    if (reads > 1 || !node.op->in_place) return false;
    NodeArgs args(graph_, node);
    for (const InPlace& pair : node.op->in_place(*args)) {
      if (node.outputs[static_cast<std::size_t>(pair.output)] != update.value) continue;
      ValueId input = node.inputs[static_cast<std::size_t>(pair.input)];
      if (input != kNoValue && find(input) == state) return true;
    }
    return false;
  }

  // A state that becomes another one's old elements (a swap, say) would need a copy of these first.
  // No pass makes such an update, a file may hold one.
  void refuse_exchanges() {
    std::vector<bool> updated(graph_.value_capacity(), false);
    for (const Update& u : graph_.updates) updated[find(u.state)] = true;
    for (const Update& u : graph_.updates) {
      bool exchange = updated[find(u.value)] && find(u.value) != find(u.state);
      if (!exchange) continue;
      fail(ErrorCode::kBadInput, "the update of '{}' reads '{}', which the same step updates",
           printable(graph_.value(u.state).name), printable(graph_.value(u.value).name));
    }
  }

  void join_updates() {
    std::vector<std::int64_t> position(graph_.node_capacity(), -1);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position[static_cast<std::size_t>(order_[i])] = static_cast<std::int64_t>(i);
    }
    for (const Update& update : graph_.updates) {
      NodeId producer = graph_.value(update.value).producer;
      std::int64_t at = producer == kNoNode ? -1 : position[static_cast<std::size_t>(producer)];
      if (can_update_in_place(update, at)) {
        join(update.state, update.value);
        continue;
      }
      if (find(update.state) == find(update.value)) continue;
      Phase phase = producer == kNoNode ? Phase::kUpdate : graph_.node(producer).phase;
      keep_to_end(update.value);
      copies_.push_back({update.value, update.state, phase});
    }
  }

  // Whether output may take over input's bytes: this is their last reader and nothing else of the
  // instruction lives in them.
  bool can_share(const Node& node, ValueId input, ValueId output, std::int64_t step) {
    std::size_t from = find(input);
    if (pinned_[from] || last_[from] != step || pinned_[find(output)]) return false;
    if (graph_.value(input).type.bytes() != graph_.value(output).type.bytes()) return false;
    auto in_class = [&](ValueId v) { return v != kNoValue && find(v) == from; };
    return std::ranges::count_if(node.inputs, in_class) == 1 &&
           std::ranges::none_of(node.outputs, in_class) && first_[find(output)] == step;
  }

  void join_in_place() {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const Node& node = graph_.node(order_[i]);
      if (!node.op->in_place) continue;
      NodeArgs args(graph_, node);
      for (const InPlace& pair : node.op->in_place(*args)) {
        ValueId input = node.inputs[static_cast<std::size_t>(pair.input)];
        ValueId output = node.outputs[static_cast<std::size_t>(pair.output)];
        if (input == kNoValue || output == kNoValue) continue;
        if (can_share(node, input, output, step_[i])) join(input, output);
      }
    }
  }

  Lifetimes collect() {
    Lifetimes lifetimes;
    lifetimes.copies = copies_;
    lifetimes.buffer_of.assign(graph_.value_capacity(), -1);
    std::vector<std::int32_t> buffer_of_root(graph_.value_capacity(), -1);
    for (ValueId v : graph_.live_values()) {
      std::size_t root = find(v);
      const Value& value = graph_.value(v);
      bool persistent = value.kind == ValueKind::kParameter || value.kind == ValueKind::kState;
      if (last_[root] < 0 && !persistent) continue;  // nothing touches it
      std::int32_t& buffer = buffer_of_root[root];
      if (buffer < 0) {
        buffer = static_cast<std::int32_t>(lifetimes.buffers.size());
        lifetimes.buffers.push_back({.first = std::min(first_[root], steps_),
                                     .last = std::max<std::int64_t>(last_[root], 0),
                                     .name = value.name});
      }
      Lifetimes::Buffer& b = lifetimes.buffers[static_cast<std::size_t>(buffer)];
      b.bytes = std::max(b.bytes, value.type.bytes());
      b.persistent = b.persistent || persistent || value.kind == ValueKind::kConstant;
      b.external = b.external || (persistent && options_.external_parameters);
      lifetimes.buffer_of[index(v)] = buffer;
    }
    return lifetimes;
  }

  const Graph& graph_;
  std::span<const NodeId> order_;
  const LowerOptions& options_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> step_;  // by position in order_
  std::vector<std::size_t> parent_;
  std::vector<std::int64_t> first_;
  std::vector<std::int64_t> last_;
  std::vector<bool> pinned_;  // inputs, parameters, states, constants: never overwritten in place
  std::vector<StateCopy> copies_;
};

}  // namespace

Lifetimes find_lifetimes(const Graph& graph, std::span<const NodeId> order,
                         const LowerOptions& options) {
  return Liveness(graph, order, options).run();
}

}  // namespace trainscope
