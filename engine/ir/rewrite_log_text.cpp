// Rewrite logs as lines of JSON, and back.
#include <fmt/format.h>

#include "engine/core/error.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/ir/rewrite_log.h"

namespace trainscope {
namespace {

constexpr std::string_view kRuleKind = "rule";
constexpr JsonLimits kLogLineLimits{.max_bytes = std::size_t{64} << 20, .max_depth = 8};

// What the others of an entry are to it.
std::string_view others_key(RewriteKind kind) {
  switch (kind) {
    case RewriteKind::kAdded:
    case RewriteKind::kRematerialized:
      return "parents";
    case RewriteKind::kUnread:
      return "readers";
    default:
      return "into";
  }
}

std::string_view detail_key(RewriteKind kind) {
  return kind == RewriteKind::kRenamed ? "to" : "what";
}

void set_thing(Json& json, const NamedThing& thing) {
  json.set(thing.is_node ? "node" : "value", thing.name);
  if (thing.serial != kNoSerial) json.set("serial", static_cast<std::int32_t>(thing.serial));
}

NamedThing thing_from(const Json& json) {
  const bool is_node = json.contains("node");
  return {.is_node = is_node,
          .serial = static_cast<Serial>(json.get_or<std::int32_t>("serial", 0)),
          .name = json.get<std::string>(is_node ? "node" : "value")};
}

Json entry_line(const RewriteEntry& entry) {
  Json json = Json::object({{"kind", name_of(entry.kind)}});
  set_thing(json, entry.thing);
  if (!entry.detail.empty()) json.set(std::string(detail_key(entry.kind)), entry.detail);
  if (!entry.others.empty()) {
    Json others = Json::array();
    for (const NamedThing& thing : entry.others) {
      Json other = Json::object();
      set_thing(other, thing);
      others.push_back(std::move(other));
    }
    json.set(std::string(others_key(entry.kind)), std::move(others));
  }
  json.set("rule", entry.rule);
  return json;
}

RewriteKind kind_from(std::string_view name) {
  for (int i = 0; i < kRewriteKinds; ++i) {
    const auto kind = static_cast<RewriteKind>(i);
    if (name_of(kind) == name) return kind;
  }
  fail(ErrorCode::kBadInput, "'{}' is no kind of entry", printable(name));
}

RewriteEntry entry_from(const Json& json) {
  RewriteEntry entry{.kind = kind_from(json.get<std::string>("kind")), .thing = thing_from(json)};
  entry.detail = json.get_or<std::string>(detail_key(entry.kind), {});
  if (const Json* others = json.find(others_key(entry.kind))) {
    for (const Json& other : others->as_array()) entry.others.push_back(thing_from(other));
  }
  entry.rule = json.get<std::uint16_t>("rule");
  return entry;
}

void add_log_line(std::string_view line, RewriteLog& log) {
  const Json json = Json::parse(line, kLogLineLimits);
  if (json.get<std::string>("kind") == kRuleKind) {
    log.rules.push_back(
        {.name = json.get<std::string>("name"), .reason = json.get<std::string>("reason")});
    return;
  }
  log.entries.push_back(entry_from(json));
  require(log.entries.back().rule < log.rules.size(), ErrorCode::kBadInput,
          "rule {} is not among the {} above", log.entries.back().rule, log.rules.size());
}

}  // namespace

std::string rewrite_log_text(const RewriteLog& log) {
  std::string text;
  for (std::size_t i = 0; i < log.rules.size(); ++i) {
    text += Json::object({{"kind", kRuleKind},
                          {"rule", i},
                          {"name", log.rules[i].name},
                          {"reason", log.rules[i].reason}})
                .dump() +
            "\n";
  }
  for (const RewriteEntry& entry : log.entries) text += entry_line(entry).dump() + "\n";
  return text;
}

RewriteLog rewrite_log_from(std::string_view text) {
  RewriteLog log;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    try {
      require(end != std::string_view::npos, ErrorCode::kBadInput, "the line has no end");
      add_log_line(text.substr(0, end), log);
    } catch (Error& error) {
      error.at(fmt::format("line {}", number));
      throw;
    }
    text.remove_prefix(end + 1);
  }
  log.entries.shrink_to_fit();  // a history is kept for long
  return log;
}

}  // namespace trainscope
