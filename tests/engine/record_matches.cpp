// Each table of a record beside what it is of.
#include "tests/engine/record_matches.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "engine/plan/call_costs.h"

namespace trainscope::test {
namespace {

bool ids_are(std::span<const std::uint32_t> rows, const std::vector<ValueId>& ids) {
  return std::ranges::equal(rows, ids, {}, {},
                            [](ValueId id) { return static_cast<std::uint32_t>(id); });
}

void check_values(const Program& program, const PlanView& plan) {
  REQUIRE(plan.values.size() == program.graph.value_capacity());
  for (const ValueId id : program.graph.live_values()) {
    const auto row = static_cast<std::size_t>(id);
    const Value& value = program.graph.value(id);
    const PlanValue& recorded = plan.values[row];
    CHECK(plan.text(recorded.name) == value.name);
    CHECK(plan.text(recorded.dtype) == name_of(value.type.dtype));
    CHECK(recorded.serial == static_cast<std::uint32_t>(value.serial));
    CHECK(std::ranges::equal(rows_of(plan.dims, recorded.shape), value.type.shape.span()));
    CHECK(recorded.bytes == static_cast<std::int64_t>(value.type.bytes()));
    CHECK(name_of(recorded.kind) == name_of(value.kind));
    CHECK(recorded.producer == static_cast<std::uint32_t>(value.producer));
    const Node* view = value.producer == kNoNode ? nullptr : &program.graph.node(value.producer);
    const bool is_view = view != nullptr && view->op->is_view;
    CHECK((recorded.view_of != kNoRow) == is_view);
    if (is_view) CHECK(recorded.view_of == static_cast<std::uint32_t>(view->inputs[0]));
    CHECK((recorded.buffer == kNoRow) == !program.keeps(id));
    if (!program.keeps(id)) continue;
    CHECK(recorded.buffer == static_cast<std::uint32_t>(program.place(id).buffer));
    CHECK(recorded.offset == program.place(id).offset);
    CHECK(plan.buffers[recorded.buffer].offset + recorded.offset == program.offset_of(id));
  }
}

void check_kernels(const PlanView& plan, std::span<const PlanOtherKernel> recorded,
                   const std::vector<KernelRefusal>& kernels) {
  REQUIRE(recorded.size() == kernels.size());
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    CHECK(plan.text(recorded[k].kernel) == kernels[k].kernel);
    CHECK(plan.text(recorded[k].reason) == kernels[k].why);
  }
}

void check_operands(const PlanView& plan, RowRange range, const std::vector<Operand>& operands) {
  REQUIRE(range.count == operands.size());
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const PlanOperand& recorded = rows_of(plan.operands, range)[k];
    CHECK(recorded.value == static_cast<std::uint32_t>(operands[k].value));
    CHECK(recorded.buffer == static_cast<std::uint32_t>(operands[k].buffer));
    CHECK(recorded.offset == operands[k].offset);
    CHECK(static_cast<int>(recorded.slice) == static_cast<int>(operands[k].slice));
    if (operands[k].value == kNoValue) continue;
    CHECK(plan.text(recorded.dtype) == name_of(operands[k].type.dtype));
    CHECK(std::ranges::equal(rows_of(plan.dims, recorded.shape), operands[k].type.shape.span()));
  }
}

