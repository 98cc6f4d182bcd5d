// plan.json of runs of format 1 as a record: what it says of calls and buffers, nothing of kernels.
//
// Its `instructions` have one entry for all batch tiles of a node, which is one call here. So there
// are no tiled sections: of its `chains` only the times are known, not the calls of each tile.
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/bundle/plan_json.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::uint32_t count_of(std::size_t size) {
  require(size < kNoRow, ErrorCode::kBadInput, "the plan has too many rows");
  return static_cast<std::uint32_t>(size);
}

class Reading {
 public:
  explicit Reading(const Json& plan) : plan_(plan) {}

  PlanRecord run() {
    facts();
    add_calls();
    for (const Json& row : plan_.array_at("buffers")) add_buffer(row, PlanSpaceKind::kDevice);
    if (plan_.contains("host_buffers")) {  // of older runs: absent
      for (const Json& row : plan_.array_at("host_buffers")) add_buffer(row, PlanSpaceKind::kHost);
    }
    add_workspaces();
    if (const Json* recompute = plan_.find("recompute")) add_recompute(*recompute);
    const std::string fault = find_fault(view_of(record_));
    require(fault.empty(), ErrorCode::kBadInput, "{}", fault);
    return std::move(record_);
  }

 private:
  void facts() {
    const auto alignment_bytes = plan_.get<std::int64_t>("alignment_bytes");
    record_.spaces = {{.bytes = plan_.get<std::int64_t>("arena_bytes"),
                       .lower_bound_bytes = plan_.get<std::int64_t>("lower_bound_bytes"),
                       .alignment_bytes = alignment_bytes,
                       .method = record_.texts.id(plan_.get<std::string>("method")),
                       .proven = plan_.get<bool>("proven") ? std::uint8_t{1} : std::uint8_t{0}},
                      {.bytes = plan_.get_or<std::int64_t>("host_arena_bytes", 0),
                       .alignment_bytes = alignment_bytes,
                       .kind = PlanSpaceKind::kHost}};
    record_.facts = {
        .persistent_bytes = plan_.get<std::int64_t>("persistent_bytes"),
        .workspace_bytes = plan_.get<std::int64_t>("workspace_bytes"),
        .times = count_of(plan_.array_at("instructions").size()),
        .update_begin = plan_.get<std::uint32_t>("update_begin"),
        .threads = plan_.get<std::uint32_t>("threads"),
    };
  }

  void add_recompute(const Json& row) {
    PlanRecompute recompute{.repeats = row.get_or<std::int64_t>("repeats", -1),
                            .plain_bytes = row.get_or<std::int64_t>("plain_bytes", -1),
                            .offloaded_bytes = row.get_or<std::int64_t>("offloaded_bytes", 0),
                            .budget_bytes = row.get_or<std::int64_t>("budget_bytes", -1),
                            .bound_bytes = row.get_or<std::int64_t>("bound_bytes", -1)};
    if (row.contains("plain_seconds")) {
      recompute.plain_seconds = row.get<double>("plain_seconds");
      recompute.seconds = row.get<double>("seconds");
    }
    if (row.contains("bound_overhead")) {
      recompute.bound_seconds = recompute.plain_seconds * (1.0 + row.get<double>("bound_overhead"));
    }
    record_.recompute.push_back(recompute);
  }

  PlanPhase phase(const Json& row) const {
    const auto text = row.get<std::string>("phase");
    for (const PlanPhase phase : {PlanPhase::kForward, PlanPhase::kBackward, PlanPhase::kUpdate}) {
      if (text == name_of(phase)) return phase;
    }
    fail(ErrorCode::kBadInput, "key 'phase': unknown phase '{}'", printable(text, 40));
  }

  std::uint32_t value(const std::string& name) {
    const auto [known, is_new] = values_.try_emplace(name, count_of(record_.values.size()));
    if (is_new) {
      record_.values.push_back({.name = record_.texts.id(name), .kind = PlanValueKind::kNode});
    }
    return known->second;
  }

  // In the order in which they ran: copies of the forward and backward phase before the update.
  void add_calls() {
    bool in_update = false;
    const auto begin_update = [this, &in_update] {
      in_update = true;
      for (const PlanPhase phase : {PlanPhase::kForward, PlanPhase::kBackward}) add_copies(phase);
      record_.facts.update_call = count_of(record_.calls.size());
    };
    for (const Json& row : plan_.array_at("instructions")) {
      if (!in_update && record_.nodes.size() == record_.facts.update_begin) begin_update();
      add_call(row);
    }
    if (!in_update) begin_update();
    add_copies(PlanPhase::kUpdate);
  }

  PlanOperand operand(const std::string& name) { return {.value = value(name)}; }

  // States whose new value is copied to them after the phase.
  void add_copies(PlanPhase of) {
    if (!plan_.contains("copies")) return;  // of older runs
    for (const Json& row : plan_.array_at("copies")) {
      if (phase(row) != of) continue;
      const std::uint32_t begin = count_of(record_.operands.size());
      record_.operands.push_back(operand(row.get<std::string>("from")));
      record_.operands.push_back(operand(row.get<std::string>("to")));
      record_.calls.push_back({.kind = PlanCallKind::kStateCopy,
                               .phase = of,
                               .inputs = {.begin = begin, .count = 1},
                               .outputs = {.begin = begin + 1, .count = 1},
                               .time = record_.calls.empty() ? 0U : record_.calls.back().time});
    }
  }

