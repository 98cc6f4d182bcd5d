// A plan's record as JSON.
#include "engine/bundle/plan_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace trainscope {
namespace {

// kNoRow as null.
Json position(std::uint32_t row) { return row == kNoRow ? Json() : Json(row); }

// -1 as null.
Json known(std::int64_t number) { return number < 0 ? Json() : Json(number); }

Json texts(const PlanView& plan, std::span<const TextId> ids) {
  Json list = Json::array();
  for (const TextId id : ids) list.push_back(plan.text(id));
  return list;
}

// Without optional ones that are left out.
Json operand_names(const PlanView& plan, RowRange range) {
  Json list = Json::array();
  for (const PlanOperand& operand : rows_of(plan.operands, range)) {
    if (operand.value == kNoRow) continue;
    list.push_back(plan.text(plan.values[operand.value].name));
  }
  return list;
}

// Where each lies and what of its value it is; null: an optional one that is left out.
Json operands(const PlanView& plan, RowRange range) {
  Json list = Json::array();
  for (const PlanOperand& operand : rows_of(plan.operands, range)) {
    if (operand.value == kNoRow) {
      list.push_back(Json());
      continue;
    }
    Json row = Json::object({{"value", operand.value},
                             {"buffer", position(operand.buffer)},
                             {"offset", operand.offset},
                             {"slice", name_of(operand.slice)}});
    if (operand.dtype != 0) {
      row.set("dtype", plan.text(operand.dtype));
      row.set("shape", Json::list(rows_of(plan.dims, operand.shape)));
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json other_kernels(const PlanView& plan, std::span<const PlanOtherKernel> others) {
  Json list = Json::array();
  for (const PlanOtherKernel& other : others) {
    list.push_back(
        Json::object({{"kernel", plan.text(other.kernel)}, {"reason", plan.text(other.reason)}}));
  }
  return list;
}

Json call_row(const PlanView& plan, std::size_t id) {
  const PlanCall& call = plan.calls[id];
  const PlanBuffer* workspace = call.workspace == kNoRow ? nullptr : &plan.buffers[call.workspace];
  Json row = Json::object({{"id", id},
                           {"kind", name_of(call.kind)},
                           {"node", call.node == kNoRow ? Json() : Json(plan.name_of(call))},
                           {"node_id", position(call.node)},
                           {"serial", call.node == kNoRow ? 0 : plan.nodes[call.node].serial},
                           {"op", plan.op_of(call)},
                           {"op_class", name_of(plan.class_of(call))},
                           {"phase", name_of(call.phase)},
                           {"time", call.time},
                           {"kernel", plan.text(call.kernel)},
                           {"refused", other_kernels(plan, plan.kernels_before(call))},
                           {"behind", other_kernels(plan, plan.kernels_behind(call))},
                           {"dtype", plan.text(call.dtype)},
                           {"inputs", operand_names(plan, call.inputs)},
                           {"outputs", operand_names(plan, call.outputs)},
                           {"flops", call.flops},
                           {"bytes_read", call.bytes_read},
                           {"bytes_written", call.bytes_written},
                           {"kernel_flops", known(call.kernel_flops)},
                           {"kernel_bytes_read", known(call.kernel_bytes_read)},
                           {"kernel_bytes_written", known(call.kernel_bytes_written)},
                           {"reads", operands(plan, call.inputs)},
                           {"writes", operands(plan, call.outputs)},
                           {"workspace", position(call.workspace)},
                           {"workspace_bytes", workspace == nullptr ? 0 : workspace->bytes},
                           {"workspace_offset", workspace == nullptr ? 0 : workspace->offset},
                           {"stream", call.stream},
                           {"waits", Json::list(rows_of(plan.waits, call.waits))},
                           {"sources", texts(plan, plan.sources_of(call))}});
  const std::uint32_t first =
      call.node == kNoRow ? kNoRow : plan.nodes[call.node].rematerialized_of;
  if (first != kNoRow) row.set("rematerialized_of", first);
  if (call.body != kNoRow) row.set("body", call.body);
  if (call.section != kNoRow) row.set("section", call.section);
  if (call.tile != kNoRow) {
    row.set("tile", call.tile);
    row.set("tile_workspace_offset", call.workspace_offset);
    row.set("tile_workspace_bytes", known(call.workspace_bytes));
  }
  return row;
}

Json value_row(const PlanView& plan, std::size_t id) {
  const PlanValue& value = plan.values[id];
  Json row = Json::object({{"id", id},
                           {"serial", value.serial},
                           {"name", plan.text(value.name)},
                           {"kind", name_of(value.kind)},
                           {"dtype", plan.text(value.dtype)},
                           {"shape", Json::list(rows_of(plan.dims, value.shape))},
                           {"bytes", value.bytes},
                           {"buffer", position(value.buffer)},
                           {"offset", value.offset},
                           {"producer", position(value.producer)}});
  if (value.view_of != kNoRow) row.set("view_of", value.view_of);
  if (value.gradient_of != kNoRow) row.set("gradient_of", value.gradient_of);
  return row;
}

// What earlier programs call a buffer's kind.
std::string_view kind_of(BufferClass holds) {
  switch (holds) {
    case BufferClass::kParameter:
    case BufferClass::kState:
    case BufferClass::kConstant:
      return "persistent";
    case BufferClass::kActivation:
    case BufferClass::kGradient:
    case BufferClass::kUpdate:
      return "value";
    case BufferClass::kInput:
    case BufferClass::kWorkspace:
    case BufferClass::kHeld:
      break;
  }
  return name_of(holds);
}

Json owner_of(const PlanBuffer& buffer) {
  if (buffer.owner_kind == BufferOwner::kNone) return {};
  const char* kind = buffer.owner_kind == BufferOwner::kValue ? "value" : "call";
  return Json::object({{kind, buffer.owner}});
}

Json buffer_row(const PlanView& plan, std::size_t id) {
  const PlanBuffer& buffer = plan.buffers[id];
  Json values = Json::array();
  Json slices = Json::array();
  for (const std::uint32_t v : rows_of(plan.members, buffer.values)) {
    const PlanValue& value = plan.values[v];
    values.push_back(plan.text(value.name));
    const bool is_whole = value.offset == 0 && value.bytes == buffer.bytes;
    if (buffer.external != 0 || is_whole) continue;
    slices.push_back(Json::object({{"value", plan.text(value.name)},
                                   {"offset", buffer.offset + value.offset},
                                   {"bytes", value.bytes}}));
  }
  Json row = Json::object({{"id", id},
                           {"name", plan.text(buffer.label)},
                           {"kind", kind_of(buffer.holds)},
                           {"class", name_of(buffer.holds)},
                           {"owner", owner_of(buffer)},
                           {"offset", buffer.offset},
                           {"bytes", buffer.bytes},
                           {"birth", buffer.begin},
                           {"death", buffer.end},
                           {"producer", plan.text(buffer.producer)},
                           {"values", std::move(values)},
                           {"slices", std::move(slices)}});
  if (buffer.external != 0) row.set("external", true);
  return row;
}

// One more member, a line for each row; those that are null are left out.
template <typename RowOf>
void add_rows(std::string_view key, std::size_t count, std::string& text, RowOf row_of) {
  text += fmt::format(",\n  \"{}\": [", key);
  const char* separator = "\n    ";
  for (std::size_t i = 0; i < count; ++i) {
    const Json row = row_of(i);
    if (row.is_null()) continue;
    text += separator;
    text += row.dump();
    separator = ",\n    ";
  }
  text += text.back() == '[' ? "]" : "\n  ]";
}

Json space_row(const PlanView& plan, const PlanSpace& space) {
  return Json::object({{"kind", name_of(space.kind)},
                       {"name", plan.text(space.name)},
                       {"bytes", space.bytes},
                       {"lower_bound_bytes", space.lower_bound_bytes},
                       {"proven", space.proven != 0},
                       {"method", plan.text(space.method)},
                       {"alignment_bytes", space.alignment_bytes}});
}

// Bodies have plans of their own, as deep as they are nested.
Json body_row(const PlanView& plan, std::size_t id) {
  const PlanBody& body = plan.bodies[id];
  Json carried = Json::array();
  for (const PlanCarried& pair : rows_of(plan.carried, body.carried)) {
    carried.push_back(Json::object({{"from", pair.from}, {"to", pair.to}}));
  }
  return Json::object({{"id", id},
                       {"trips_input", position(body.trips_input)},
                       {"carried", std::move(carried)},
                       {"plan", Json::parse(plan_json(plan.body_plans[id]))}});
}

std::size_t device_buffers(const PlanView& plan) {
  return static_cast<std::size_t>(
      std::ranges::count(plan.buffers, PlanSpaceKind::kDevice, &PlanBuffer::space));
}

}  // namespace

Json recompute_json(const PlanRecompute& row) {
  const auto overhead = [&row](double seconds) {
    return std::max(0.0, seconds / row.plain_seconds - 1.0);
  };
  Json json = Json::object();
  if (row.repeats >= 0) {
    json = Json::object({{"repeats", row.repeats},
                         {"plain_bytes", row.plain_bytes},
                         {"plain_seconds", row.plain_seconds},
                         {"seconds", row.seconds},
                         {"overhead", overhead(row.seconds)},
                         {"offloaded_bytes", row.offloaded_bytes}});
  }
  if (row.budget_bytes >= 0) json.set("budget_bytes", row.budget_bytes);
  if (row.bound_seconds > 0) {
    json.set("bound_overhead", overhead(row.bound_seconds));
    json.set("bound_bytes", row.bound_bytes);
  }
  return json;
}

Json plan_sizes(const PlanView& plan) {
  const PlanFacts& facts = plan.facts();
  const PlanSpace& arena = plan.arena();
  Json json = Json::object({{"arena_bytes", arena.bytes},
                            {"host_arena_bytes", plan.space(PlanSpaceKind::kHost).bytes},
                            {"lower_bound_bytes", arena.lower_bound_bytes},
                            {"gap_bytes", arena.bytes - arena.lower_bound_bytes},
                            {"proven", arena.proven != 0},
                            {"method", plan.text(arena.method)},
                            {"persistent_bytes", facts.persistent_bytes},
                            {"workspace_bytes", facts.workspace_bytes},
                            {"alignment_bytes", arena.alignment_bytes},
                            {"buffer_count", device_buffers(plan)},
                            {"call_count", plan.calls.size()},
                            {"instruction_count", facts.times},
                            {"update_begin", facts.update_begin},
                            {"update_call", facts.update_call},
                            {"threads", facts.threads}});
  if (!plan.recompute.empty()) json.set("recompute", recompute_json(plan.recompute[0]));
  return json;
}

std::string plan_json(const PlanView& plan) {
  std::string text = plan_sizes(plan).dump(2);
  text.resize(text.size() - std::string_view("\n}").size());  // more members follow
  text += fmt::format(",\n  \"device\": {},\n  \"inputs\": {},\n  \"outputs\": {}",
                      Json(plan.text(plan.facts().device)).dump(), Json::list(plan.inputs).dump(),
                      Json::list(plan.outputs).dump());
  add_rows("spaces", plan.spaces.size(), text,
           [&plan](std::size_t i) { return space_row(plan, plan.spaces[i]); });
  add_rows("bodies", plan.bodies.size(), text,
           [&plan](std::size_t id) { return body_row(plan, id); });
  add_rows("sections", plan.sections.size(), text, [&plan](std::size_t i) {
    const PlanSection& section = plan.sections[i];
    return Json::object({{"begin", section.begin}, {"end", section.end}, {"tiles", section.tiles}});
  });
  add_rows("calls", plan.calls.size(), text,
           [&plan](std::size_t id) { return call_row(plan, id); });
  add_rows("values", plan.values.size(), text, [&plan](std::size_t id) {
    return plan.values[id].kind == PlanValueKind::kErased ? Json() : value_row(plan, id);
  });
  const auto add_buffers = [&](std::string_view key, PlanSpaceKind space) {
    add_rows(key, plan.buffers.size(), text, [&plan, space](std::size_t id) {
      return plan.buffers[id].space == space ? buffer_row(plan, id) : Json();
    });
  };
  add_buffers("buffers", PlanSpaceKind::kDevice);
  add_buffers("host_buffers", PlanSpaceKind::kHost);
  return text + "\n}\n";
}

}  // namespace trainscope
