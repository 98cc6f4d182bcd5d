// Rows of a plan's record from a program.
#include "engine/record_plan.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ir/op_def.h"
#include "engine/ir/serial_index.h"
#include "engine/plan/call_costs.h"
#include "engine/record_words.h"

namespace trainscope {
namespace {

std::uint32_t number_of(Serial serial) { return static_cast<std::uint32_t>(serial); }

// An id is a position; none is -1.
template <typename Id>
std::uint32_t row_of(Id id) {
  return static_cast<std::int32_t>(id) < 0 ? kNoRow : static_cast<std::uint32_t>(id);
}

template <typename Row>
std::uint32_t count(const std::vector<Row>& rows) {
  return static_cast<std::uint32_t>(rows.size());
}

class Recorder {
 public:
  explicit Recorder(const Program& program)
      : program_(program), graph_(program.graph), by_time_(calls_by_time(program)) {
    time_of_.assign(graph_.node_capacity(), kNever);
    for (const CallId id : by_time_) {
      const Call& call = program.call(id);
      time_of_[row_of(call.node)] = call.time;
    }
  }

  PlanRecord run() {
    add_facts();
    add_nodes();
    add_values();
    add_ends();
    add_buffers();
    for (std::size_t i = 0; i < program_.calls.size(); ++i) add_call(program_.calls[i]);
    add_sections();
    fit();
    return std::move(record_);
  }

 private:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  TextId text(std::string_view text) { return record_.texts.id(text); }

  // Rows are kept as long as a plan is shown, several plans at a time: without room for more.
  void fit() {
    const auto fit_all = [](auto&... rows) { (rows.shrink_to_fit(), ...); };
    fit_all(record_.dims, record_.values, record_.buffers, record_.members, record_.nodes,
            record_.calls, record_.operands, record_.waits, record_.names, record_.other_kernels);
  }

  void add_facts() {
    record_.facts = {.persistent_bytes = program_.persistent_bytes,
                     .workspace_bytes = program_.workspace_bytes,
                     .times = static_cast<std::uint32_t>(program_.times),
                     .update_begin = static_cast<std::uint32_t>(program_.update_time),
                     .threads = static_cast<std::uint32_t>(program_.threads),
                     .update_call = row_of(program_.update_begin)};
    if (program_.device) record_.facts.device = text(program_.device->facts().name);
    record_.spaces.clear();
    for (const Space space : {Space::kDevice, Space::kHost}) {
      const SpacePlan& plan = program_.space(space);
      record_.spaces.push_back({.bytes = plan.bytes,
                                .lower_bound_bytes = plan.lower_bound_bytes,
                                .alignment_bytes = plan.alignment_bytes,
                                .method = text(plan.method),
                                .kind = recorded_kind(space),
                                .proven = plan.proven ? std::uint8_t{1} : std::uint8_t{0}});
      if (program_.device) record_.spaces.back().name = text(program_.device->space(space).name);
    }
  }

  void add_nodes() {
    record_.nodes.resize(graph_.node_capacity());
    const SerialIndex index(graph_);
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const RowRange sources{.begin = count(record_.names),
                             .count = static_cast<std::uint32_t>(node.provenance.sources.size())};
      for (const std::string& source : node.provenance.sources) {
        record_.names.push_back(text(source));
      }
      record_.nodes[row_of(id)] = {
          .name = text(node.name),
          .op = text(node.op->name),
          .pass = text(node.provenance.pass),
          .sources = sources,
          .phase = recorded_phase(node.phase),
          .op_class = node.op->op_class,
          .serial = number_of(node.serial),
          .backward_of = number_of(node.provenance.backward_of),
          .rematerialized_of = row_of(index.node(node.provenance.rematerialized_of))};
    }
  }

  std::uint32_t viewed(const Value& value) const {
    if (value.producer == kNoNode) return kNoRow;
    const Node& node = graph_.node(value.producer);
    return node.op->is_view ? row_of(node.inputs[0]) : kNoRow;
  }

  void add_ends() {
    for (const ValueId id : graph_.inputs) record_.inputs.push_back(row_of(id));
    for (const ValueId id : graph_.outputs) record_.outputs.push_back(row_of(id));
  }

