// What a plan.bin that a stranger made may have wrong: positions outside of their tables, sizes and
// times that make no sense.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "engine/bundle/plan_record.h"

namespace trainscope {
namespace {

constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

// Notes the first fault, with the row that is being looked at.
class Finder {
 public:
  explicit Finder(const PlanView& plan) : plan_(plan) {}

  std::string run() {
    texts();
    if (fault_.empty()) facts();
    if (fault_.empty()) spaces();
    if (fault_.empty()) lists();
    if (fault_.empty()) bodies();
    each("value", plan_.values, [this](const PlanValue& value) { check(value); });
    each("buffer", plan_.buffers, [this](const PlanBuffer& buffer) { check(buffer); });
    each("node", plan_.nodes, [this](const PlanNode& node) { check(node); });
    each("operand", plan_.operands, [this](const PlanOperand& operand) { check(operand); });
    each("call", plan_.calls, [this](const PlanCall& call) { check(call); });
    return fault_;
  }

 private:
  template <typename Row, typename Check>
  void each(std::string_view kind, std::span<const Row> rows, Check check_row) {
    for (std::size_t i = 0; i < rows.size() && fault_.empty(); ++i) {
      row_ = i;
      check_row(rows[i]);
      if (!fault_.empty()) fault_ = fmt::format("{} {}: {}", kind, i, fault_);
    }
  }

  void expect(bool is_so, std::string_view otherwise) {
    if (!is_so && fault_.empty()) fault_ = otherwise;
  }
  void text(TextId id) { expect(id < plan_.text_ends.size(), "there is no such text"); }
  template <typename Row>
  void row(std::uint32_t position, std::span<const Row> table, std::string_view what) {
    expect(position == kNoRow || position < table.size(), what);
  }
  template <typename Row>
  void range(RowRange range, std::span<const Row> table, std::string_view what) {
    expect(std::uint64_t{range.begin} + range.count <= table.size(), what);
  }
  template <typename Enum>
  void name(Enum value, Enum last, std::string_view what) {
    expect(static_cast<int>(value) <= static_cast<int>(last), what);
  }
  // [offset, offset + bytes) is inside [0, size).
  void piece(std::int64_t offset, std::int64_t bytes, std::int64_t size, std::string_view what) {
    expect(offset >= 0 && bytes >= 0 && offset <= size && bytes <= size - offset, what);
  }

  void texts() {
    std::uint32_t before = 0;
    for (const std::uint32_t end : plan_.text_ends) {
      expect(end >= before && end <= plan_.text_bytes.size(), "a text ends outside of the texts");
      before = end;
    }
    expect(!plan_.text_ends.empty() && plan_.text_ends[0] == 0, "the first text is not empty");
  }

  void facts() {
    expect(plan_.facts_row.size() == 1, "there is not one row of sizes");
    expect(plan_.recompute.size() <= 1, "there are several rows of recomputation");
    if (!fault_.empty()) return;
    const PlanFacts& facts = plan_.facts();
    expect(facts.persistent_bytes >= 0 && facts.workspace_bytes >= 0, "a size is negative");
    expect(facts.times <= plan_.calls.size(), "there are more times than calls");
    expect(facts.update_begin <= facts.times && facts.update_call <= plan_.calls.size(),
           "the update begins after the end");
    text(facts.device);
  }

  void spaces() {
    expect(plan_.spaces.size() == 2 && plan_.spaces[0].kind == PlanSpaceKind::kDevice &&
               plan_.spaces[1].kind == PlanSpaceKind::kHost,
           "the memory spaces are not the device's and the host's");
    for (const PlanSpace& space : plan_.spaces) {
      expect(space.bytes >= 0 && space.lower_bound_bytes >= 0, "a size is negative");
      expect(space.alignment_bytes > 0, "the alignment is not above zero");
      expect(space.proven <= 1, "the proof is neither there nor not");
      text(space.name);
      text(space.method);
    }
  }

