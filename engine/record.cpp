// Engine values as records of a run's folder.
#include "engine/record.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/hash.h"
#include "engine/core/saturating.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

// What the record calls a buffer's contents: all that stays from step to step is one kind.
std::string_view kind_of(const PlannedBuffer& buffer) {
  if (buffer.role == BufferRole::kWorkspace || buffer.role == BufferRole::kHeld) {
    return name_of(buffer.role);
  }
  if (buffer.persistent) return "persistent";
  return buffer.role == BufferRole::kInput ? "input" : "value";
}

// The node that writes the buffer first, or what kind of value it starts as.
std::string producer_of(const Program& program, std::span<const CallId> calls,
                        const PlannedBuffer& buffer, const std::vector<ValueId>& values) {
  const Graph& graph = program.graph;
  for (ValueId v : values) {
    const ValueKind kind = graph.value(v).kind;
    if (kind != ValueKind::kNode) return std::string(name_of(kind));
  }
  if (buffer.call != kNoCall) return graph.node(program.call(buffer.call).node).name;
  const auto time = static_cast<std::size_t>(buffer.begin);
  return time < calls.size() ? graph.node(program.call(calls[time]).node).name : "";
}

Json buffer_record(const Program& program, std::span<const CallId> calls,
                   const PlannedBuffer& buffer, const std::vector<ValueId>& inside) {
  Json values = Json::array();
  Json parts = Json::array();
  for (ValueId v : inside) {
    const Value& value = program.graph.value(v);
    const auto bytes = static_cast<std::int64_t>(value.type.bytes());
    values.push_back(value.name);
    const bool is_whole = program.place(v).offset == 0 && bytes == buffer.bytes;
    if (buffer.external || is_whole) continue;
    parts.push_back(
        Json::object({{"value", value.name}, {"offset", program.offset_of(v)}, {"bytes", bytes}}));
  }
  return Json::object({{"name", buffer.label},
                       {"kind", kind_of(buffer)},
                       {"offset", buffer.offset},
                       {"bytes", buffer.bytes},
                       {"birth", buffer.begin},
                       {"death", buffer.end},
                       {"producer", producer_of(program, calls, buffer, inside)},
                       {"values", std::move(values)},
                       {"parts", std::move(parts)}});
}

Json buffers_record(const Program& program, Space space) {
  std::vector<std::vector<ValueId>> inside(program.buffers.size());
  for (std::size_t v = 0; v < program.values.size(); ++v) {
    const BufferId buffer = program.values[v].buffer;
    if (buffer != kNoBuffer) {
      inside[static_cast<std::size_t>(buffer)].push_back(ValueId(static_cast<std::int32_t>(v)));
    }
  }
  const std::vector<CallId> calls = calls_by_time(program);
  Json rows = Json::array();
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const PlannedBuffer& buffer = program.buffers[i];
    if (buffer.space == space) rows.push_back(buffer_record(program, calls, buffer, inside[i]));
  }
  return rows;
}

Json instruction_record(const Program& program, const Call& call) {
  const Node& node = program.graph.node(call.node);
  const bool has_workspace = call.workspace != kNoBuffer;
  Json outputs = Json::array();
  for (ValueId v : node.outputs) {
    if (v != kNoValue) outputs.push_back(program.graph.value(v).name);
  }
  return Json::object(
      {{"node", node.name},
       {"op", node.op->name},
       {"phase", name_of(node.phase)},
       {"outputs", std::move(outputs)},
       {"workspace_bytes", workspace_bytes_of(program, call)},
       {"workspace_offset", has_workspace ? program.buffer(call.workspace).offset : 0},
       {"sources", Json::list(node.provenance.sources)}});
}

Json copies_record(const Program& program) {
  Json copies = Json::array();
  for (const Call& call : program.calls) {
    if (call.kind != CallKind::kStateCopy) continue;
    copies.push_back(Json::object({{"from", program.graph.value(call.inputs[0].value).name},
                                   {"to", program.graph.value(call.outputs[0].value).name},
                                   {"phase", name_of(call.phase)}}));
  }
  return copies;
}

