// Groups the nodes of a step into units and turns orders of units into rematerializations of nodes.
#include "engine/recompute/step_model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/ir/op_def.h"
#include "engine/plan/lower.h"

namespace trainscope {
namespace {

constexpr int kNone = -1;

class ModelBuilder {
 public:
  ModelBuilder(const Program& program, std::span<const double> seconds)
      : program_(program),
        graph_(program.graph),
        seconds_(seconds),
        unit_of_(graph_.value_capacity(), kNone),
        readers_(graph_.value_capacity(), 0),
        kept_(graph_.value_capacity(), true),
        updates_(graph_.value_capacity(), false) {
    for (const Update& update : graph_.updates) updates_[index(update.value)] = true;
  }

  StepModel run() {
    count_readers();
    const std::vector<CallId> calls = calls_by_time(program_);
    auto call = calls.begin();
    std::int64_t position = 0;
    model_.position.assign(graph_.node_capacity(), 0);
    for (NodeId id : phase_order(graph_)) {
      model_.position[static_cast<std::size_t>(id)] = position++;
      if (graph_.node(id).op->is_view) {
        add_view(id);
      } else {
        add_call(program_.call(*call++));
      }
    }
    add_end();
    model_.fixed_bytes = program_.persistent_bytes;
    count_bytes();
    for (const StepUnit& unit : model_.units) {
      model_.seconds += unit.seconds;
    }
    return std::move(model_);
  }

 private:
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
  StepUnit& unit(int i) { return model_.units[static_cast<std::size_t>(i)]; }

  // How many calls read the bytes of a value, through views or not; outside readers count too.
  void count_readers() {
    std::vector<ValueId> root(graph_.value_capacity(), kNoValue);
    const auto root_of = [&root](ValueId v) {
      return root[index(v)] == kNoValue ? v : root[index(v)];
    };
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      if (node.op->is_view) {
        root[index(node.outputs[0])] = root_of(node.inputs[0]);
        continue;
      }
      for (ValueId v : node.inputs) {
        if (v != kNoValue) ++readers_[index(root_of(v))];
      }
    }
    for (ValueId v : graph_.live_values()) {
      if (graph_.is_output(v)) ++readers_[index(root_of(v))];
    }
  }

  void add_view(NodeId id) {
    const Node& node = graph_.node(id);
    const int from = unit_of_[index(node.inputs[0])];
    if (from == kNone) return;  // of a parameter or an input
    unit(from).nodes.push_back(id);
    unit_of_[index(node.outputs[0])] = from;
    // The bytes are counted once, at the value that the view is of.
    kept_[index(node.outputs[0])] = false;
  }

  void add_call(const Call& call) {
    const Node& node = graph_.node(call.node);
    std::set<int> inputs;
    for (ValueId v : node.inputs) add_owners(v, inputs);
    int target = in_place_unit(node, inputs);
    if (target == kNone) {
      target = static_cast<int>(model_.units.size());
      model_.units.push_back({.nodes = {},
                              .inputs = {inputs.begin(), inputs.end()},
                              .forward = node.phase == Phase::kForward});
      over_.push_back(overwritten_unit(node));
    }
    StepUnit& unit = this->unit(target);
    unit.nodes.push_back(call.node);
    unit.seconds += seconds_[static_cast<std::size_t>(call.node)];
    unit.workspace_bytes = std::max(unit.workspace_bytes, workspace_bytes_of(program_, call));
    for (ValueId v : node.outputs) {
      if (v != kNoValue) unit_of_[index(v)] = target;
    }
    if (node.phase == Phase::kBackward) split_results(node, target);
  }

  // The gradients of a norm's scale and bias wait for the update, those of its input and of what is
  // added to it do not. So the first of the largest results stays with its call; each other one of
  // that size is a unit of its own, a side result, which takes no time, and the smaller ones are
  // one together.
  void split_results(const Node& node, int made_by) {
    const auto bytes = [this](ValueId v) {
      return v == kNoValue ? 0 : graph_.value(v).type.bytes();
    };
    const ValueId largest = *std::ranges::max_element(node.outputs, {}, bytes);
    int smaller = kNone;
    for (ValueId v : node.outputs) {
      if (v == kNoValue || v == largest) continue;
      if (bytes(v) == bytes(largest)) {
        unit_of_[index(v)] = add_side_result(made_by);
        continue;
      }
      if (smaller == kNone) smaller = add_side_result(made_by);
      unit_of_[index(v)] = smaller;
    }
  }

  bool is_side_result(int unit) const {
    return std::ranges::find(side_results_, unit, &SideResult::unit) != side_results_.end();
  }

