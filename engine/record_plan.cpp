// Rows of a plan's record from a program.
#include "engine/record_plan.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/saturating.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

std::uint32_t row_of(ValueId id) {
  return id == kNoValue ? kNoRow : static_cast<std::uint32_t>(id);
}
std::uint32_t row_of(NodeId id) { return id == kNoNode ? kNoRow : static_cast<std::uint32_t>(id); }

PlanPhase phase_of(Phase phase) {
  if (phase == Phase::kForward) return PlanPhase::kForward;
  return phase == Phase::kBackward ? PlanPhase::kBackward : PlanPhase::kUpdate;
}

PlanValueKind kind_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::kInput:
      return PlanValueKind::kInput;
    case ValueKind::kParameter:
      return PlanValueKind::kParameter;
    case ValueKind::kState:
      return PlanValueKind::kState;
    case ValueKind::kConstant:
      return PlanValueKind::kConstant;
    case ValueKind::kNode:
      break;
  }
  return PlanValueKind::kNode;
}

PlanSlice slice_of(TileSlice slice) {
  switch (slice) {
    case TileSlice::kExamples:
      return PlanSlice::kExamples;
    case TileSlice::kPartial:
      return PlanSlice::kPartial;
    case TileSlice::kElements:
      return PlanSlice::kElements;
    case TileSlice::kWhole:
      break;
  }
  return PlanSlice::kWhole;
}

PlanCallKind kind_of(CallKind kind) {
  switch (kind) {
    case CallKind::kTransfer:
      return PlanCallKind::kTransfer;
    case CallKind::kAddPartials:
      return PlanCallKind::kAddPartials;
    case CallKind::kStateCopy:
      return PlanCallKind::kStateCopy;
    case CallKind::kProgram:
      return PlanCallKind::kProgram;
    case CallKind::kKernel:
      break;
  }
  return PlanCallKind::kKernel;
}

BufferClass class_of(BufferRole role) {
  switch (role) {
    case BufferRole::kParameter:
      return BufferClass::kParameter;
    case BufferRole::kState:
      return BufferClass::kState;
    case BufferRole::kConstant:
      return BufferClass::kConstant;
    case BufferRole::kInput:
      return BufferClass::kInput;
    case BufferRole::kGradient:
      return BufferClass::kGradient;
    case BufferRole::kUpdate:
      return BufferClass::kUpdate;
    case BufferRole::kWorkspace:
      return BufferClass::kWorkspace;
    case BufferRole::kHeld:
      return BufferClass::kHeld;
    case BufferRole::kActivation:
      break;
  }
  return BufferClass::kActivation;
}

std::int64_t bytes_of(const Value& value) { return static_cast<std::int64_t>(value.type.bytes()); }

template <typename Row>
std::uint32_t count(const std::vector<Row>& rows) {
  return static_cast<std::uint32_t>(rows.size());
}

class Recorder {
 public:
  explicit Recorder(const Program& program)
      : program_(program), graph_(program.graph), by_time_(calls_by_time(program)) {}

  PlanRecord run() {
    add_facts();
    add_nodes();
    add_values();
    add_buffers();
    for (std::size_t i = 0; i < program_.calls.size(); ++i) add_call(program_.calls[i]);
    add_sections();
    return std::move(record_);
  }

 private:
  TextId text(std::string_view text) { return record_.texts.id(text); }

  void add_facts() {
    record_.facts = {.arena_bytes = program_.arena.bytes,
                     .host_arena_bytes = program_.host.bytes,
                     .lower_bound_bytes = program_.arena.lower_bound_bytes,
                     .persistent_bytes = program_.persistent_bytes,
                     .workspace_bytes = program_.workspace_bytes,
                     .alignment_bytes = program_.arena.alignment_bytes,
                     .times = static_cast<std::uint32_t>(program_.times),
                     .update_begin = static_cast<std::uint32_t>(program_.update_time),
                     .threads = static_cast<std::uint32_t>(program_.threads),
                     .proven = program_.arena.proven ? 1U : 0U,
                     .method = text(program_.arena.method)};
  }

  void add_nodes() {
    record_.nodes.resize(graph_.node_capacity());
    for (const NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const RowRange sources{.begin = count(record_.names),
                             .count = static_cast<std::uint32_t>(node.provenance.sources.size())};
      for (const std::string& source : node.provenance.sources) {
        record_.names.push_back(text(source));
      }
      record_.nodes[row_of(id)] = {.name = text(node.name),
                                   .op = text(node.op->name),
                                   .pass = text(node.provenance.pass),
                                   .sources = sources,
                                   .phase = phase_of(node.phase)};
    }
  }

  void add_values() {
    record_.values.resize(graph_.value_capacity());
    for (const ValueId id : graph_.live_values()) {
      const Value& value = graph_.value(id);
      PlanValue& row = record_.values[row_of(id)];
      row = {.name = text(value.name),
             .dtype = text(name_of(value.type.dtype)),
             .shape = {.begin = count(record_.dims)},
             .producer = row_of(value.producer),
             .kind = kind_of(value.kind),
             .bytes = bytes_of(value)};
      const auto dims = value.type.shape.span();
      record_.dims.insert(record_.dims.end(), dims.begin(), dims.end());
      row.shape.count = static_cast<std::uint32_t>(dims.size());
      place(id, row);
    }
    for (const GradientOf& pair : graph_.gradients) {
      record_.values[row_of(pair.gradient)].gradient_of = row_of(pair.of);
    }
  }

