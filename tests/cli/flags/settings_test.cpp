// Flag values: types, defaults, environment, precedence.
#include "cli/flags/settings.h"

#include <doctest/doctest.h>

#include "engine/core/error.h"

namespace trainscope {
namespace {

const Command kCommand = {
    .name = "try",
    .summary = "For tests.",
    .flags = {{.name = "steps", .type = FlagType::kInteger, .fallback = "5", .minimum = 1},
              {.name = "rate", .type = FlagType::kNumber, .minimum = 0, .maximum = 1},
              {.name = "kind", .type = FlagType::kChoice, .value = "sgd|adamw", .fallback = "sgd"},
              {.name = "bias", .type = FlagType::kToggle, .fallback = "on"},
              {.name = "run-dir"},
              {.name = "batch-tiles", .fallback = "none", .formerly = "op-chains"},
              {.name = "group", .type = FlagType::kTexts}}};

Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

Settings settings(std::vector<GivenFlag> given, std::map<std::string, std::string> values = {}) {
  return Settings(kCommand, given, variables(std::move(values)));
}

std::string message_of(const std::function<void()>& action, ErrorCode code = ErrorCode::kUsage) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.message() + "|" + error.hint();
  }
  return "no error";
}

TEST_CASE("settings: a flag beats the environment, which beats the default") {
  CHECK(settings({}).integer("steps") == 5);
  CHECK(settings({}, {{"TRAINSCOPE_STEPS", "6"}}).integer("steps") == 6);
  const Settings all = settings({{"steps", {"7"}}}, {{"TRAINSCOPE_STEPS", "6"}});
  CHECK(all.integer("steps") == 7);
  CHECK(all.given("steps"));
  CHECK(!settings({}).given("steps"));
}

TEST_CASE("settings: a file beats defaults and a run, the environment beats a file") {
  const std::vector<FileValue> file = {
      {.flag = "steps", .texts = {"8"}, .where = "x.toml:1:9"},
      {.flag = "steps", .texts = {"9"}, .where = "x.toml:5:9"},  // of the verb's table
      {.flag = "kind", .texts = {"sgd"}, .where = "x.toml:2:8"},
      {.flag = "unknown", .texts = {"z"}, .where = "x.toml:3:1"}};
  const Settings all = Settings(kCommand, {}, variables({}), file);
  CHECK(all.integer("steps") == 9);
  CHECK(all.all().at("steps").where == "x.toml:5:9");
  CHECK((all.all().at("steps").origin == Origin::kFile));
  CHECK(all.given("steps"));
  CHECK(!all.given("kind"));  // the default, spelt out
  CHECK(Settings(kCommand, {}, variables({{"TRAINSCOPE_STEPS", "6"}}), file).integer("steps") == 6);
  const Settings with_run =
      all.with_run(Json::object({{"steps", 3}, {"kind", "adamw"}, {"rate", 0.5}}));
  CHECK(with_run.integer("steps") == 9);
  CHECK(with_run.text("kind") == "sgd");
  CHECK(with_run.number("rate") == 0.5);
  const std::vector<FileValue> bad = {{.flag = "steps", .texts = {"0"}, .where = "x.toml:1:9"}};
  CHECK(message_of([&] { Settings(kCommand, {}, variables({}), bad); }) ==
        "x.toml:1:9: steps is '0': expected a whole number of 1 or more|");
}

TEST_CASE("settings: a run's options replace defaults only") {
  const Json options = Json::object({{"steps", 9},
                                     {"bias", false},
                                     {"rate", 0.5},
                                     {"group", Json::array({"a:x=1", "b:x=2"})},
                                     {"gone", "of another version"}});
  const Settings replaced = settings({}).with_run(options);
  CHECK(replaced.integer("steps") == 9);
  CHECK(replaced.number("rate") == 0.5);
  CHECK(!replaced.on("bias"));
  CHECK(replaced.texts("group") == std::vector<std::string>{"a:x=1", "b:x=2"});
  CHECK(!replaced.given("steps"));
  CHECK(settings({{"steps", {"7"}}}).with_run(options).integer("steps") == 7);
}