// By time; what adds up partials has no time of its own.
Json sections_record(const Program& program) {
  Json sections = Json::array();
  for (const TiledSection& section : program.sections) {
    if (program.call(section.begin).kind == CallKind::kAddPartials) continue;
    const auto last = static_cast<std::int32_t>(section.end) - 1;
    sections.push_back(Json::object({{"begin", program.call(section.begin).time},
                                     {"end", program.call(CallId(last)).time + 1}}));
  }
  return sections;
}

}  // namespace

StageRecord stage_record(const Stage& stage, const Stage* before) {
  const Stage& old = before == nullptr ? stage : *before;
  const auto bytes = [](const Cost& cost) {
    return saturating_add(cost.bytes_read, cost.bytes_written);
  };
  StageRecord record{.name = stage.name,
                     .file = {},
                     .nodes_before = old.nodes,
                     .nodes_after = stage.nodes,
                     .flops_before = old.cost.flops,
                     .flops_after = stage.cost.flops,
                     .bytes_before = bytes(old.cost),
                     .bytes_after = bytes(stage.cost),
                     .milliseconds = stage.milliseconds,
                     .changed = stage.changed,
                     .hash = hash_hex(stage.hash),
                     .counters = stage.counters,
                     .near_misses = {}};
  for (const NearMiss& miss : stage.near_misses) {
    record.near_misses.push_back({.node = miss.node, .reason = miss.reason});
  }
  return record;
}

Json plan_sizes(const Program& program) {
  const std::int64_t bound = program.arena.lower_bound_bytes;
  const auto in_device = [](const PlannedBuffer& buffer) { return buffer.space == Space::kDevice; };
  return Json::object({{"arena_bytes", program.arena.bytes},
                       {"host_arena_bytes", program.host.bytes},
                       {"lower_bound_bytes", bound},
                       {"gap_bytes", program.arena.bytes - bound},
                       {"proven", program.arena.proven},
                       {"method", program.arena.method},
                       {"persistent_bytes", program.persistent_bytes},
                       {"workspace_bytes", program.workspace_bytes},
                       {"alignment_bytes", program.arena.alignment_bytes},
                       {"buffer_count", std::ranges::count_if(program.buffers, in_device)},
                       {"instruction_count", program.times},
                       {"update_begin", program.update_time},
                       {"threads", program.threads}});
}

Json plan_record(const Program& program) {
  Json plan = plan_sizes(program);
  Json instructions = Json::array();
  for (const CallId id : calls_by_time(program)) {
    instructions.push_back(instruction_record(program, program.call(id)));
  }
  plan.set("copies", copies_record(program));
  plan.set("chains", sections_record(program));
  plan.set("instructions", std::move(instructions));
  plan.set("buffers", buffers_record(program, Space::kDevice));
  plan.set("host_buffers", buffers_record(program, Space::kHost));
  return plan;
}

Json recompute_record(const RecomputeSummary& summary) {
  const auto overhead = [&summary](double seconds) {
    return std::max(0.0, seconds / summary.plain_seconds - 1.0);
  };
  Json json = Json::object({{"repeats", summary.repeats},
                            {"plain_bytes", summary.plain_bytes},
                            {"plain_seconds", summary.plain_seconds},
                            {"seconds", summary.seconds},
                            {"overhead", overhead(summary.seconds)},
                            {"offloaded_bytes", summary.offloaded_bytes}});
  if (summary.budget_bytes) json.set("budget_bytes", *summary.budget_bytes);
  if (summary.bound_seconds > 0) {
    json.set("bound_overhead", overhead(summary.bound_seconds));
    json.set("bound_bytes", summary.bound_bytes);
  }
  return json;
}

}  // namespace trainscope