  // Nodes and times are one to one.
  void add_call(const Json& row) {
    const std::uint32_t id = count_of(record_.nodes.size());
    PlanNode node{.name = record_.texts.id(row.get<std::string>("node")),
                  .op = record_.texts.id(row.get<std::string>("op")),
                  .sources = {.begin = count_of(record_.names.size())},
                  .phase = phase(row)};
    for (const Json& source : row.array_at("sources")) {
      record_.names.push_back(record_.texts.id(source.as_string()));
      ++node.sources.count;
    }
    PlanCall call{.phase = node.phase,
                  .node = id,
                  .outputs = {.begin = count_of(record_.operands.size())},
                  .time = id};
    for (const Json& output : row.array_at("outputs")) {
      record_.operands.push_back(operand(output.as_string()));
      ++call.outputs.count;
    }
    workspaces_.push_back({.call = count_of(record_.calls.size()),
                           .offset = row.get_or<std::int64_t>("workspace_offset", 0),
                           .bytes = row.get_or<std::int64_t>("workspace_bytes", 0)});
    record_.nodes.push_back(node);
    record_.calls.push_back(call);
  }

  // Format 1 does not tell gradients from activations.
  static BufferClass class_of(const std::string& kind, const std::string& producer) {
    if (kind == "persistent") {
      if (producer == "parameter") return BufferClass::kParameter;
      return producer == "state" ? BufferClass::kState : BufferClass::kConstant;
    }
    for (const BufferClass holds :
         {BufferClass::kInput, BufferClass::kWorkspace, BufferClass::kHeld}) {
      if (kind == name_of(holds)) return holds;
    }
    require(kind == "value", ErrorCode::kBadInput, "key 'kind': unknown kind '{}'",
            printable(kind, 40));
    return BufferClass::kActivation;
  }

  void add_buffer(const Json& row, PlanSpaceKind space) {
    const auto producer = row.get<std::string>("producer");
    PlanBuffer buffer{.holds = class_of(row.get<std::string>("kind"), producer),
                      .space = space,
                      .label = record_.texts.id(row.get<std::string>("name")),
                      .producer = record_.texts.id(producer),
                      .begin = row.get<std::uint32_t>("birth"),
                      .end = row.get<std::uint32_t>("death"),
                      .offset = row.get<std::int64_t>("offset"),
                      .bytes = row.get<std::int64_t>("bytes")};
    buffer.values.begin = count_of(record_.members.size());
    for (const Json& name : row.array_at("values")) add_member(name.as_string(), buffer);
    for (const Json& part : row.array_at("parts")) place_part(part, buffer);
    record_.buffers.push_back(buffer);
  }

  void add_member(const std::string& name, PlanBuffer& buffer) {
    const std::uint32_t id = value(name);
    if (buffer.owner_kind == BufferOwner::kNone) {
      buffer.owner_kind = BufferOwner::kValue;
      buffer.owner = id;
    }
    record_.values[id].buffer = count_of(record_.buffers.size());
    record_.values[id].bytes = buffer.bytes;
    record_.members.push_back(id);
    ++buffer.values.count;
  }

  // A call's workspace is the one in its place that is alive at its time. It begins with the call,
  // in a tiled section with the section.
  void add_workspaces() {
    std::map<std::tuple<std::int64_t, std::int64_t, std::uint32_t>, std::uint32_t> by_place;
    for (std::size_t i = 0; i < record_.buffers.size(); ++i) {
      const PlanBuffer& buffer = record_.buffers[i];
      if (buffer.holds != BufferClass::kWorkspace || buffer.space != PlanSpaceKind::kDevice)
        continue;
      by_place[{buffer.offset, buffer.bytes, buffer.begin}] = count_of(i);
    }
    for (const Workspace& workspace : workspaces_) {
      if (workspace.bytes <= 0) continue;
      PlanCall& call = record_.calls[workspace.call];
      auto next = by_place.upper_bound({workspace.offset, workspace.bytes, call.time});
      if (next == by_place.begin()) continue;
      const std::uint32_t id = (--next)->second;
      PlanBuffer& buffer = record_.buffers[id];
      const bool is_there = buffer.offset == workspace.offset && buffer.bytes == workspace.bytes;
      if (!is_there || buffer.end <= call.time || buffer.owner_kind == BufferOwner::kCall) continue;
      call.workspace = id;
      call.workspace_bytes = buffer.bytes;
      buffer.owner_kind = BufferOwner::kCall;
      buffer.owner = workspace.call;
    }
  }

  void place_part(const Json& part, const PlanBuffer& buffer) {
    PlanValue& value_row = record_.values[value(part.get<std::string>("value"))];
    const auto offset = part.get<std::int64_t>("offset");
    const bool is_behind = buffer.offset >= 0 && offset >= buffer.offset;
    value_row.offset = is_behind ? offset - buffer.offset : -1;  // no place: find_fault says so
    value_row.bytes = part.get<std::int64_t>("bytes");
  }

  // What an instruction says of its call's workspace.
  struct Workspace {
    std::uint32_t call = 0;
    std::int64_t offset = 0;  // from the arena's begin
    std::int64_t bytes = 0;   // 0: it has none
  };

  const Json& plan_;
  PlanRecord record_;
  std::vector<Workspace> workspaces_;
  std::map<std::string, std::uint32_t, std::less<>> values_;
};

}  // namespace

PlanRecord plan_of_format_1(const Json& plan) { return Reading(plan).run(); }

}  // namespace trainscope
