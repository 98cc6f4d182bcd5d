// Configuration files: precedence, tables of verbs, --set, show, validate, schema.
#include "cli/flags/config.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>

#include "cli/flags/parser.h"
#include "tests/cli/program_runner.h"

namespace trainscope::test {
namespace {

namespace fs = std::filesystem;

const std::string kMlp = test_model("mlp/model.onnx").string();

void put(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// What `config show` says of one option.
Json option(const Json& shown, const std::string& name) {
  for (const Json& one : shown.array_at("options")) {
    if (one.get<std::string>("name") == name) return one;
  }
  FAIL("no option " << name);
  return {};
}

TEST_CASE("config show --origin: default < file < environment < flag") {
  const TemporaryFolder folder;
  put(folder / "c.toml", "lr = 0.5\nsteps = 10\nclip = 2\n\n[train]\nclip = 3.0\n");
  const Finished finished =
      run({"config", "show", "train", "--config", "c.toml", "--lr", "0.25", "--origin", "--json"},
          {{"TRAINSCOPE_LR", "0.125"}, {"TRAINSCOPE_STEPS", "20"}}, folder.path());
  REQUIRE(finished.exit_code == 0);
  const Json shown = finished.json();
  CHECK(option(shown, "lr").get<double>("value") == 0.25);
  CHECK(option(shown, "lr").get<std::string>("origin") == "flag");
  CHECK(option(shown, "lr").get<std::string>("where") == "--lr");
  CHECK(option(shown, "steps").get<int>("value") == 20);
  CHECK(option(shown, "steps").get<std::string>("where") == "TRAINSCOPE_STEPS");
  CHECK(option(shown, "clip").get<double>("value") == 3.0);
  CHECK(option(shown, "clip").get<std::string>("where") == "c.toml:6:8");
  CHECK(option(shown, "clip").get<std::string>("origin") == "file");
  CHECK(option(shown, "optimizer").get<std::string>("origin") == "default");
  CHECK(!option(shown, "run-dir").contains("value"));
}

TEST_CASE("config show: a flag for every line, and text that is a configuration file") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"config", "show",    "train",   "--lr",        "0.25",
                                          "--set",  "steps=7", "--group", "a:lr_scale=2"};
  const Finished plain = run(words, {}, folder.path());
  REQUIRE(plain.exit_code == 0);
  CHECK(plain.out.find("lr = 0.25\n") != std::string::npos);
  CHECK(plain.out.find("steps = 7\n") != std::string::npos);
  CHECK(plain.out.find("# run-dir is not set\n") != std::string::npos);
  for (const Flag& flag : config_flags(*command_named("train"))) {
    INFO(flag.name);
    const std::string name(flag.name);
    CHECK((plain.out.find("\n" + name + " = ") != std::string::npos ||
           plain.out.find("\n# " + name + " is not set\n") != std::string::npos));
  }
  put(folder / "shown.toml", plain.out);
  CHECK(run({"config", "validate", "shown.toml"}, {}, folder.path()).exit_code == 0);
  const Finished again =
      run({"config", "show", "train", "--config", "shown.toml"}, {}, folder.path());
  CHECK(again.out == plain.out);

