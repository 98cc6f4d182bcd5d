// Lifetimes of values, and which values share bytes: views, updates of states, in-place results.
#include "engine/plan/lifetimes.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/plan/sub_ranges.h"

namespace trainscope {

// The search for one order. Values are numbers, as the order has them.
class LifetimeSearch {
 public:
  LifetimeSearch(const LifetimeFinder& finder, const ExecutionOrder& order)
      : finder_(finder), graph_(finder.graph_), order_(order), capacity_(graph_.value_capacity()) {
    const std::size_t n = capacity_ + order.originals.size();
    parent_.resize(n);
    std::iota(parent_.begin(), parent_.end(), 0);
    first_.assign(n, kNever);
    last_.assign(n, -1);
    pinned_.assign(n, false);
    host_.assign(n, false);
  }

  Lifetimes run(std::span<const std::int64_t> workspaces) {
    number_steps();
    join_views();
    find_extent();
    refuse_exchanges();
    join_updates();
    if (finder_.in_place_) join_in_place();
    Lifetimes lifetimes = collect();
    if (!finder_.ranges_of_.empty()) {
      share_ranges(graph_, order_, {finder_.ranges_of_, workspaces}, lifetimes);
    }
    sort_buffers(lifetimes);
    return lifetimes;
  }

 private:
  static constexpr std::int64_t kNever = std::int64_t{1} << 60;
  static constexpr std::int32_t kNone = ExecutionOrder::kNone;
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }

  const Node& node(const Execution& run) const { return graph_.node(run.node); }
  static bool is_transfer(const Execution& run) { return run.node == kNoNode; }
  bool is_view(const Execution& run) const { return !is_transfer(run) && node(run).op->is_view; }
  bool makes_host_value(const Execution& run) const {
    return run.kind == ExecutionKind::kOffload || (!is_transfer(run) && node(run).op->to_host);
  }
  // The value of the graph that has the type of this one.
  ValueId original(std::size_t number) const {
    return number < capacity_ ? ValueId(static_cast<std::int32_t>(number))
                              : order_.originals[number - capacity_];
  }
  std::size_t bytes_of(std::size_t number) const { return finder_.bytes_[index(original(number))]; }

  std::size_t find(std::size_t v) {
    while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
    return v;
  }
  std::size_t find(ValueId v) { return find(index(v)); }
  std::size_t find(std::int32_t number) { return find(static_cast<std::size_t>(number)); }

  // The class of b joins that of a.
  void join(std::size_t a, std::size_t b) {
    std::size_t ra = find(a);
    std::size_t rb = find(b);
    if (ra == rb) return;
    parent_[rb] = ra;
    first_[ra] = std::min(first_[ra], first_[rb]);
    last_[ra] = std::max(last_[ra], last_[rb]);
    pinned_[ra] = pinned_[ra] || pinned_[rb];
    host_[ra] = host_[ra] || host_[rb];
  }

  void number_steps() {
    step_.reserve(order_.executions.size());
    for (const Execution& run : order_.executions)
      step_.push_back(is_view(run) ? steps_ : steps_++);
  }

  void join_views() {
    for (const Execution& run : order_.executions) {
      if (!is_view(run)) continue;
      join(static_cast<std::size_t>(order_.inputs(run)[0]),
           static_cast<std::size_t>(order_.outputs(run)[0]));
    }
  }

  void touch(std::size_t v, std::int64_t step) {
    std::size_t root = find(v);
    first_[root] = std::min(first_[root], step);
    last_[root] = std::max(last_[root], step);
  }

  void find_extent() {
    for (std::size_t i = 0; i < order_.executions.size(); ++i) {
      const Execution& run = order_.executions[i];
      if (is_view(run)) continue;
      if (makes_host_value(run)) host_[find(order_.outputs(run)[0])] = true;
      const std::uint32_t count = run.input_count + run.output_count;
      for (std::int32_t v : std::span(order_.operands).subspan(run.begin, count)) {
        if (v != kNone) touch(static_cast<std::size_t>(v), step_[i]);
      }
    }
    for (ValueId v : finder_.values_) {
      if (graph_.value(v).kind != ValueKind::kNode) pinned_[find(v)] = true;
    }
    for (ValueId v : graph_.outputs) keep_to_end(v);
    for (const GradientOf& g : graph_.gradients) keep_to_end(g.gradient);
    if (graph_.loss != kNoValue) keep_to_end(graph_.loss);
    for (ValueId v : graph_.inputs) {  // written before the first step, if anything reads it
      if (last_[find(v)] >= 0) touch(index(v), 0);
      if (finder_.keep_inputs_) keep_to_end(v);
    }
  }

  void keep_to_end(ValueId v) { touch(index(v), steps_); }

