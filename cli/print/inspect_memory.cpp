// `inspect --memory`: which buffers are alive at a call of the step.
#include <fmt/format.h>

#include <algorithm>

#include "cli/print/inspect.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

struct ShownBuffer {
  std::string name;
  std::string kind;
  std::string producer;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  std::int64_t birth = 0;  // index of the call that writes it first
  std::int64_t death = 0;  // the first that no longer needs it
};

std::vector<ShownBuffer> buffers_of(const Json& plan) {
  std::vector<ShownBuffer> buffers;
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

// Bytes alive at each call: differences at births and deaths, summed up.
std::vector<std::int64_t> live_bytes(const std::vector<ShownBuffer>& buffers, std::size_t calls) {
  std::vector<std::int64_t> live(calls + 1, 0);
  const auto last = static_cast<std::int64_t>(calls);
  for (const ShownBuffer& buffer : buffers) {
    live[static_cast<std::size_t>(std::clamp<std::int64_t>(buffer.birth, 0, last))] += buffer.bytes;
    live[static_cast<std::size_t>(std::clamp<std::int64_t>(buffer.death, 0, last))] -= buffer.bytes;
  }
  for (std::size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
  live.pop_back();
  return live;
}

bool stems_from(const Json& call, const std::string& name) {
  for (const Json& source : call.array_at("sources")) {
    if (source.as_string() == name) return true;
  }
  return false;
}

std::size_t find_call(const JsonArray& calls, const std::string& at) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    names.push_back(calls[i].get<std::string>("node"));
    if (names.back() == at) return i;
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (stems_from(calls[i], at)) return i;
  }
  const std::optional<std::int64_t> number = parse_int(at);
  if (number && *number >= 0 && static_cast<std::size_t>(*number) < calls.size()) {
    return static_cast<std::size_t>(*number);
  }
  throw Error(ErrorCode::kUsage, fmt::format("--at: there is no call or node '{}'", printable(at)))
      .hint(nearest_hint(at, names))
      .hint(fmt::format("give a node's name, or a number from 0 to {}", calls.size() - 1));
}

Json facts_of(const ShownBuffer& buffer) {
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
  const JsonArray& calls = plan.array_at("instructions");
  require(!calls.empty(), ErrorCode::kBadInput, "the plan has no calls");
  std::vector<ShownBuffer> buffers = buffers_of(plan);
  std::ranges::sort(buffers, {}, &ShownBuffer::offset);
  const std::vector<std::int64_t> live = live_bytes(buffers, calls.size());
  const std::size_t index =
      at.empty() ? static_cast<std::size_t>(std::ranges::max_element(live) - live.begin())
                 : find_call(calls, at);
  const Json& call = calls[index];
  const auto node = call.get<std::string>("node");
  Outcome outcome;
  outcome.text = fmt::format("call {} of {}: {} '{}' ({}), {} bytes alive of an arena of {}\n",
                             index, calls.size(), printable(call.get<std::string>("op")),
                             printable(node), printable(call.get<std::string>("phase")),
                             live[index], plan.get<std::int64_t>("arena_bytes"));
  outcome.text += fmt::format("{:>12} {:>12} {:>6} {:>6}  {:<10} {:<40} {}\n", "offset", "bytes",
                              "birth", "death", "kind", "buffer", "producer");
  Json list = Json::array();
  const auto now = static_cast<std::int64_t>(index);
  for (const ShownBuffer& buffer : buffers) {
    if (buffer.birth > now || buffer.death <= now) continue;
    list.push_back(facts_of(buffer));
    outcome.text += fmt::format("{:>12} {:>12} {:>6} {:>6}  {:<10} {:<40} {}\n", buffer.offset,
                                buffer.bytes, buffer.birth, buffer.death, printable(buffer.kind),
                                printable(buffer.name), printable(buffer.producer));
  }
  outcome.facts = Json::object({{"step", index},
                                {"node", node},
                                {"live_bytes", live[index]},
                                {"arena_bytes", plan.get<std::int64_t>("arena_bytes")},
                                {"buffers", std::move(list)}});
  return outcome;
}

}  // namespace trainscope