  void lists() {
    for (const std::int64_t dim : plan_.dims) expect(dim >= 0, "a dimension is negative");
    for (const std::uint32_t value : plan_.members) {
      expect(value < plan_.values.size(), "a buffer holds a value that is not there");
    }
    for (const auto ends : {plan_.inputs, plan_.outputs}) {
      for (const std::uint32_t value : ends) {
        expect(value < plan_.values.size(), "an input or output is not there");
      }
    }
    for (const std::uint32_t call : plan_.waits) {
      expect(call < plan_.calls.size(), "a call waits for one that is not there");
    }
    for (const TextId name : plan_.names) text(name);
    for (const PlanOtherKernel& other : plan_.other_kernels) {
      text(other.kernel);
      text(other.reason);
    }
    for (const PlanSection& section : plan_.sections) {
      expect(section.begin <= section.end && section.end <= plan_.calls.size(),
             "a tiled section is outside of the calls");
    }
    std::uint32_t end = 0;
    for (const PlanSection& section : plan_.sections) {
      expect(section.begin >= end, "a tiled section begins before the end of the one before");
      end = section.end;
    }
  }

  void bodies() {
    expect(plan_.bodies.size() == plan_.body_plans.size(), "a body is not there");
    for (std::size_t i = 0; i < plan_.bodies.size() && fault_.empty(); ++i) {
      const PlanBody& body = plan_.bodies[i];
      const PlanView& inside = plan_.body_plans[i];
      range(body.carried, plan_.carried, "what a body carries is not there");
      expect(body.trips_input == kNoRow || body.trips_input < inside.inputs.size(),
             "a body's number of trips is not there");
      if (!fault_.empty()) return;
      for (const PlanCarried& carried : rows_of(plan_.carried, body.carried)) {
        expect(carried.from < inside.outputs.size() && carried.to < inside.inputs.size(),
               "what a body carries is not there");
      }
      const std::string fault = find_fault(inside);
      if (!fault.empty()) fault_ = fmt::format("body {}: {}", i, fault);
    }
  }

  void check(const PlanValue& value) {
    text(value.name);
    text(value.dtype);
    range(value.shape, plan_.dims, "its shape is not there");
    row(value.buffer, plan_.buffers, "its buffer is not there");
    row(value.producer, plan_.nodes, "its node is not there");
    row(value.view_of, plan_.values, "what it is a view of is not there");
    row(value.gradient_of, plan_.values, "what it is the gradient of is not there");
    name(value.kind, PlanValueKind::kErased, "its kind is unknown");
    if (!fault_.empty()) return;
    const bool is_placed = value.buffer != kNoRow && !plan_.is_external(value);
    piece(value.offset, value.bytes, is_placed ? plan_.buffers[value.buffer].bytes : kMostBytes,
          "it is not inside its buffer");
  }

  void check(const PlanBuffer& buffer) {
    name(buffer.holds, BufferClass::kHeld, "its class is unknown");
    name(buffer.space, PlanSpaceKind::kHost, "its memory is unknown");
    expect(buffer.external <= 1, "it is neither external nor not");
    name(buffer.owner_kind, BufferOwner::kCall, "its owner is unknown");
    if (buffer.owner_kind == BufferOwner::kNone) expect(buffer.owner == kNoRow, "it has an owner");
    if (buffer.owner_kind == BufferOwner::kValue) {
      expect(buffer.owner < plan_.values.size(), "its owner is not there");
    }
    if (buffer.owner_kind == BufferOwner::kCall) {
      expect(buffer.owner < plan_.calls.size(), "its owner is not there");
    }
    text(buffer.label);
    text(buffer.producer);
    range(buffer.values, plan_.members, "its values are not there");
    expect(buffer.begin <= buffer.end, "it ends before it begins");
    if (!fault_.empty()) return;
    piece(buffer.offset, buffer.bytes, plan_.space(buffer.space).bytes,
          "it is not inside the arena");
  }