  // The new value may be written straight into the state's storage when nothing reads the state
  // after the writing run, and that run reads it in place or not at all.
  bool can_update_in_place(const Update& update, std::int64_t position) {
    if (position < 0) return false;
    const Execution& run = order_.executions[static_cast<std::size_t>(position)];
    const std::size_t state = find(update.state);
    if (is_view(run) || find(update.value) == state) return false;
    const std::int64_t step = step_[static_cast<std::size_t>(position)];
    if (last_[state] > step || pinned_[find(update.value)]) return false;
    const Reads& reads = reads_of(position, run);
    const auto count = std::ranges::equal_range(reads.classes, state);
    if (count.empty()) return last_[state] < step;
    if (count.size() > 1) return false;
    const auto pairs = std::ranges::equal_range(
        reads.in_place, static_cast<std::int32_t>(update.value), {}, &OverwritePair::output);
    return std::ranges::any_of(
        pairs, [&](const OverwritePair& pair) { return find(pair.input) == state; });
  }

  struct OverwritePair {
    std::int32_t output = kNone;
    std::int32_t input = kNone;
  };
  // Of one run: the classes of its inputs, and which input each output may overwrite, both sorted.
  // An optimizer makes thousands of updates: what they share is found once.
  struct Reads {
    std::int64_t position = -1;
    std::vector<std::size_t> classes = {};
    std::vector<OverwritePair> in_place = {};
  };
  const Reads& reads_of(std::int64_t position, const Execution& run) {
    if (reads_.position == position) return reads_;
    reads_ = {.position = position};
    const std::span<const std::int32_t> inputs = order_.inputs(run);
    for (std::int32_t v : inputs) {
      if (v != kNone) reads_.classes.push_back(find(v));
    }
    for (const InPlace& pair : finder_.pairs_of_[index(run.node)]) {
      const std::int32_t input = inputs[static_cast<std::size_t>(pair.input)];
      if (input != kNone) reads_.in_place.push_back({output_of(run, pair), input});
    }
    std::ranges::sort(reads_.classes);
    std::ranges::stable_sort(reads_.in_place, {}, &OverwritePair::output);
    return reads_;
  }

  // A repeat may leave outputs out.
  std::int32_t output_of(const Execution& run, const InPlace& pair) const {
    const std::span<const std::int32_t> outputs = order_.outputs(run);
    const auto at = static_cast<std::size_t>(pair.output);
    return at < outputs.size() ? outputs[at] : kNone;
  }

  // A state that becomes another one's old elements (a swap, say) would need a copy of these first.
  // No pass makes such an update, a file may hold one.
  void refuse_exchanges() {
    std::vector<bool> updated(parent_.size(), false);
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
    for (std::size_t i = 0; i < order_.executions.size(); ++i) {
      const Execution& run = order_.executions[i];
      if (run.kind == ExecutionKind::kFirst)
        position[index(run.node)] = static_cast<std::int64_t>(i);
    }
    for (const Update& update : graph_.updates) {
      NodeId producer = graph_.value(update.value).producer;
      std::int64_t at = producer == kNoNode ? -1 : position[index(producer)];
      if (can_update_in_place(update, at)) {
        join(index(update.state), index(update.value));
        continue;
      }
      if (find(update.state) == find(update.value)) continue;
      Phase phase = producer == kNoNode ? Phase::kUpdate : graph_.node(producer).phase;
      keep_to_end(update.value);
      copies_.push_back({update.value, update.state, phase});
    }
  }

  // Whether output may take over input's bytes: this is their last reader and nothing else of the
  // run lives in them.
  bool can_share(const Execution& run, std::int32_t input, std::int32_t output, std::int64_t step) {
    const std::size_t from = find(input);
    if (pinned_[from] || last_[from] != step || pinned_[find(output)]) return false;
    if (host_[from] != host_[find(output)]) return false;
    if (bytes_of(static_cast<std::size_t>(input)) != bytes_of(static_cast<std::size_t>(output))) {
      return false;
    }
    const auto in_class = [&](std::int32_t v) { return v != kNone && find(v) == from; };
    return std::ranges::count_if(order_.inputs(run), in_class) == 1 &&
           std::ranges::none_of(order_.outputs(run), in_class) && first_[find(output)] == step;
  }

  void join_in_place() {
    for (std::size_t i = 0; i < order_.executions.size(); ++i) {
      const Execution& run = order_.executions[i];
      if (is_transfer(run)) continue;
      for (const InPlace& pair : finder_.pairs_of_[index(run.node)]) {
        const std::int32_t input = order_.inputs(run)[static_cast<std::size_t>(pair.input)];
        const std::int32_t output = output_of(run, pair);
        if (input == kNone || output == kNone) continue;
        if (can_share(run, input, output, step_[i])) {
          join(static_cast<std::size_t>(input), static_cast<std::size_t>(output));
        }
      }
    }
  }