void check_calls(const Program& program, const PlanView& plan) {
  REQUIRE(plan.calls.size() == program.calls.size());
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const Call& call = program.calls[i];
    const PlanCall& recorded = plan.calls[i];
    CHECK(name_of(recorded.kind) == name_of(call.kind));
    CHECK(recorded.time == static_cast<std::uint32_t>(call.time));
    CHECK(recorded.node == static_cast<std::uint32_t>(call.node));
    CHECK(recorded.stream == static_cast<std::uint16_t>(call.stream));
    CHECK(recorded.tile == static_cast<std::uint32_t>(call.tile));
    CHECK(static_cast<int>(recorded.phase) == static_cast<int>(call.phase));
    CHECK(std::ranges::equal(rows_of(plan.waits, recorded.waits), call.waits, {}, {},
                             [](CallId id) { return static_cast<std::uint32_t>(id); }));
    check_kernels(plan, plan.kernels_before(recorded), call.others.refused);
    check_kernels(plan, plan.kernels_behind(recorded), call.others.behind);
    const Cost cost = definition_of(program, call);
    CHECK(recorded.flops == cost.flops);
    CHECK(recorded.bytes_read == cost.bytes_read);
    CHECK(recorded.bytes_written == cost.bytes_written);
    const Cost kernel = kernel_cost_of(program, call, cost);
    CHECK(recorded.kernel_flops == kernel.flops);
    CHECK(recorded.kernel_bytes_read == kernel.bytes_read);
    CHECK(recorded.kernel_bytes_written == kernel.bytes_written);
    CHECK(plan.text(recorded.dtype) == name_of(dtype_of(call)));
    CHECK(recorded.workspace_bytes == own_workspace_bytes(program, call));
    CHECK(recorded.workspace == static_cast<std::uint32_t>(call.workspace));
    CHECK(recorded.workspace_offset == call.workspace_offset);
    CHECK(plan.text(recorded.kernel) == (call.kernel == nullptr ? "" : call.kernel->name));
    check_operands(plan, recorded.inputs, call.inputs);
    check_operands(plan, recorded.outputs, call.outputs);
    if (call.node == kNoNode) continue;
    const Node& node = program.graph.node(call.node);
    CHECK(plan.name_of(recorded) == node.name);
    const bool is_copy = call.kind == CallKind::kStateCopy;
    CHECK(plan.op_of(recorded) == (is_copy ? "" : node.op->name));
    CHECK(plan.sources_of(recorded).size() == node.provenance.sources.size());
  }
}

void check_buffers(const Program& program, const PlanView& plan) {
  REQUIRE(plan.buffers.size() == program.buffers.size());
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const PlannedBuffer& buffer = program.buffers[i];
    const PlanBuffer& recorded = plan.buffers[i];
    CHECK(name_of(recorded.holds) == name_of(buffer.role));
    CHECK((recorded.space == PlanSpaceKind::kHost) == (buffer.space == Space::kHost));
    CHECK((recorded.external != 0) == buffer.external);
    CHECK(recorded.offset == buffer.offset);
    CHECK(recorded.bytes == buffer.bytes);
    CHECK(recorded.begin == static_cast<std::uint32_t>(buffer.begin));
    CHECK(recorded.end == static_cast<std::uint32_t>(buffer.end));
    CHECK(plan.text(recorded.label) == buffer.label);
    const bool owned = buffer.value != kNoValue;
    CHECK((recorded.owner_kind == BufferOwner::kValue) == owned);
    if (owned) CHECK(recorded.owner == static_cast<std::uint32_t>(buffer.value));
    if (buffer.role != BufferRole::kWorkspace) continue;
    CHECK(recorded.owner == static_cast<std::uint32_t>(buffer.call));
    CHECK(plan.calls[recorded.owner].workspace == i);
  }
}

void check_sections(const Program& program, const PlanView& plan) {
  REQUIRE(plan.sections.size() == program.sections.size());
  std::uint32_t in_sections = 0;
  for (std::uint32_t i = 0; i < plan.sections.size(); ++i) {
    CHECK(plan.sections[i].begin == static_cast<std::uint32_t>(program.sections[i].begin));
    CHECK(plan.sections[i].end == static_cast<std::uint32_t>(program.sections[i].end));
    CHECK(plan.sections[i].tiles == static_cast<std::uint32_t>(program.sections[i].tiles));
    CHECK(std::ranges::count(plan.calls, i, &PlanCall::section) ==
          plan.sections[i].end - plan.sections[i].begin);
    in_sections += plan.sections[i].end - plan.sections[i].begin;
  }
  CHECK(std::ranges::count(plan.calls, kNoRow, &PlanCall::section) + in_sections ==
        std::ssize(plan.calls));
}

