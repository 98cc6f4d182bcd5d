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
    gaps.push_back(Json::object({{"offset", gap.offset}, {"bytes", gap.bytes}}));
  }
  return gaps;
}

// Of the whole step: what waits longest for its next use.
Json idle_json(const PlanView& plan) {
  constexpr std::size_t kMost = 100;
  Json idle = Json::array();
  for (const IdleWait& wait : idle_waits(plan)) {
    if (idle.size() == kMost) break;
    const PlanBuffer& buffer = plan.buffers[wait.buffer];
    idle.push_back(Json::object({{"id", wait.buffer},
                                 {"name", plan.text(buffer.label)},
                                 {"bytes", buffer.bytes},
                                 {"from", wait.from},
                                 {"to", wait.to},
                                 {"byte_calls", wait.byte_calls}}));
  }
  return idle;
}

}  // namespace

Outcome describe_memory(const PlanView& plan, const std::string& at) {
  require(!plan.calls.empty(), ErrorCode::kBadInput, "the plan has no calls");
  const std::vector<std::int64_t> live = live_bytes(plan);
  const std::uint32_t fullest = memory_peak(plan).call;
  const std::size_t index = !at.empty() ? find_call(plan, at) : fullest == kNoRow ? 0 : fullest;
  const PlanCall& call = plan.calls[index];
  const std::int64_t bytes = call.time < live.size() ? live[call.time] : 0;
  const std::string_view op =
      call.kind == PlanCallKind::kKernel ? plan.op_of(call) : name_of(call.kind);
  Outcome outcome;
  outcome.text = fmt::format("call {} of {}: {} '{}' ({}), {} bytes alive of an arena of {}\n",
                             index, plan.calls.size(), printable(op), printable(plan.name_of(call)),
                             name_of(call.phase), bytes, plan.arena().bytes);
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
                                {"time", call.time},
                                {"step", call.time},  // its older name
                                {"node", plan.name_of(call)},
                                {"live_bytes", bytes},
                                {"arena_bytes", plan.arena().bytes},
                                {"lower_bound_bytes", plan.arena().lower_bound_bytes},
                                {"by_class", by_class_json(plan, alive)},
                                {"gaps", gaps_json(plan, call.time)},
                                {"idle", idle_json(plan)},
                                {"buffers", std::move(list)}});
  return outcome;
}

}  // namespace trainscope