  void add_values() {
    record_.values.resize(graph_.value_capacity());
    for (const ValueId id : graph_.live_values()) {
      const Value& value = graph_.value(id);
      const auto dims = value.type.shape.span();
      const PlannedValue& place = program_.place(id);
      record_.values[row_of(id)] = {
          .name = text(value.name),
          .dtype = text(name_of(value.type.dtype)),
          .shape = {.begin = count(record_.dims), .count = static_cast<std::uint32_t>(dims.size())},
          .buffer = row_of(place.buffer),
          .producer = row_of(value.producer),
          .serial = number_of(value.serial),
          .kind = recorded_kind(value.kind),
          .view_of = viewed(value),
          .offset = place.offset,
          .bytes = static_cast<std::int64_t>(value.type.bytes())};
      record_.dims.insert(record_.dims.end(), dims.begin(), dims.end());
    }
    add_gradients();
  }

  // A gradient may pass through unchanged: of the values that it is of the first that is there.
  void add_gradients() {
    const SerialIndex index(graph_);
    for (const ValueId id : graph_.live_values()) {
      for (const Serial of : graph_.value(id).gradient_of) {
        const ValueId there = index.value(of);
        std::uint32_t& known = record_.values[row_of(id)].gradient_of;
        if (there != kNoValue && known == kNoRow) known = row_of(there);
      }
    }
    for (const GradientOf& pair : graph_.gradients) {
      record_.values[row_of(pair.gradient)].gradient_of = row_of(pair.of);
    }
  }

  // Values by buffer, in the order of their ids.
  std::vector<std::vector<ValueId>> members() const {
    std::vector<std::vector<ValueId>> lists(program_.buffers.size());
    for (const ValueId id : graph_.live_values()) {
      if (program_.keeps(id))
        lists[static_cast<std::size_t>(program_.place(id).buffer)].push_back(id);
    }
    return lists;
  }

  void add_buffers() {
    const std::vector<std::vector<ValueId>> lists = members();
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const PlannedBuffer& buffer = program_.buffers[i];
      PlanBuffer row{.holds = recorded_class(buffer.role),
                     .space = recorded_kind(buffer.space),
                     .external = buffer.external ? std::uint8_t{1} : std::uint8_t{0},
                     .label = text(buffer.label),
                     .producer = text(producer_of(buffer, lists[i])),
                     .values = {.begin = count(record_.members), .count = count(lists[i])},
                     .begin = static_cast<std::uint32_t>(buffer.begin),
                     .end = static_cast<std::uint32_t>(buffer.end),
                     .offset = buffer.offset,
                     .bytes = buffer.bytes};
      if (buffer.value != kNoValue) {
        row.owner_kind = BufferOwner::kValue;
        row.owner = row_of(buffer.value);
      } else if (buffer.call != kNoCall) {
        row.owner_kind = BufferOwner::kCall;
        row.owner = row_of(buffer.call);
      }
      for (const ValueId v : lists[i]) record_.members.push_back(row_of(v));
      record_.buffers.push_back(row);
    }
  }

  // When the value's node computes it; kNever: no call does.
  std::int64_t time_of(ValueId v) const {
    const NodeId producer = graph_.value(v).producer;
    return producer == kNoNode ? kNever : time_of_[row_of(producer)];
  }

  // The node that writes it first, or what kind of value it starts as. A buffer of a tiled section
  // begins with the section, before its node.
  std::string_view producer_of(const PlannedBuffer& buffer,
                               const std::vector<ValueId>& values) const {
    if (buffer.call != kNoCall) return graph_.node(program_.call(buffer.call).node).name;
    ValueId first = kNoValue;
    for (const ValueId v : values) {
      if (graph_.value(v).kind != ValueKind::kNode) return name_of(graph_.value(v).kind);
      const std::int64_t time = time_of(v);
      if (time != kNever && (first == kNoValue || time < time_of(first))) first = v;
    }
    if (first != kNoValue) return graph_.node(graph_.value(first).producer).name;
    const auto at = static_cast<std::size_t>(buffer.begin);
    if (at >= by_time_.size()) return {};
    return graph_.node(program_.call(by_time_[at]).node).name;
  }

  // The rows of the value's own shape where the slice has the same.
  RowRange shape_of(const Operand& operand) {
    if (operand.value == kNoValue) return {};
    if (operand.type.shape == graph_.value(operand.value).type.shape) {
      return record_.values[row_of(operand.value)].shape;
    }
    const auto dims = operand.type.shape.span();
    const RowRange shape{.begin = count(record_.dims),
                         .count = static_cast<std::uint32_t>(dims.size())};
    record_.dims.insert(record_.dims.end(), dims.begin(), dims.end());
    return shape;
  }

