// Engine values as records of a run's folder.
#include "engine/record.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/hash.h"
#include "engine/core/saturating.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

constexpr std::string_view kWorkspace = "workspace";
constexpr std::string_view kHeld = "held";

bool is_persistent(ValueKind kind) {
  return kind == ValueKind::kParameter || kind == ValueKind::kState || kind == ValueKind::kConstant;
}

// What shares the bytes of one buffer.
struct Contents {
  std::vector<ValueId> values;
  std::string_view kind = kHeld;  // "persistent", "input", "value", "workspace"
  NodeId workspace_of = kNoNode;
};

std::string_view kind_of_values(const Graph& graph, const std::vector<ValueId>& values) {
  const auto any = [&](auto wanted) {
    return std::ranges::any_of(values, [&](ValueId v) { return wanted(graph.value(v).kind); });
  };
  if (any(is_persistent)) return "persistent";
  return any([](ValueKind kind) { return kind == ValueKind::kInput; }) ? "input" : "value";
}

std::vector<Contents> contents_of_buffers(const Program& program, bool host) {
  const memplan::Problem& problem = host ? program.host.problem : program.problem;
  std::vector<Contents> contents(problem.buffers.size());
  for (std::size_t v = 0; v < program.placements.size(); ++v) {
    const std::int32_t buffer = program.placements[v].buffer;
    if (buffer < 0 || program.placements[v].host != host) continue;
    contents[static_cast<std::size_t>(buffer)].values.push_back(static_cast<ValueId>(v));
  }
  for (std::size_t i = 0; i < contents.size(); ++i) {
    Contents& one = contents[i];
    if (!one.values.empty()) one.kind = kind_of_values(program.graph, one.values);
  }
  if (host) return contents;
  auto workspace = std::ranges::find_if(contents, &std::vector<ValueId>::empty, &Contents::values);
  for (const Instruction& instruction : program.instructions) {
    if (instruction.prepared.workspace_bytes == 0) continue;
    workspace->kind = kWorkspace;
    workspace->workspace_of = instruction.node;
    ++workspace;
  }
  return contents;
}

// The node that writes the buffer first, or what kind of value it starts as.
std::string producer_of(const Program& program, const Contents& contents,
                        const memplan::Buffer& buffer) {
  const Graph& graph = program.graph;
  for (ValueId v : contents.values) {
    const ValueKind kind = graph.value(v).kind;
    if (kind != ValueKind::kNode) return std::string(name_of(kind));
  }
  if (contents.workspace_of != kNoNode) return graph.node(contents.workspace_of).name;
  const auto instruction = static_cast<std::size_t>(buffer.lower);
  if (instruction >= program.instructions.size()) return {};
  return graph.node(program.instructions[instruction].node).name;
}

Json buffer_record(const Program& program, const memplan::Buffer& buffer, std::int64_t offset,
                   const Contents& contents) {
  Json values = Json::array();
  Json parts = Json::array();
  for (ValueId v : contents.values) {
    const Value& value = program.graph.value(v);
    const Placement& placement = program.placements[static_cast<std::size_t>(v)];
    const auto bytes = static_cast<std::int64_t>(value.type.bytes());
    values.push_back(value.name);
    if (placement.external || (placement.offset == offset && bytes == buffer.size_bytes)) continue;
    parts.push_back(
        Json::object({{"value", value.name}, {"offset", placement.offset}, {"bytes", bytes}}));
  }
  return Json::object({{"name", buffer.id},
                       {"kind", contents.kind},
                       {"offset", offset},
                       {"bytes", buffer.size_bytes},
                       {"birth", buffer.lower},
                       {"death", buffer.upper},
                       {"producer", producer_of(program, contents, buffer)},
                       {"values", std::move(values)},
                       {"parts", std::move(parts)}});
}

Json buffers_record(const Program& program, bool host) {
  const memplan::Problem& problem = host ? program.host.problem : program.problem;
  const memplan::Solution& solution = host ? program.host.solution : program.solution;
  const std::vector<Contents> contents = contents_of_buffers(program, host);
  Json rows = Json::array();
  for (std::size_t i = 0; i < contents.size(); ++i) {
    rows.push_back(buffer_record(program, problem.buffers[i], solution.offsets[i], contents[i]));
  }
  return rows;
}

Json instruction_record(const Program& program, const Instruction& instruction) {
  const Node& node = program.graph.node(instruction.node);
  Json outputs = Json::array();
  for (ValueId v : node.outputs) {
    if (v != kNoValue) outputs.push_back(program.graph.value(v).name);
  }
  return Json::object({{"node", node.name},
                       {"op", node.op->name},
                       {"phase", name_of(node.phase)},
                       {"outputs", std::move(outputs)},
                       {"workspace_bytes", instruction.prepared.workspace_bytes},
                       {"workspace_offset", instruction.workspace_offset},
                       {"sources", Json::list(node.provenance.sources)}});
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
  const std::int64_t bound = program.solution.lower_bound_bytes;
  return Json::object({{"arena_bytes", program.arena_bytes},
                       {"host_arena_bytes", program.host.bytes},
                       {"lower_bound_bytes", bound},
                       {"gap_bytes", program.arena_bytes - bound},
                       {"proven", program.solution.proven},
                       {"method", program.solution.method},
                       {"persistent_bytes", program.persistent_bytes},
                       {"workspace_bytes", program.workspace_bytes},
                       {"alignment_bytes", program.problem.alignment_bytes},
                       {"buffer_count", program.problem.buffers.size()},
                       {"instruction_count", program.instructions.size()},
                       {"update_begin", program.update_begin},
                       {"threads", program.threads}});
}

Json plan_record(const Program& program) {
  Json plan = plan_sizes(program);
  Json instructions = Json::array();
  for (const Instruction& instruction : program.instructions) {
    instructions.push_back(instruction_record(program, instruction));
  }
  Json copies = Json::array();
  for (const StateCopy& copy : program.copies) {
    copies.push_back(Json::object({{"from", program.graph.value(copy.from).name},
                                   {"to", program.graph.value(copy.to).name},
                                   {"phase", name_of(copy.phase)}}));
  }
  Json sections = Json::array();
  for (const TiledSection& section : program.sections) {
    sections.push_back(Json::object({{"begin", section.begin}, {"end", section.end}}));
  }
  plan.set("copies", std::move(copies));
  plan.set("chains", std::move(sections));
  plan.set("instructions", std::move(instructions));
  plan.set("buffers", buffers_record(program, false));
  plan.set("host_buffers", buffers_record(program, true));
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
