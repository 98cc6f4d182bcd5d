// One recompute problem of calls and values for each way to count bytes that values share.
#include "engine/recompute/time_bound.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/byte_ranges.h"
#include "engine/plan/sub_ranges.h"
#include "engine/recompute/stoppable.h"
#include "memplan/remat/certificate.h"

namespace trainscope {
namespace {

constexpr double kPicoseconds = 1e12;  // the bound counts whole ones
// Of the certificate, and nodes beyond which it takes too long.
constexpr std::int32_t kFrontiers = 48;
constexpr std::int32_t kMostNodes = 20'000;

// Where the bytes of a value and of its slices that are values too count: there and nowhere else.
enum class Counted : std::uint8_t { kWholes, kSlices };

class BoundProblem {
 public:
  BoundProblem(const Program& program, std::span<const double> seconds, const StepModel& model)
      : program_(program),
        graph_(program.graph),
        seconds_(seconds),
        may_rerun_(graph_.node_capacity(), false),
        root_(graph_.value_capacity()),
        bytes_(graph_.value_capacity(), 0),
        node_of_(graph_.value_capacity(), kNone),
        ranges_of_(ranges_of_nodes(graph_)) {
    for (const StepUnit& unit : model.units) {
      for (NodeId id : unit.nodes) may_rerun_[index(id)] = unit.forward && !unit.keep;
    }
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = ValueId(static_cast<std::int32_t>(v));
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.op->is_view) root_[index(node.outputs[0])] = root(node.inputs[0]);
    }
  }

  bool has_ranges() const { return !ranges_of_.empty(); }

  memplan::RematProblem with(Counted counted) {
    problem_ = {};
    count_bytes(counted);
    for (const CallId id : calls_by_time(program_)) add_call(program_.call(id));
    add_end();
    return std::move(problem_);
  }

 private:
  static constexpr std::int32_t kNone = -1;
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  ValueId root(ValueId v) const { return root_[index(v)]; }
  std::int64_t& bytes(ValueId v) { return bytes_[index(root(v))]; }

  void count_bytes(Counted counted) {
    std::ranges::fill(bytes_, 0);
    for (ValueId v : graph_.live_values()) {
      const Value& value = graph_.value(v);
      if (value.kind == ValueKind::kNode && root(v) == v) {
        bytes(v) = static_cast<std::int64_t>(value.type.bytes());
      }
    }
    for (const Update& update : graph_.updates) bytes(update.value) = 0;  // in the state, perhaps
    for (NodeId id : has_ranges() ? graph_.order() : std::vector<NodeId>()) {
      const ByteRanges& ranges = ranges_of_[index(id)];
      if (ranges.offsets.empty()) continue;
      const Node& node = graph_.node(id);
      if (ranges.in_output && counted == Counted::kSlices) {
        bytes(node.outputs[0]) = 0;
        continue;
      }
      for (ValueId v : ranges.in_output ? node.inputs : node.outputs) {
        if (v != kNoValue) leave_out(v);
      }
    }
  }

  // Together with what the slice may be all of.
  void leave_out(ValueId slice) {
    for (ValueId v = root(slice); v != kNoValue;) {
      bytes(v) = 0;
      const NodeId made_by = graph_.value(v).producer;
      if (made_by == kNoNode) return;
      const ByteRanges& ranges = ranges_of_[index(made_by)];
      if (ranges.offsets.empty() || ranges.in_output) return;
      const ValueId from = root(graph_.node(made_by).inputs[0]);
      if (graph_.value(from).type.bytes() != graph_.value(v).type.bytes()) return;
      v = from;
    }
  }

