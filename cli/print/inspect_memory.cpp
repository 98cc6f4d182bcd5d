// `inspect --memory`: which buffers are alive at a call of the step.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "cli/print/inspect.h"
#include "engine/bundle/plan_moment.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

Json facts_of(const PlanView& plan, const PlanBuffer& buffer) {
  return Json::object({{"id", &buffer - plan.buffers.data()},
                       {"name", plan.text(buffer.label)},
                       {"class", name_of(buffer.holds)},
                       {"offset", buffer.offset},
                       {"bytes", buffer.bytes},
                       {"birth", buffer.begin},
                       {"death", buffer.end},
                       {"calls", static_cast<std::int64_t>(buffer.end) - buffer.begin},
                       {"producer", plan.text(buffer.producer)}});
}

Json by_class_json(const PlanView& plan, std::span<const std::uint32_t> alive) {
  const auto bytes = bytes_by_class(plan, alive);
  Json json = Json::object();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    json.set(std::string(name_of(static_cast<BufferClass>(i))), bytes[i]);
  }
  return json;
}

Json gaps_json(const PlanView& plan, std::uint32_t time) {
  Json gaps = Json::array();
  for (const PlanGap& gap : gaps_at(plan, time)) {
    gaps.push_back(Json::object({{"offset", gap.offset},
                                 {"bytes", gap.bytes},
                                 {"from", gap.begin},
                                 {"to", gap.end},
                                 {"calls", gap.calls()}}));
  }
  return gaps;
}

// Of the whole step: what waits for its next use, the most bytes times calls first.
Json idle_json(const PlanView& plan) {
  Json idle = Json::array();
  for (const IdleWait& wait : idle_waits(plan)) {
    const PlanBuffer& buffer = plan.buffers[wait.buffer];
    idle.push_back(Json::object({{"id", wait.buffer},
                                 {"name", plan.text(buffer.label)},
                                 {"bytes", buffer.bytes},
                                 {"from", wait.from},
                                 {"to", wait.to},
                                 {"calls", wait.calls()},
                                 {"byte_calls", wait.byte_calls}}));
  }
  return idle;
}

// Null without a profile; the bytes that were bound are null in one of an earlier version.
Json measured_json(const profiler::MeasuredMemory* measured, std::uint32_t time) {
  if (measured == nullptr) return {};
  const bool has_bound = time < measured->bound.size();
  Json resident = Json::array();
  for (const profiler::ResidentBytes& each : measured->resident) {
    resident.push_back(Json::object(
        {{"step", each.step}, {"bytes", each.bytes}, {"more_bytes", each.more_bytes}}));
  }
  return Json::object({{"bound_bytes", has_bound ? Json(measured->bound[time]) : Json()},
                       {"most_bound_bytes", has_bound ? Json(measured->most_bound()) : Json()},
                       {"resident", std::move(resident)}});
}

std::string measured_text(const profiler::MeasuredMemory* measured, std::uint32_t time) {
  if (measured == nullptr) return {};
  std::string text;
  if (time < measured->bound.size()) {
    text = fmt::format("measured: {} bytes bound here, {} at most in a step\n",
                       measured->bound[time], measured->most_bound());
  }
  if (measured->resident.empty()) return text;
  const auto [least, most] =
      std::ranges::minmax(measured->resident, {}, &profiler::ResidentBytes::bytes);
  return text + fmt::format("measured: {} to {} bytes of the process after steps {} to {}\n",
                            least.bytes, most.bytes, measured->resident.front().step,
                            measured->resident.back().step);
}

}  // namespace

Outcome describe_memory(const PlanView& plan, const std::string& at,
                        const profiler::MeasuredMemory* measured) {
  require(!plan.calls.empty(), ErrorCode::kBadInput, "the plan has no calls");
  const std::vector<std::int64_t> live = live_bytes(plan);
  const MemoryPeak peak = memory_peak(plan);
  const std::uint32_t fullest = peak.call;
  const std::size_t index = !at.empty() ? find_call(plan, at) : fullest == kNoRow ? 0 : fullest;
  const PlanCall& call = plan.calls[index];
  const std::int64_t bytes = call.time < live.size() ? live[call.time] : 0;
  const std::string_view op =
      call.kind == PlanCallKind::kKernel ? plan.op_of(call) : name_of(call.kind);
  Outcome outcome;
  outcome.text = fmt::format("call {} of {}: {} '{}' ({}), {} bytes alive of an arena of {}\n",
                             index, plan.calls.size(), printable(op), printable(plan.name_of(call)),
                             name_of(call.phase), bytes, plan.arena().bytes);
  outcome.text += measured_text(measured, call.time);
  outcome.text += fmt::format("{:>12} {:>12} {:>6} {:>6}  {:<10} {:<40} {}\n", "offset", "bytes",
                              "birth", "death", "class", "buffer", "producer");
  Json list = Json::array();
  const std::vector<std::uint32_t> alive = alive_at(plan, call.time);
  for (const std::uint32_t id : alive) {
    const PlanBuffer& buffer = plan.buffers[id];
    list.push_back(facts_of(plan, buffer));
    outcome.text +=
        fmt::format("{:>12} {:>12} {:>6} {:>6}  {:<10} {:<40} {}\n", buffer.offset, buffer.bytes,
                    buffer.begin, buffer.end, name_of(buffer.holds),
                    printable(plan.text(buffer.label)), printable(plan.text(buffer.producer)));
  }
  outcome.facts = Json::object({{"call", index},
                                {"call_count", plan.calls.size()},
                                {"time", call.time},
                                {"step", call.time},  // its older name
                                {"node", plan.name_of(call)},
                                {"live_bytes", bytes},
                                {"peak_live_bytes", peak.live_bytes},
                                {"arena_bytes", plan.arena().bytes},
                                {"lower_bound_bytes", plan.arena().lower_bound_bytes},
                                {"by_class", by_class_json(plan, alive)},
                                {"free_bytes", plan.arena().bytes - bytes},
                                {"gaps", gaps_json(plan, call.time)},
                                {"idle", idle_json(plan)},
                                {"measured", measured_json(measured, call.time)},
                                {"buffers", std::move(list)}});
  return outcome;
}

}  // namespace trainscope