  int add_side_result(int made_by) {
    const auto added = static_cast<int>(model_.units.size());
    model_.units.push_back({.nodes = {}, .inputs = {made_by}});
    over_.push_back(kNone);
    side_results_.push_back({.made_by = made_by, .unit = added});
    return added;
  }

  // What must be there for a value to be: the unit that makes it, and those in whose bytes it is.
  void add_owners(ValueId v, std::set<int>& units) const {
    if (v == kNoValue) return;
    for (int i = unit_of_[index(v)]; i != kNone; i = over_[static_cast<std::size_t>(i)]) {
      units.insert(i);
    }
  }

  // An input that nobody else reads, of a unit, and the output that takes over its bytes.
  struct Overwrite {
    ValueId in = kNoValue;
    ValueId out = kNoValue;
  };
  std::optional<Overwrite> overwrite_of(const Node& node) const {
    for (ValueId in : node.inputs) {
      if (in == kNoValue || unit_of_[index(in)] == kNone) continue;
      for (ValueId out : node.outputs) {
        if (out == kNoValue || !same_bytes(in, out)) continue;
        const bool alone =
            readers_[index(in)] == 1 && !graph_.node(graph_.value(in).producer).op->is_view;
        return alone ? std::optional(Overwrite{in, out}) : std::nullopt;
      }
    }
    return std::nullopt;
  }

  // The unit whose bytes this call writes over, if it needs nothing that comes after them: then
  // both are one unit, and the bytes are counted once. Not a side result of another call: it has no
  // call of its own before, and units in between would then come before it.
  int in_place_unit(const Node& node, const std::set<int>& inputs) {
    const std::optional<Overwrite> found = overwrite_of(node);
    if (!found) return kNone;
    const int owner = unit_of_[index(found->in)];
    const Node& producer = graph_.node(graph_.value(found->in).producer);
    if (*inputs.rbegin() != owner || producer.phase != node.phase) return kNone;
    if (is_side_result(owner)) return kNone;
    add_inputs(owner, inputs);
    kept_[index(found->out)] = kept_[index(found->in)];
    kept_[index(found->in)] = false;
    return owner;
  }

  // The earlier unit whose bytes a new one's result takes over. Neither may run twice: the bytes
  // are counted where they were made, and are there as long as the result is read.
  int overwritten_unit(const Node& node) {
    const std::optional<Overwrite> found = overwrite_of(node);
    if (!found || node.phase == Phase::kForward) return kNone;
    const int owner = unit_of_[index(found->in)];
    if (unit(owner).forward) return kNone;
    kept_[index(found->out)] = false;
    return owner;
  }

  void add_inputs(int owner, const std::set<int>& inputs) {
    std::set<int> all(unit(owner).inputs.begin(), unit(owner).inputs.end());
    all.insert(inputs.begin(), inputs.end());
    all.erase(owner);
    unit(owner).inputs.assign(all.begin(), all.end());
  }

  bool same_buffer(ValueId a, ValueId b) const {
    return program_.keeps(a) && program_.place(a).buffer == program_.place(b).buffer;
  }
  // Not so where one is a slice of the buffer and the other the whole.
  bool same_bytes(ValueId a, ValueId b) const {
    return same_buffer(a, b) && program_.place(a).offset == program_.place(b).offset &&
           graph_.value(a).type.bytes() == graph_.value(b).type.bytes();
  }

  void add_end() {
    std::set<int> inputs;
    for (ValueId v : graph_.live_values()) {
      if (graph_.is_output(v) && !is_forward_update(v)) add_owners(v, inputs);
    }
    model_.units.push_back({.nodes = {}, .inputs = {inputs.begin(), inputs.end()}});
  }

  void count_bytes() {
    for (ValueId v : graph_.live_values()) {
      const PlannedBuffer* buffer = program_.buffer_of(v);
      if (unit_of_[index(v)] == kNone || !kept_[index(v)] || buffer == nullptr) continue;
      const bool in_state = buffer->begin == 0 && buffer->end == program_.times &&
                            graph_.value(v).kind == ValueKind::kNode && is_update(v);
      if (in_state) continue;
      const auto bytes = static_cast<std::int64_t>(graph_.value(v).type.bytes());
      if (is_forward_update(v)) {
        add_saturating(model_.fixed_bytes, bytes);
        continue;
      }
      StepUnit& unit = this->unit(unit_of_[index(v)]);
      add_saturating(unit.bytes, bytes);
      unit.kept.push_back(v);
    }
    for (const SideResult& each : side_results_) {
      unit(each.made_by).workspace_bytes += unit(each.unit).bytes;  // made in the same call
    }
    for (StepUnit& unit : model_.units) {
      unit.offloadable = unit.forward && unit.bytes > 0;
    }
    for (ValueId v : graph_.live_values()) {
      const int owner = unit_of_[index(v)];
      if (owner == kNone || is_forward_update(v)) continue;
      if (graph_.is_output(v)) unit(owner).offloadable = false;
    }
  }