  // A call makes its first output; whatever else it makes can only be there when that has been. Of
  // results of about the same size each takes an equal fraction of the time instead: whoever keeps
  // one of them does not get the others for nothing.
  void add_call(const Call& call) {
    const NodeId id = call.node;
    const Node& node = graph_.node(id);
    std::set<std::int32_t> inputs;
    for (ValueId v : node.inputs) add_needed(v, inputs);
    const ValueId first = node.outputs[0];
    const double picoseconds = seconds_[index(id)] * kPicoseconds;
    // Not where a result may take over an input's bytes: only the row of the whole call can say so.
    const bool divided = first != kNoValue && in_place_bytes(node) == 0;
    const double fraction = divided ? fraction_of_each(node) : 0.0;
    const std::int32_t made =
        add_node(id, {.bytes = first == kNoValue ? 0 : bytes(first),
                      .time = static_cast<std::int64_t>(
                          std::floor(fraction > 0.0 ? fraction * picoseconds : picoseconds)),
                      .workspace_bytes = workspace_bytes_of(program_, call) - in_place_bytes(node),
                      .inputs = {inputs.begin(), inputs.end()}});
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      if (v == first) {
        node_of_[index(v)] = made;
      } else if (fraction > 0.0) {
        node_of_[index(v)] =
            add_node(id, {.bytes = bytes(v),
                          .time = static_cast<std::int64_t>(std::floor(fraction * picoseconds)),
                          .inputs = {inputs.begin(), inputs.end()}});
      } else {
        node_of_[index(v)] = add_node(id, {.bytes = bytes(v), .time = 0, .inputs = {made}});
      }
    }
  }

  // Of the time, for each output of several that are all as large as the first or half of it; 0:
  // the first is what the call is for.
  double fraction_of_each(const Node& node) const {
    const auto size = [this](ValueId v) { return graph_.value(v).type.bytes(); };
    int outputs = 0;
    for (ValueId v : node.outputs) {
      if (v == kNoValue) continue;
      if (2 * size(v) < size(node.outputs[0])) return 0.0;
      ++outputs;
    }
    return outputs > 1 ? 1.0 / outputs : 0.0;
  }

  std::int32_t add_node(NodeId id, memplan::RematNode row) {
    const auto number = static_cast<std::int32_t>(problem_.nodes.size());
    row.id = number;
    row.backward = graph_.node(id).phase != Phase::kForward;
    row.may_rerun = may_rerun_[index(id)];
    problem_.nodes.push_back(std::move(row));
    return number;
  }

  void add_needed(ValueId v, std::set<std::int32_t>& needed) const {
    if (v == kNoValue || node_of_[index(root(v))] == kNone) return;
    needed.insert(node_of_[index(root(v))]);
  }

  // Of the results that may take the place of an input when nobody else reads it.
  std::int64_t in_place_bytes(const Node& node) {
    if (!node.op->in_place) return 0;
    const NodeArgs args(graph_, node);
    std::vector<std::int64_t> shared(node.outputs.size(), 0);
    for (const InPlace& pair : node.op->in_place(*args)) {
      const auto at = static_cast<std::size_t>(pair.output);
      const ValueId in = node.inputs[static_cast<std::size_t>(pair.input)];
      const ValueId out = at < node.outputs.size() ? node.outputs[at] : kNoValue;
      if (in == kNoValue || out == kNoValue) continue;
      shared[at] = std::max(shared[at], std::min(bytes(in), bytes(out)));
    }
    std::int64_t sum = 0;
    for (std::int64_t each : shared) sum += each;
    return sum;
  }

  void add_end() {
    std::set<std::int32_t> left;
    for (ValueId v : graph_.live_values()) {
      if (graph_.is_output(v) && bytes(v) > 0) add_needed(v, left);
    }
    problem_.nodes.push_back({.id = static_cast<std::int64_t>(problem_.nodes.size()),
                              .backward = true,
                              .may_rerun = false,
                              .inputs = {left.begin(), left.end()}});
  }

  const Program& program_;
  const Graph& graph_;
  std::span<const double> seconds_;
  std::vector<bool> may_rerun_;        // by NodeId
  std::vector<ValueId> root_;          // by ValueId: what it is a view of, or itself
  std::vector<std::int64_t> bytes_;    // by ValueId of a root: as they count
  std::vector<std::int32_t> node_of_;  // by ValueId of a root: of the problem; -1: there anyway
  std::vector<ByteRanges> ranges_of_;  // by NodeId; empty: nothing lies inside another
  memplan::RematProblem problem_;
};

}  // namespace

TimeBound::TimeBound(const Program& plain, std::span<const double> seconds, const StepModel& model,
                     const std::stop_token& stop)
    : persistent_bytes_(plain.persistent_bytes) {
  BoundProblem problem(plain, seconds, model);
  countings_.emplace_back(problem.with(Counted::kSlices), stop);
  if (problem.has_ranges()) countings_.emplace_back(problem.with(Counted::kWholes), stop);
}

double TimeBound::seconds_within(std::int64_t arena_bytes) const {
  if (countings_.front().size() > kMostNodes) return 0.0;
  double most = 0.0;
  for (const memplan::RematGraph& graph : countings_) {
    const double time = stoppable(
        [&] { return memplan::least_time(graph, arena_bytes - persistent_bytes_, kFrontiers); });
    if (!std::isfinite(time)) return 0.0;  // no step does with so little
    most = std::max(most, time / kPicoseconds);
  }
  return most;
}

}  // namespace trainscope