TEST_CASE("settings: the older name of a flag, in the environment and in a run") {
  CHECK(settings({}, {{"TRAINSCOPE_OP_CHAINS", "a"}}).text("batch-tiles") == "a");
  const Settings both =
      settings({}, {{"TRAINSCOPE_OP_CHAINS", "a"}, {"TRAINSCOPE_BATCH_TILES", "b"}});
  CHECK(both.text("batch-tiles") == "b");
  CHECK(both.all().at("batch-tiles").where == "TRAINSCOPE_BATCH_TILES");
  const Settings own = settings({});
  CHECK(own.with_run(Json::object({{"op-chains", "a"}})).text("batch-tiles") == "a");
  CHECK(own.with_run(Json::object({{"batch-tiles", "b"}})).text("batch-tiles") == "b");
}

TEST_CASE("settings: a run's bad option is bad input, not a usage error") {
  const Settings own = settings({});
  CHECK(message_of(
            [&] {
              own.with_run(Json::object({{"steps", "many"}}));
            },
            ErrorCode::kBadInput) ==
        "the run's option 'steps' is 'many': expected a whole number of 1 or more|");
  CHECK(message_of(
            [&] {
              own.with_run(Json::object({{"steps", Json::array({1, 2})}}));
            },
            ErrorCode::kBadInput) != "no error");
}

TEST_CASE("settings: values outside a flag's range name the flag or its variable") {
  CHECK(message_of([] {
          settings({{"steps", {"0"}}});
        }) == "--steps is '0': expected a whole number of 1 or more|");
  CHECK(message_of([] { settings({{"steps", {"99999999999999999999"}}}); }) != "no error");
  CHECK(message_of([] {
          settings({{"rate", {"1.5"}}});
        }) == "--rate is '1.5': expected a number from 0 to 1|");
  CHECK(message_of([] {
          settings({}, {{"TRAINSCOPE_RATE", "x"}});
        }) == "TRAINSCOPE_RATE is 'x': expected a number from 0 to 1|");
  CHECK(message_of([] {
          settings({{"kind", {"adam"}}});
        }) == "--kind is 'adam': expected sgd, adamw|did you mean 'adamw'?");
  CHECK(message_of([] { settings({{"run-dir", {""}}}); }) == "--run-dir is empty|");
}

TEST_CASE("settings: switches in the environment") {
  CHECK(settings({}, {{"TRAINSCOPE_JSON", "1"}}).on("json"));
  CHECK(!settings({}, {{"TRAINSCOPE_JSON", "false"}}).on("json"));
  CHECK(!settings({}, {{"TRAINSCOPE_BIAS", "off"}}).on("bias"));
  CHECK(settings({}, {{"TRAINSCOPE_JSON", ""}}).on("json") == false);
  CHECK(message_of([] {
          settings({}, {{"TRAINSCOPE_JSON", "perhaps"}});
        }) == "TRAINSCOPE_JSON is 'perhaps': expected 1 or 0, true or false, on or off|");
}

TEST_CASE("settings: flags without a value") {
  CHECK(!settings({}).has("rate"));
  CHECK(settings({}).text_or_empty("run-dir").empty());
  CHECK(!settings({}).find_integer("threads").has_value());
  CHECK(settings({}).texts("group").empty());
}

TEST_CASE("settings: values as JSON keep their types") {
  const Settings all = settings({{"rate", {"0.25"}}, {"group", {"a", "b"}}});
  CHECK(json_of(all.all().at("steps")).as_int() == 5);
  CHECK(json_of(all.all().at("rate")).as_number() == 0.25);
  CHECK(json_of(all.all().at("bias")).as_bool());
  CHECK(json_of(all.all().at("group")).size() == 2);
  CHECK(environment_name("run-dir") == "TRAINSCOPE_RUN_DIR");
}

}  // namespace
}  // namespace trainscope