// The producer of a buffer that starts as a node's value is the first call that writes to it; where
// the owner is alone in it, the owner's node.
void check_producers(const PlanView& plan) {
  std::vector<const PlanCall*> writers(plan.buffers.size(), nullptr);
  for (const PlanCall& call : plan.calls) {
    for (const PlanOperand& output : rows_of(plan.operands, call.outputs)) {
      if (output.buffer == kNoRow || writers[output.buffer] != nullptr) continue;
      writers[output.buffer] = &call;
    }
  }
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    CAPTURE(plan.text(buffer.label));
    if (buffer.owner_kind == BufferOwner::kCall) {
      CHECK(plan.text(buffer.producer) == plan.name_of(plan.calls[buffer.owner]));
    }
    if (buffer.owner_kind != BufferOwner::kValue) continue;
    const auto values = rows_of(plan.members, buffer.values);
    const bool of_nodes = std::ranges::all_of(values, [&plan](std::uint32_t value) {
      return plan.values[value].kind == PlanValueKind::kNode;
    });
    if (!of_nodes) continue;
    REQUIRE(writers[i] != nullptr);
    CHECK(plan.text(buffer.producer) == plan.name_of(*writers[i]));
    if (values.size() > 1) continue;
    const std::uint32_t node = plan.values[buffer.owner].producer;
    REQUIRE(node != kNoRow);
    CHECK(plan.text(buffer.producer) == plan.text(plan.nodes[node].name));
  }
}

void check_facts(const Program& program, const PlanView& plan) {
  const PlanFacts& facts = plan.facts();
  CHECK(facts.times == static_cast<std::uint32_t>(program.times));
  CHECK(facts.update_begin == static_cast<std::uint32_t>(program.update_time));
  CHECK(facts.update_call == static_cast<std::uint32_t>(program.update_begin));
  CHECK(facts.threads == static_cast<std::uint32_t>(program.threads));
  CHECK(facts.persistent_bytes == program.persistent_bytes);
  CHECK(facts.workspace_bytes == program.workspace_bytes);
  CHECK(plan.text(facts.device) == program.device->facts().name);
  REQUIRE(plan.spaces.size() == program.spaces.size());
  for (const Space space : {Space::kDevice, Space::kHost}) {
    const SpacePlan& planned = program.space(space);
    const PlanSpace& recorded = plan.spaces[static_cast<std::size_t>(space)];
    CHECK((recorded.kind == PlanSpaceKind::kHost) == (space == Space::kHost));
    CHECK(plan.text(recorded.name) == program.device->space(space).name);
    CHECK(recorded.bytes == planned.bytes);
    CHECK(recorded.lower_bound_bytes == planned.lower_bound_bytes);
    CHECK(recorded.alignment_bytes == planned.alignment_bytes);
    CHECK((recorded.proven != 0) == planned.proven);
    CHECK(plan.text(recorded.method) == planned.method);
  }
  CHECK(ids_are(plan.inputs, program.graph.inputs));
  CHECK(ids_are(plan.outputs, program.graph.outputs));
}

void check_bodies(const Program& program, const PlanView& plan) {
  std::size_t bodies = 0;
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const CallBody* body = program.calls[i].body.get();
    CHECK((plan.calls[i].body == kNoRow) == (body == nullptr));
    if (body == nullptr) continue;
    ++bodies;
    const PlanBody& recorded = plan.bodies[plan.calls[i].body];
    CHECK(static_cast<std::int32_t>(recorded.trips_input) == body->trips.trips_input);
    const auto carried = rows_of(plan.carried, recorded.carried);
    REQUIRE(carried.size() == body->trips.carried.size());
    for (std::size_t k = 0; k < carried.size(); ++k) {
      CHECK(carried[k].from == static_cast<std::uint32_t>(body->trips.carried[k].from));
      CHECK(carried[k].to == static_cast<std::uint32_t>(body->trips.carried[k].to));
    }
    check_record_of(*body->program, plan.body_plans[plan.calls[i].body]);
  }
  CHECK(plan.bodies.size() == bodies);
}

}  // namespace

void check_record_of(const Program& program, const PlanView& plan) {
  check_facts(program, plan);
  check_values(program, plan);
  check_calls(program, plan);
  check_buffers(program, plan);
  check_producers(plan);
  check_sections(program, plan);
  check_bodies(program, plan);
}

}  // namespace trainscope::test