  std::vector<std::string> with_origin = words;
  with_origin.emplace_back("--origin");
  const Finished origin = run(with_origin, {}, folder.path());
  CHECK(origin.out.find("# flag --lr\n") != std::string::npos);
  CHECK(origin.out.find("# default\n") != std::string::npos);
}

TEST_CASE("config show: other verbs, and train when none is named") {
  CHECK(run({"config", "show", "plan"}).out.starts_with("# trainscope plan\n"));
  CHECK(run({"config", "show"}).out.starts_with("# trainscope train\n"));
  CHECK(run({"config", "show", "config"}).exit_code == 0);
  CHECK(run({"config", "show", "doctor", "--threads", "3"}).out.find("threads = 3\n") !=
        std::string::npos);
}

TEST_CASE("config: the file of a run makes the same run again") {
  const TemporaryFolder folder;
  const Finished first =
      run({"train",          kMlp,  "--data",     "synthetic", "--steps", "6",
           "--threads",      "1",   "--seed",     "5",         "--lr",    "2e-2",
           "--clip",         "1",   "--schedule", "cosine",    "--group", "*.bias:weight_decay=0",
           "--weight-decay", "0.1", "--run-dir",  "a",         "-q"},
          {}, folder.path());
  REQUIRE(first.exit_code == 0);
  const Finished second =
      run({"train", "--config", "a/config.toml", "--run-dir", "b", "-q"}, {}, folder.path());
  INFO(second.err);
  REQUIRE(second.exit_code == 0);
  CHECK(read_text(folder / "a/model.onnx") == read_text(folder / "b/model.onnx"));
  CHECK(read_text(folder / "a/config.toml") == read_text(folder / "b/config.toml"));
  CHECK(run({"config", "validate", "a/config.toml"}, {}, folder.path()).exit_code == 0);
  // Other verbs read what is theirs of it.
  const Json planned =
      run({"plan", "--config", "a/config.toml", "--json"}, {}, folder.path()).json();
  const Json recorded = run({"plan", "a", "--json"}, {}, folder.path()).json();
  CHECK(planned.get<std::int64_t>("peak_bytes") == recorded.get<std::int64_t>("peak_bytes"));
}

TEST_CASE("config: the command line's model goes before the file's") {
  const TemporaryFolder folder;
  put(folder / "c.toml", "model = \"nowhere.onnx\"\n");
  CHECK(run({"check", "--config", "c.toml"}, {}, folder.path()).exit_code == 6);
  CHECK(run({"check", kMlp, "--config", "c.toml"}, {}, folder.path()).exit_code == 0);
  put(folder / "d.toml", fmt::format("model = \"nowhere.onnx\"\n[check]\nmodel = '{}'\n", kMlp));
  CHECK(run({"check", "--config", "d.toml"}, {}, folder.path()).exit_code == 0);
}

TEST_CASE("config: TRAINSCOPE_CONFIG names the file too, --config goes before it") {
  const TemporaryFolder folder;
  put(folder / "one.toml", "lr = 0.5\n");
  put(folder / "two words.toml", "lr = 0.25\n");
  const std::map<std::string, std::string> variable = {{"TRAINSCOPE_CONFIG", "one.toml"}};
  CHECK(option(run({"config", "show", "--json"}, variable, folder.path()).json(), "lr")
            .get<double>("value") == 0.5);
  CHECK(option(
            run({"config", "show", "--json", "--config", "two words.toml"}, variable, folder.path())
                .json(),
            "lr")
            .get<std::string>("where") == "two words.toml:1:6");
}

TEST_CASE("config: a file's value that is the default asks for nothing") {
  const TemporaryFolder folder;
  const std::vector<std::string> words = {"train",   kMlp,       "--data",    "synthetic",
                                          "--steps", "1",        "--threads", "1",
                                          "-q",      "--config", "c.toml",    "--dry-run"};
  put(folder / "c.toml", "optimizer = \"adamw\"\nmomentum = 0\nmin-lr = 0.0\n");
  CHECK(run(words, {}, folder.path()).exit_code == 0);
  put(folder / "c.toml", "optimizer = \"adamw\"\nmomentum = 0.5\n");
  const Finished refused = run(words, {}, folder.path());
  CHECK(refused.exit_code == 2);
  CHECK(refused.err == "error: --momentum means nothing with --optimizer adamw\n");
}

TEST_CASE("config: everything wrong with a file is told at once") {
  const TemporaryFolder folder;
  put(folder / "c.toml", "stepz = 1\nlr = \"x\"\n\n[plna]\nlr = 1\n");
  const Finished finished = run({"config", "validate", "c.toml"}, {}, folder.path());
  CHECK(finished.exit_code == 2);
  CHECK(finished.err ==
        "error: c.toml:1:1: there is no key 'stepz'\n"
        "  at: c.toml:2:6: lr is a string: expected a number of 0 or more\n"
        "  at: c.toml:4:2: there is no verb 'plna' for this table (did you mean 'plan'?)\n"
        "  try: did you mean 'steps'?\n");
}

TEST_CASE("config: a file may use a flag's older name") {
  const TemporaryFolder folder;
  for (const std::string& name : {std::string("op-chains"), std::string("batch-tiles")}) {
    put(folder / "c.toml", name + " = \"auto\"\n");
    const Finished shown =
        run({"config", "show", "train", "--json", "--config", "c.toml"}, {}, folder.path());
    INFO(shown.err);
    REQUIRE(shown.exit_code == 0);
    CHECK(option(shown.json(), "batch-tiles").get<std::string>("value") == "auto");
  }
}

TEST_CASE("--set: a flag by its key, for one verb or any") {
  const auto value = [](const std::vector<std::string>& sets, const std::string& name) {
    std::vector<std::string> words = {"config", "show", "train", "--json"};
    for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
    const Finished finished = run(words);
    INFO(finished.err);
    REQUIRE(finished.exit_code == 0);
    return option(finished.json(), name);
  };
  CHECK(value({"lr=0.5"}, "lr").get<double>("value") == 0.5);
  CHECK(value({"train.lr=0.5"}, "lr").get<double>("value") == 0.5);
  CHECK(value({"plan.lr=0.5"}, "lr").get<std::string>("origin") == "default");
  CHECK(value({"quiet=true"}, "quiet").get<bool>("value"));
  CHECK(value({"batch-tiles=auto"}, "batch-tiles").get<std::string>("value") == "auto");
  CHECK(value({"op-chains=auto"}, "batch-tiles").get<std::string>("value") == "auto");
  CHECK(value({"group=a:lr_scale=2", "group=b:lr_scale=3"}, "group").array_at("value").size() == 2);
}

TEST_CASE("config schema: describes every key, with defaults of the right type") {
  const Finished finished = run({"config", "schema"});
  REQUIRE(finished.exit_code == 0);
  const Json schema = finished.json();
  CHECK(!schema.get<bool>("additionalProperties"));
  const Json& properties = schema.at("properties");
  CHECK(properties.at("steps").get<std::string>("type") == "integer");
  CHECK(properties.at("steps").get<double>("minimum") == 1);
  CHECK(properties.at("lr").get<double>("default") == 1e-3);
  const auto& optimizers = properties.at("optimizer").array_at("anyOf");
  CHECK(optimizers[0].array_at("enum").size() >= 2);
  CHECK(optimizers[1].get<std::string>("pattern") == "\\.");  // of a plugin: DOMAIN.NAME
  CHECK(properties.at("quiet").get<std::string>("type") == "boolean");
  for (const Command& command : all_commands()) {
    INFO(command.name);
    const Json& property = properties.at(command.name);
    const Json& table = property.contains("anyOf") ? property.array_at("anyOf")[1] : property;
    for (const Flag& flag : config_flags(command)) {
      INFO(flag.name);
      CHECK(table.at("properties").contains(flag.name));
    }
    CHECK(!table.at("properties").contains("config"));
  }
  CHECK(properties.at("op-chains").get<bool>("deprecated"));
  CHECK(run({"config", "schema", "--json"}).json().at("schema") == schema);
}

}  // namespace
}  // namespace trainscope::test