  RowRange operands(const std::vector<Operand>& list) {
    const RowRange range{.begin = count(record_.operands), .count = count(list)};
    for (const Operand& operand : list) {
      PlanOperand row{.value = row_of(operand.value),
                      .buffer = row_of(operand.buffer),
                      .offset = operand.offset,
                      .slice = recorded_slice(operand.slice),
                      .shape = shape_of(operand)};
      if (operand.value != kNoValue) row.dtype = text(name_of(operand.type.dtype));
      record_.operands.push_back(row);
    }
    return range;
  }

  // The row of the body, which is a record of its own.
  std::uint32_t add_body(const CallBody& body) {
    PlanBody row{.carried = {.begin = count(record_.carried), .count = count(body.trips.carried)},
                 .trips_input = body.trips.trips_input < 0
                                    ? kNoRow
                                    : static_cast<std::uint32_t>(body.trips.trips_input)};
    for (const Trips::Carried& carried : body.trips.carried) {
      record_.carried.push_back({.from = static_cast<std::uint32_t>(carried.from),
                                 .to = static_cast<std::uint32_t>(carried.to)});
    }
    record_.body_plans.push_back(plan_record(*body.program));
    record_.bodies.push_back(row);
    return count(record_.bodies) - 1;
  }

  void add_call(const Call& call) {
    const Cost cost = definition_of(program_, call);
    const Cost kernel = kernel_cost_of(program_, call, cost);
    record_.calls.push_back(
        PlanCall{.kind = recorded_kind(call.kind),
                 .phase = recorded_phase(call.phase),
                 .stream = static_cast<std::uint16_t>(call.stream),
                 .node = row_of(call.node),
                 .kernel = call.kernel == nullptr ? 0 : text(call.kernel->name),
                 .dtype = text(name_of(dtype_of(call))),
                 .inputs = operands(call.inputs),
                 .outputs = operands(call.outputs),
                 .waits = {.begin = count(record_.waits), .count = count(call.waits)},
                 .other_kernels = other_kernels(call.others),
                 .workspace = row_of(call.workspace),
                 .tile = call.tile < 0 ? kNoRow : static_cast<std::uint32_t>(call.tile),
                 .time = static_cast<std::uint32_t>(call.time),
                 .flops = cost.flops,
                 .bytes_read = cost.bytes_read,
                 .bytes_written = cost.bytes_written,
                 .kernel_flops = kernel.flops,
                 .kernel_bytes_read = kernel.bytes_read,
                 .kernel_bytes_written = kernel.bytes_written,
                 .workspace_offset = call.workspace_offset,
                 .workspace_bytes = own_workspace_bytes(program_, call),
                 .body = call.body ? add_body(*call.body) : kNoRow,
                 .behind = count(call.others.behind)});
    for (const CallId awaited : call.waits) record_.waits.push_back(row_of(awaited));
  }

  RowRange other_kernels(const OtherKernels& others) {
    RowRange range{.begin = count(record_.other_kernels)};
    for (const auto* list : {&others.refused, &others.behind}) {
      for (const KernelRefusal& other : *list) {
        record_.other_kernels.push_back({.kernel = text(other.kernel), .reason = text(other.why)});
      }
    }
    range.count = count(record_.other_kernels) - range.begin;
    return range;
  }

  void add_sections() {
    for (const TiledSection& section : program_.sections) {
      const PlanSection row{.begin = row_of(section.begin),
                            .end = row_of(section.end),
                            .tiles = static_cast<std::uint32_t>(section.tiles)};
      for (std::uint32_t call = row.begin; call < row.end; ++call) {
        record_.calls[call].section = count(record_.sections);
      }
      record_.sections.push_back(row);
    }
  }

  const Program& program_;
  const Graph& graph_;
  const std::vector<CallId> by_time_;
  std::vector<std::int64_t> time_of_;  // by NodeId
  PlanRecord record_;
};

}  // namespace

PlanRecord plan_record(const Program& program) { return Recorder(program).run(); }

PlanRecompute recompute_record(const RecomputeSummary& summary) {
  return {.repeats = summary.repeats,
          .plain_bytes = summary.plain_bytes,
          .offloaded_bytes = summary.offloaded_bytes,
          .budget_bytes = summary.budget_bytes.value_or(-1),
          .bound_bytes = summary.bound_bytes,
          .plain_seconds = summary.plain_seconds,
          .seconds = summary.seconds,
          .bound_seconds = summary.bound_seconds};
}

PlanRecord plan_record(const Compiled& compiled) {
  PlanRecord record = plan_record(compiled.program);
  if (compiled.recompute) record.recompute.push_back(recompute_record(*compiled.recompute));
  return record;
}

}  // namespace trainscope
