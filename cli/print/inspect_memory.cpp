// `inspect --memory`: which buffers are alive at a moment of the step.
#include <fmt/format.h>

#include <algorithm>

#include "cli/print/inspect.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

struct PlannedBuffer {
  std::string name;
  std::string kind;
  std::string producer;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t birth = 0;  // the instruction that writes it first
  std::int64_t death = 0;  // the first that no longer needs it
};

std::vector<PlannedBuffer> buffers_of(const Json& plan) {
  std::vector<PlannedBuffer> buffers;
  for (const Json& row : plan.array_at("buffers")) {
    buffers.push_back({.name = row.get<std::string>("name"),
                       .kind = row.get<std::string>("kind"),
                       .producer = row.get<std::string>("producer"),
                       .offset = row.get<std::int64_t>("offset"),
                       .bytes = row.get<std::int64_t>("bytes"),
                       .birth = row.get<std::int64_t>("birth"),
                       .death = row.get<std::int64_t>("death")});
  }
  return buffers;
}

// Bytes alive at each instruction: differences at births and deaths, summed up.
std::vector<std::int64_t> live_bytes(const std::vector<PlannedBuffer>& buffers, std::size_t steps) {
  std::vector<std::int64_t> live(steps + 1, 0);
  const auto last = static_cast<std::int64_t>(steps);
  for (const PlannedBuffer& buffer : buffers) {
    live[static_cast<std::size_t>(std::clamp<std::int64_t>(buffer.birth, 0, last))] += buffer.bytes;
    live[static_cast<std::size_t>(std::clamp<std::int64_t>(buffer.death, 0, last))] -= buffer.bytes;
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  live.pop_back();
  return live;
}

bool stems_from(const Json& instruction, const std::string& name) {
  for (const Json& source : instruction.array_at("sources")) {
    if (source.as_string() == name) return true;
  }
  return false;
}

std::size_t find_step(const JsonArray& instructions, const std::string& at) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    names.push_back(instructions[i].get<std::string>("node"));
    if (names.back() == at) return i;
  }
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (stems_from(instructions[i], at)) return i;
  }
  const std::optional<std::int64_t> number = parse_int(at);
  if (number && *number >= 0 && static_cast<std::size_t>(*number) < instructions.size()) {
    return static_cast<std::size_t>(*number);
  }
  throw Error(ErrorCode::kUsage, fmt::format("--at: there is no step or node '{}'", printable(at)))
      .hint(nearest_hint(at, names))
      .hint(fmt::format("give a node's name, or a number from 0 to {}", instructions.size() - 1));
}

Json facts_of(const PlannedBuffer& buffer) {
  return Json::object({{"name", buffer.name},
                       {"kind", buffer.kind},
                       {"offset", buffer.offset},
                       {"bytes", buffer.bytes},
                       {"birth", buffer.birth},
                       {"death", buffer.death},
                       {"producer", buffer.producer}});
}

}  // namespace

Outcome describe_memory(const Json& plan, const std::string& at) {
  const JsonArray& instructions = plan.array_at("instructions");
  require(!instructions.empty(), ErrorCode::kBadInput, "the plan has no instructions");
  std::vector<PlannedBuffer> buffers = buffers_of(plan);
  std::ranges::sort(buffers, {}, &PlannedBuffer::offset);
  const std::vector<std::int64_t> live = live_bytes(buffers, instructions.size());
  const std::size_t step =
      at.empty() ? static_cast<std::size_t>(std::ranges::max_element(live) - live.begin())
                 : find_step(instructions, at);
  const Json& instruction = instructions[step];
  const auto node = instruction.get<std::string>("node");
  Outcome outcome;
  outcome.text =
      fmt::format("step {} of {}: {} '{}' ({}), {} bytes alive of an arena of {}\n", step,
                  instructions.size(), printable(instruction.get<std::string>("op")),
                  printable(node), printable(instruction.get<std::string>("phase")), live[step],
                  plan.get<std::int64_t>("arena_bytes"));
  outcome.text += fmt::format("{:>12} {:>12} {:>6} {:>6}  {:<10} {:<40} {}\n", "offset", "bytes",
                              "birth", "death", "kind", "buffer", "producer");
  Json list = Json::array();
  const auto now = static_cast<std::int64_t>(step);
  for (const PlannedBuffer& buffer : buffers) {
    if (buffer.birth > now || buffer.death <= now) continue;
    list.push_back(facts_of(buffer));
    outcome.text += fmt::format("{:>12} {:>12} {:>6} {:>6}  {:<10} {:<40} {}\n", buffer.offset,
                                buffer.bytes, buffer.birth, buffer.death, printable(buffer.kind),
                                printable(buffer.name), printable(buffer.producer));
  }
  outcome.facts = Json::object({{"step", step},
                                {"node", node},
                                {"live_bytes", live[step]},
                                {"arena_bytes", plan.get<std::int64_t>("arena_bytes")},
                                {"buffers", std::move(list)}});
  return outcome;
}

}  // namespace trainscope