  void place(ValueId id, PlanValue& row) const {
    const PlannedBuffer* buffer = program_.buffer_of(id);
    if (buffer == nullptr) return;
    row.buffer = static_cast<std::uint32_t>(program_.place(id).buffer);
    row.external = buffer->external ? 1 : 0;
    row.offset = program_.place(id).offset;
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
      PlanBuffer row{.holds = class_of(buffer.role),
                     .space = buffer.space == Space::kHost ? PlanSpace::kHost : PlanSpace::kDevice,
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
        row.owner = static_cast<std::uint32_t>(buffer.call);
      }
      for (const ValueId v : lists[i]) record_.members.push_back(row_of(v));
      record_.buffers.push_back(row);
    }
  }

  // The node that writes it first, or what kind of value it starts as.
  std::string_view producer_of(const PlannedBuffer& buffer,
                               const std::vector<ValueId>& values) const {
    for (const ValueId v : values) {
      if (graph_.value(v).kind != ValueKind::kNode) return name_of(graph_.value(v).kind);
    }
    const auto at = static_cast<std::size_t>(buffer.begin);
    return at < by_time_.size() ? graph_.node(program_.call(by_time_[at]).node).name : "";
  }

  RowRange operands(const std::vector<Operand>& list) {
    const RowRange range{.begin = count(record_.operands), .count = count(list)};
    for (const Operand& operand : list) {
      if (operand.value == kNoValue) {
        record_.operands.emplace_back();
        continue;
      }
      record_.operands.push_back({.value = row_of(operand.value),
                                  .buffer = operand.buffer == kNoBuffer
                                                ? kNoRow
                                                : static_cast<std::uint32_t>(operand.buffer),
                                  .offset = operand.offset,
                                  .slice = slice_of(operand.slice)});
    }
    return range;
  }

  // Of a node's call: what the op's rule counts, of a tile its part. Sums and copies by their
  // operands.
  Cost cost(const Call& call) const {
    const auto bytes_in = [](const std::vector<Operand>& operands) {
      std::int64_t bytes = 0;
      for (const Operand& operand : operands) {
        if (operand.value == kNoValue) continue;
        add_saturating(bytes, static_cast<std::int64_t>(operand.type.bytes()));
      }
      return bytes;
    };
    if (call.kind == CallKind::kStateCopy || call.kind == CallKind::kAddPartials) {
      const std::int64_t sums = static_cast<std::int64_t>(call.inputs.size()) - 1;
      return {.flops = sums * call.outputs[0].type.elements(),
              .bytes_read = bytes_in(call.inputs),
              .bytes_written = bytes_in(call.outputs)};
    }
    const Node& node = graph_.node(call.node);
    const NodeArgs args(graph_, node);
    Cost whole = cost_of(*node.op, *args);
    if (call.tile < 0) return whole;
    for (std::int64_t* part : {&whole.flops, &whole.bytes_read, &whole.bytes_written}) {
      *part = *part / program_.threads + (call.tile < *part % program_.threads ? 1 : 0);
    }
    return whole;
  }

  DType dtype_of(const Call& call) const {
    const auto types = [](const std::vector<Operand>& operands) {
      std::vector<TensorType> list;
      for (const Operand& operand : operands) {
        if (operand.value != kNoValue) list.push_back(operand.type);
      }
      return list;
    };
    return kernel_dtype(types(call.inputs), types(call.outputs));
  }

  void add_call(const Call& call) {
    const Cost cost = this->cost(call);
    PlanCall row{.kind = kind_of(call.kind),
                 .phase = phase_of(call.phase),
                 .stream = static_cast<std::uint16_t>(call.stream),
                 .node = row_of(call.node),
                 .kernel = call.kernel == nullptr ? 0 : text(call.kernel->name),
                 .dtype = text(name_of(dtype_of(call))),
                 .inputs = operands(call.inputs),
                 .outputs = operands(call.outputs),
                 .waits = {.begin = count(record_.waits), .count = count(call.waits)},
                 .refused = {.begin = count(record_.refusals), .count = count(call.refused)},
                 .tile = call.tile < 0 ? kNoRow : static_cast<std::uint32_t>(call.tile),
                 .time = static_cast<std::uint32_t>(call.time),
                 .flops = cost.flops,
                 .bytes_read = cost.bytes_read,
                 .bytes_written = cost.bytes_written};
    if (call.workspace != kNoBuffer) row.workspace = static_cast<std::uint32_t>(call.workspace);
    for (const CallId awaited : call.waits) {
      record_.waits.push_back(static_cast<std::uint32_t>(awaited));
    }
    for (const KernelRefusal& refusal : call.refused) {
      record_.refusals.push_back({.kernel = text(refusal.kernel), .reason = text(refusal.why)});
    }
    record_.calls.push_back(row);
  }

  // Sections by their times; what adds up the partials of one belongs to it.
  void add_sections() {
    for (const TiledSection& section : program_.sections) {
      const auto begin = static_cast<std::size_t>(section.begin);
      const auto end = static_cast<std::size_t>(section.end);
      const bool is_sums = program_.calls[begin].kind == CallKind::kAddPartials;
      if (!is_sums) {
        record_.sections.push_back(
            {.begin = record_.calls[begin].time, .end = record_.calls[end - 1].time + 1});
      }
      for (std::size_t i = begin; i < end; ++i) {
        record_.calls[i].section = count(record_.sections) - 1;
      }
    }
  }

  const Program& program_;
  const Graph& graph_;
  const std::vector<CallId> by_time_;
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