  // Running statistics: there from the forward phase to the end, whatever becomes of the result
  // that was made with them.
  bool is_forward_update(ValueId v) const {
    const int owner = unit_of_[index(v)];
    return updates_[index(v)] && owner != kNone &&
           model_.units[static_cast<std::size_t>(owner)].forward;
  }

  // Whether the value is written straight into the storage of a state.
  bool is_update(ValueId v) const {
    return std::ranges::any_of(graph_.updates, [&](const Update& update) {
      return update.value == v && same_buffer(update.state, v);
    });
  }

  const Program& program_;
  const Graph& graph_;
  std::span<const double> seconds_;
  StepModel model_;
  std::vector<int> unit_of_;  // by ValueId
  std::vector<int> over_;     // by unit: the earlier one in whose bytes its result is
  struct SideResult {
    int made_by = kNone;
    int unit = kNone;
  };
  std::vector<SideResult> side_results_;
  std::vector<int> readers_;   // by ValueId: calls that read its bytes
  std::vector<bool> kept_;     // by ValueId: its bytes are still its own when the unit has run
  std::vector<bool> updates_;  // by ValueId: what a state is after the step
};

}  // namespace

StepModel step_model(const Program& program, std::span<const double> seconds) {
  CHECK_INVARIANT(seconds.size() >= program.graph.node_capacity());
  return ModelBuilder(program, seconds).run();
}

std::vector<Rematerialization> rematerializations_of(const Graph& graph, const StepModel& model,
                                                     const UnitOrder& order) {
  const auto at = [&model](NodeId id) { return model.position[static_cast<std::size_t>(id)]; };
  std::vector<bool> ran(model.units.size(), false);
  std::vector<int> waiting;  // recomputed since the last unit that ran for the first time
  std::vector<Rematerialization> rematerializations;
  const auto add_waiting = [&](NodeId before) {
    for (int w : waiting) {
      const StepUnit& unit = model.units[static_cast<std::size_t>(w)];
      const bool fetched = !order.in_host.empty() && order.in_host[static_cast<std::size_t>(w)];
      for (ValueId v : fetched ? unit.kept : std::vector<ValueId>()) {
        rematerializations.push_back({.before = before, .fetch = v});
      }
      for (NodeId id : unit.nodes) {
        const bool runs = !fetched || graph.node(id).op->is_view;
        if (runs && at(id) < at(before))
          rematerializations.push_back({.node = id, .before = before});
      }
    }
    waiting.clear();
  };
  for (int i : order.units) {
    const StepUnit& unit = model.units[static_cast<std::size_t>(i)];
    if (ran[static_cast<std::size_t>(i)]) {
      waiting.push_back(i);
      continue;
    }
    ran[static_cast<std::size_t>(i)] = true;
    // Else it is the end of the step, or a side result of a call: its views may come later.
    const bool calls = !unit.nodes.empty() && !graph.node(unit.nodes.front()).op->is_view;
    if (calls) add_waiting(unit.nodes.front());
  }
  return rematerializations;
}

UnitOrder on_demand_order(const StepModel& model, const std::vector<bool>& recomputed,
                          std::vector<bool> in_host) {
  UnitOrder order{.units = {}, .in_host = std::move(in_host)};
  const auto is_in_host = [&order](std::size_t unit) {
    return !order.in_host.empty() && order.in_host[unit];
  };
  std::vector<bool> there(model.units.size(), false);
  std::vector<int> stack;
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    const StepUnit& unit = model.units[i];
    if (unit.forward) {
      order.units.push_back(static_cast<int>(i));
      there[i] = !recomputed[i] && !is_in_host(i);
      continue;
    }
    stack.assign(unit.inputs.rbegin(), unit.inputs.rend());
    while (!stack.empty()) {
      const auto top = static_cast<std::size_t>(stack.back());
      if (there[top]) {
        stack.pop_back();
        continue;
      }
      const std::size_t size = stack.size();
      for (int input : model.units[top].inputs) {
        const bool needed = !is_in_host(top) && !there[static_cast<std::size_t>(input)];
        if (needed) stack.push_back(input);
      }
      if (stack.size() > size) continue;
      order.units.push_back(static_cast<int>(top));
      there[top] = true;
      stack.pop_back();
    }
    order.units.push_back(static_cast<int>(i));
    there[i] = true;
  }
  return order;
}

}  // namespace trainscope