  Lifetimes collect() {
    Lifetimes lifetimes;
    lifetimes.copies = copies_;
    lifetimes.buffer_of.assign(parent_.size(), -1);
    lifetimes.offset_of.assign(parent_.size(), 0);
    buffer_of_root_.assign(parent_.size(), -1);
    for (ValueId v : finder_.values_) add_to_buffer(index(v), lifetimes);
    for (std::size_t i = 0; i < order_.originals.size(); ++i) {
      add_to_buffer(capacity_ + i, lifetimes);
    }
    return lifetimes;
  }

  void add_to_buffer(std::size_t number, Lifetimes& lifetimes) {
    const std::size_t root = find(number);
    const Value& value = graph_.value(original(number));
    const bool persistent = value.kind == ValueKind::kParameter || value.kind == ValueKind::kState;
    if (last_[root] < 0 && !persistent) return;  // nothing touches it
    std::int32_t& buffer = buffer_of_root_[root];
    if (buffer < 0) {
      buffer = static_cast<std::int32_t>(lifetimes.buffers.size());
      lifetimes.buffers.push_back({.first = std::min(first_[root], steps_),
                                   .last = std::max<std::int64_t>(last_[root], 0),
                                   .value = original(number)});
    }
    Lifetimes::Buffer& b = lifetimes.buffers[static_cast<std::size_t>(buffer)];
    b.bytes = std::max(b.bytes, bytes_of(number));
    b.persistent = b.persistent || persistent || value.kind == ValueKind::kConstant;
    b.host = host_[root];
    b.external = b.external || (persistent && finder_.external_parameters_);
    lifetimes.buffer_of[number] = buffer;
  }

  static void sort_buffers(Lifetimes& lifetimes) {
    std::vector<std::int32_t> order(lifetimes.buffers.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&lifetimes](std::int32_t i) {
      const Lifetimes::Buffer& b = lifetimes.buffers[static_cast<std::size_t>(i)];
      return std::tuple(b.host, !b.persistent, b.first, b.last, b.bytes);
    });
    std::vector<Lifetimes::Buffer> sorted;
    std::vector<std::int32_t> place(order.size());
    sorted.reserve(order.size());
    for (std::int32_t i : order) {
      place[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(sorted.size());
      sorted.push_back(lifetimes.buffers[static_cast<std::size_t>(i)]);
    }
    lifetimes.buffers = std::move(sorted);
    lifetimes.in_arena = static_cast<std::size_t>(
        std::ranges::count(lifetimes.buffers, false, &Lifetimes::Buffer::host));
    for (std::int32_t& buffer : lifetimes.buffer_of) {
      if (buffer >= 0) buffer = place[static_cast<std::size_t>(buffer)];
    }
  }

  const LifetimeFinder& finder_;
  const Graph& graph_;
  const ExecutionOrder& order_;
  std::size_t capacity_;  // of the graph's values: the first number of what is made again
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> step_;  // by run
  std::vector<std::size_t> parent_;
  std::vector<std::int64_t> first_;
  std::vector<std::int64_t> last_;
  std::vector<bool> pinned_;  // inputs, parameters, states, constants: never overwritten in place
  std::vector<bool> host_;
  std::vector<std::int32_t> buffer_of_root_;
  std::vector<StateCopy> copies_;
  Reads reads_;  // of the run asked for last; joining a value to its state keeps the state's class
};

LifetimeFinder::LifetimeFinder(const Graph& graph, const LowerOptions& options)
    : graph_(graph),
      in_place_(options.in_place),
      external_parameters_(options.external_parameters),
      keep_inputs_(options.keep_inputs),
      values_(graph.live_values()),
      bytes_(graph.value_capacity(), 0),
      pairs_of_(graph.node_capacity()) {
  for (ValueId v : values_) bytes_[static_cast<std::size_t>(v)] = graph.value(v).type.bytes();
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.op->in_place) continue;
    NodeArgs args(graph, node);
    pairs_of_[static_cast<std::size_t>(id)] = node.op->in_place(*args);
  }
  if (in_place_) ranges_of_ = ranges_of_nodes(graph);
}

Lifetimes LifetimeFinder::find(const ExecutionOrder& order,
                               std::span<const std::int64_t> workspaces) const {
  return LifetimeSearch(*this, order).run(workspaces);
}

Lifetimes find_lifetimes(const Graph& graph, std::span<const NodeId> order,
                         const LowerOptions& options, std::span<const std::int64_t> workspaces) {
  return LifetimeFinder(graph, options).find(execution_order_of(graph, order), workspaces);
}

}  // namespace trainscope
