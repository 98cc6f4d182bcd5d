// The JSON Schema of configuration files, from the tables of flags.
#include <cmath>

#include "cli/flags/config.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kDialect = "https://json-schema.org/draft/2020-12/schema";

Json text_type() { return Json::object({{"type", "string"}, {"minLength", 1}}); }

void set_bounds(const Flag& flag, Json& schema) {
  if (std::isfinite(flag.minimum)) schema.set("minimum", flag.minimum);
  if (std::isfinite(flag.maximum)) schema.set("maximum", flag.maximum);
}

Json value_schema(const Flag& flag) {
  switch (flag.type) {
    case FlagType::kSwitch:
    case FlagType::kToggle:
      return Json::object({{"type", "boolean"}});
    case FlagType::kText:
      return text_type();
    case FlagType::kTexts:
      return Json::object(
          {{"anyOf", Json::array({text_type(),
                                  Json::object({{"type", "array"}, {"items", text_type()}})})}});
    case FlagType::kChoice: {
      Json words = Json::object({{"enum", Json::list(split(flag.value, '|'))}});
      if (!flag.open) return words;
      Json dotted = Json::object({{"type", "string"}, {"pattern", "\\."}});
      return Json::object({{"anyOf", Json::array({std::move(words), std::move(dotted)})}});
    }
    case FlagType::kInteger:
    case FlagType::kNumber:
      break;
  }
  Json schema = Json::object({{"type", flag.type == FlagType::kInteger ? "integer" : "number"}});
  set_bounds(flag, schema);
  return schema;
}

Json default_value(const Flag& flag) {
  return json_of({.flag = flag, .texts = {std::string(flag.fallback)}});
}

Json flag_schema(const Flag& flag) {
  Json schema = value_schema(flag);
  schema.set("description", flag.help);
  const bool shown = !flag.fallback.empty() && flag.type != FlagType::kTexts;
  if (shown) schema.set("default", default_value(flag));
  return schema;
}

Json model_schema() {
  Json schema = text_type();
  schema.set("description", "The model, when the command line names none");
  return schema;
}

Json verb_schema(const Command& command) {
  Json properties = Json::object();
  if (takes_model(command)) properties.set("model", model_schema());
  for (const Flag& flag : config_flags(command)) {
    properties.set(std::string(flag.name), flag_schema(flag));
    if (!flag.also.empty()) {
      for (std::string_view other : split(flag.also, '|')) {
        properties.set(std::string(other), flag_schema(flag));
      }
    }
    if (flag.formerly.empty()) continue;
    Json older = flag_schema(flag);
    older.set("deprecated", true);
    properties.set(std::string(flag.formerly), std::move(older));
  }
  return Json::object({{"type", "object"},
                       {"description", command.summary},
                       {"properties", std::move(properties)},
                       {"additionalProperties", false}});
}

}  // namespace

Json config_schema() {
  Json properties = verb_schema(*command_named("train")).at("properties");
  for (const Command& command : all_commands()) {
    const std::string name(command.name);
    Json table = verb_schema(command);
    // `export` is a flag of train and a verb: text or a table.
    if (const Json* value = properties.find(name)) {
      table = Json::object({{"anyOf", Json::array({*value, std::move(table)})}});
    }
    properties.set(name, std::move(table));
  }
  return Json::object({{"$schema", kDialect},
                       {"title", "A configuration file of trainscope, as TOML"},
                       {"type", "object"},
                       {"properties", std::move(properties)},
                       {"additionalProperties", false}});
}

}  // namespace trainscope
