// Rows of older versions, field by field.
#include "engine/bundle/plan_older_rows.h"

#include <array>
#include <span>

#include "engine/core/error.h"

namespace trainscope {
namespace {

struct Node3 {
  TextId name;
  TextId op;
  TextId pass;
  RowRange sources;
  PlanPhase phase;
  std::array<std::uint8_t, 3> reserved;
  std::uint32_t serial;
  std::uint32_t backward_of;
};

struct Facts1 {
  std::int64_t arena_bytes;
  std::int64_t host_arena_bytes;
  std::int64_t lower_bound_bytes;
  std::int64_t persistent_bytes;
  std::int64_t workspace_bytes;
  std::int64_t alignment_bytes;
  std::uint32_t times;
  std::uint32_t update_begin;
  std::uint32_t threads;
  std::uint32_t proven;
  TextId method;
  std::uint32_t update_call;
};

struct Operand1 {
  std::uint32_t value;
  std::uint32_t buffer;
  std::int64_t offset;
  PlanSlice slice;
  std::array<std::uint8_t, 7> reserved;
};

struct Call1 {
  PlanCallKind kind;
  PlanPhase phase;
  std::uint16_t stream;
  std::uint32_t node;
  TextId kernel;
  TextId dtype;
  RowRange inputs;
  RowRange outputs;
  RowRange waits;
  RowRange refused;
  std::uint32_t workspace;
  std::uint32_t tile;
  std::uint32_t section;
  std::uint32_t time;
  std::int64_t flops;
  std::int64_t bytes_read;
  std::int64_t bytes_written;
  std::int64_t workspace_offset;
};

static_assert(sizeof(Node3) == 32 && sizeof(Facts1) == 72 && sizeof(Operand1) == 24 &&
              sizeof(Call1) == 96);

void add_facts(const Facts1& row, TablesOfVersion1& tables) {
  tables.facts = {.persistent_bytes = row.persistent_bytes,
                  .workspace_bytes = row.workspace_bytes,
                  .times = row.times,
                  .update_begin = row.update_begin,
                  .threads = row.threads,
                  .update_call = row.update_call};
  tables.spaces = {{.bytes = row.arena_bytes,
                    .lower_bound_bytes = row.lower_bound_bytes,
                    .alignment_bytes = row.alignment_bytes,
                    .method = row.method,
                    .proven = static_cast<std::uint8_t>(row.proven)},
                   {.bytes = row.host_arena_bytes,
                    .alignment_bytes = row.alignment_bytes,
                    .kind = PlanSpaceKind::kHost}};
}

PlanOperand operand_of(const Operand1& row, std::span<const PlanValue> values) {
  PlanOperand operand{
      .value = row.value, .buffer = row.buffer, .offset = row.offset, .slice = row.slice};
  if (row.slice != PlanSlice::kWhole || row.value >= values.size()) return operand;
  operand.dtype = values[row.value].dtype;
  operand.shape = values[row.value].shape;
  return operand;
}

PlanCall call_of(const Call1& row) {
  return {.kind = row.kind,
          .phase = row.phase,
          .stream = row.stream,
          .node = row.node,
          .kernel = row.kernel,
          .dtype = row.dtype,
          .inputs = row.inputs,
          .outputs = row.outputs,
          .waits = row.waits,
          .other_kernels = row.refused,
          .workspace = row.workspace,
          .tile = row.tile,
          .section = row.section,
          .time = row.time,
          .flops = row.flops,
          .bytes_read = row.bytes_read,
          .bytes_written = row.bytes_written,
          .workspace_offset = row.workspace_offset};
}

// Of a batch tile it is not known.
std::int64_t workspace_bytes_of(const PlanCall& call, std::span<const PlanBuffer> buffers) {
  if (call.workspace == kNoRow) return 0;
  const bool known = call.tile == kNoRow && call.workspace < buffers.size();
  return known ? buffers[call.workspace].bytes : -1;
}

}  // namespace

std::vector<PlanNode> nodes_of_older_version(const SectionTable& sections) {
  std::vector<PlanNode> nodes;
  for (const Node3& row : sections.rows<Node3>(9)) {
    nodes.push_back({.name = row.name,
                     .op = row.op,
                     .pass = row.pass,
                     .sources = row.sources,
                     .phase = row.phase,
                     .serial = row.serial,
                     .backward_of = row.backward_of});
  }
  return nodes;
}

TablesOfVersion1 tables_of_version_1(const SectionTable& sections) {
  TablesOfVersion1 tables;
  const auto facts = sections.rows<Facts1>(1);
  require(facts.size() == 1, ErrorCode::kBadInput, "there is not one row of sizes");
  require(facts[0].proven <= 1, ErrorCode::kBadInput, "the proof is neither there nor not");
  add_facts(facts[0], tables);
  const auto values = sections.rows<PlanValue>(6);
  tables.values.assign(values.begin(), values.end());
  for (PlanValue& value : tables.values) value.view_of = kNoRow;
  for (const Operand1& row : sections.rows<Operand1>(11)) {
    tables.operands.push_back(operand_of(row, tables.values));
  }
  const auto buffers = sections.rows<PlanBuffer>(7);
  for (const Call1& row : sections.rows<Call1>(10)) {
    PlanCall& call = tables.calls.emplace_back(call_of(row));
    call.workspace_bytes = workspace_bytes_of(call, buffers);
  }
  return tables;
}

}  // namespace trainscope