  void check(const PlanNode& node) {
    text(node.name);
    text(node.op);
    text(node.pass);
    range(node.sources, plan_.names, "its sources are not there");
    name(node.phase, PlanPhase::kUpdate, "its phase is unknown");
    name(node.op_class, OpClass::kOther, "the class of its op is unknown");
    row(node.rematerialized_of, plan_.nodes, "the node that computes the same first is not there");
  }

  void check(const PlanOperand& operand) {
    row(operand.value, plan_.values, "its value is not there");
    row(operand.buffer, plan_.buffers, "its buffer is not there");
    name(operand.slice, PlanSlice::kElements, "its slice is unknown");
    text(operand.dtype);
    range(operand.shape, plan_.dims, "its shape is not there");
    expect(operand.offset >= 0, "its offset is negative");
    if (!fault_.empty() || operand.buffer == kNoRow) return;
    const PlanBuffer& buffer = plan_.buffers[operand.buffer];
    expect(buffer.external != 0 || operand.offset <= buffer.bytes,
           "it begins behind the end of its buffer");
  }

  void check(const PlanCall& call) {
    name(call.kind, PlanCallKind::kProgram, "its kind is unknown");
    name(call.phase, PlanPhase::kUpdate, "its phase is unknown");
    row(call.node, plan_.nodes, "its node is not there");
    text(call.kernel);
    text(call.dtype);
    range(call.inputs, plan_.operands, "its inputs are not there");
    range(call.outputs, plan_.operands, "its outputs are not there");
    range(call.waits, plan_.waits, "its waits are not there");
    range(call.other_kernels, plan_.other_kernels, "its other kernels are not there");
    expect(call.behind <= call.other_kernels.count, "more kernels are behind its own than others");
    row(call.workspace, plan_.buffers, "its workspace is not there");
    row(call.section, plan_.sections, "its tiled section is not there");
    expect(call.time < std::max(plan_.facts().times, 1U), "its time is after the end");
    expect(call.workspace_offset >= 0, "its workspace begins before the buffer");
    expect(call.flops >= 0 && call.bytes_read >= 0 && call.bytes_written >= 0,
           "it costs less than nothing");
    expect(call.kernel_flops >= -1 && call.kernel_bytes_read >= -1 &&
               call.kernel_bytes_written >= -1 && call.workspace_bytes >= -1,
           "its kernel costs less than nothing");
    row(call.body, plan_.bodies, "its body is not there");
    if (fault_.empty()) check_places(call);
    if (fault_.empty() && call.body != kNoRow) check_body(call);
  }

  void check_body(const PlanCall& call) {
    const PlanView& inside = plan_.body_plans[call.body];
    expect(call.kind == PlanCallKind::kProgram, "it has a body and runs none");
    expect(inside.inputs.size() == call.inputs.count && inside.outputs.size() == call.outputs.count,
           "its body has other inputs or outputs");
    expect(inside.arena().bytes <= std::max<std::int64_t>(0, call.workspace_bytes),
           "its body needs more than its workspace");
  }

  // Where the call stands among others; its rows are there.
  void check_places(const PlanCall& call) {
    for (const std::uint32_t awaited : rows_of(plan_.waits, call.waits)) {
      expect(awaited < row_, "it waits for a call that is not before it");
    }
    if (call.workspace != kNoRow) {
      piece(call.workspace_offset, std::max<std::int64_t>(0, call.workspace_bytes),
            plan_.buffers[call.workspace].bytes, "it is not inside its workspace");
    }
    if (call.tile == kNoRow) return;
    expect(call.section != kNoRow && call.tile < plan_.sections[call.section].tiles,
           "its section has no such batch tile");
  }

  const PlanView& plan_;
  std::size_t row_ = 0;  // that is being looked at
  std::string fault_;
};

}  // namespace

std::string find_fault(const PlanView& plan) { return Finder(plan).run(); }

}  // namespace trainscope
