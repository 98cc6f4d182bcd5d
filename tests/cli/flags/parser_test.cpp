// Words to flags and arguments.
#include "cli/flags/parser.h"

#include <doctest/doctest.h>

#include <functional>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

const Command kCommand = {.name = "try",
                          .summary = "For tests.",
                          .arguments = {{.name = "MODEL.onnx", .help = "a model"},
                                        {.name = "MORE", .help = "more", .required = false}},
                          .flags = {{.name = "steps", .type = FlagType::kInteger, .value = "N"},
                                    {.name = "bias", .type = FlagType::kToggle, .fallback = "on"},
                                    {.name = "out", .value = "FILE", .letter = 'o'},
                                    {.name = "group", .type = FlagType::kTexts, .value = "SPEC"},
                                    {.name = "tiles", .value = "N", .formerly = "chains"},
                                    {.name = "lr", .value = "X", .also = "learning-rate|rate"},
                                    {.name = "link-rate", .value = "X"}}};

using Words = std::vector<std::string>;

std::vector<std::string> texts(const ParsedLine& line, std::string_view flag) {
  for (const GivenFlag& given : line.flags) {
    if (given.name == flag) return given.texts;
  }
  return {};
}

std::string message_of(const Words& words) {
  try {
    check_arguments(kCommand, parse_line(kCommand, words).arguments);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message() + "|" + error.hint();
  }
  return "no error";
}

TEST_CASE("parser: flags and arguments in any order") {
  const ParsedLine line =
      parse_line(kCommand, Words{"--steps=3", "m.onnx", "-o", "f", "--no-bias", "--json", "x"});
  CHECK(line.arguments == Words{"m.onnx", "x"});
  CHECK(texts(line, "steps") == Words{"3"});
  CHECK(texts(line, "out") == Words{"f"});
  CHECK(texts(line, "bias") == Words{"off"});
  CHECK(texts(line, "json") == Words{"on"});
  CHECK(texts(line, "group").empty());
}

TEST_CASE("parser: values are taken as they are") {
  const ParsedLine line = parse_line(kCommand, Words{"m", "--steps", "-5", "--group", "[a,b]",
                                                     "--group", "c:d=1,e=2", "--out", "--group"});
  CHECK(texts(line, "steps") == Words{"-5"});
  CHECK(texts(line, "group") == Words{"[a,b]", "c:d=1,e=2"});
  CHECK(texts(line, "out") == Words{"--group"});
  CHECK(line.arguments == Words{"m"});
}

TEST_CASE("parser: a flag's older name is taken for it") {
  CHECK(texts(parse_line(kCommand, Words{"m", "--tiles", "1"}), "tiles") == Words{"1"});
  CHECK(texts(parse_line(kCommand, Words{"m", "--chains", "1"}), "tiles") == Words{"1"});
  CHECK(texts(parse_line(kCommand, Words{"m", "--chains=1"}), "tiles") == Words{"1"});
  CHECK(message_of({"m", "--chains", "1", "--tiles", "2"}) == "--tiles is given 2 times|");
  CHECK(message_of({"m", "--chains"}) ==
        "--tiles needs a value: N|`trainscope help try` lists its flags");
}

TEST_CASE("parser: mistakes are named, with the nearest flag") {
  const std::string help = "`trainscope help try` lists its flags";
  CHECK(message_of({"m", "--stpes", "3"}) == "try has no flag '--stpes'|did you mean '--steps'?");
  CHECK(message_of({"m", "--stpes=3"}) == "try has no flag '--stpes'|did you mean '--steps'?");
  CHECK(message_of({"m", "--no-bais"}) == "try has no flag '--no-bais'|did you mean '--no-bias'?");
  CHECK(message_of({"m", "--completely-else"}) == "try has no flag '--completely-else'|" + help);
  CHECK(message_of({"m", "--steps"}) == "--steps needs a value: N|" + help);
  CHECK(message_of({"m", "--steps", "1", "--steps", "2"}) == "--steps is given 2 times|");
  CHECK(message_of({"m", "--json=no"}) == "'--json=no': --json is a switch and takes no value|");
  CHECK(message_of({"m", "--no-bias=1"}) ==
        "'--no-bias=1': --bias is a switch and takes no value|");
  CHECK(message_of({"m", "--out", "--json=no"}) == "no error");
  CHECK(message_of({"m", "--out=--json=no"}) == "no error");
  CHECK(message_of({""}) == "MODEL.onnx is empty|");
  CHECK(message_of({}) == "try needs MODEL.onnx|" + help);
  CHECK(message_of({"a", "b", "c"}) == "try takes no further argument: 'c'|" + help);
}

TEST_CASE("parser: an argument may be one of a few words") {
  const Command command{.name = "try",
                        .summary = "For tests.",
                        .arguments = {{.name = "SHELL", .help = "", .words = "bash|zsh"}}};
  CHECK_NOTHROW(check_arguments(command, Words{"zsh"}));
  try {
    check_arguments(command, Words{"bahs"});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.message() == "SHELL is 'bahs': expected bash, zsh");
    CHECK(error.hint() == "did you mean 'bash'?");
  }
}

TEST_CASE("parser: global flags may come before the verb") {
  CHECK(verb_position(Words{"train", "x"}) == 0);
  CHECK(verb_position(Words{"--json", "train"}) == 1);
  CHECK(verb_position(Words{"--threads", "2", "train"}) == 2);
  CHECK(verb_position(Words{"--threads=2", "-q", "train"}) == 2);
  CHECK(verb_position(Words{"--json"}) == 1);
  CHECK(verb_position(Words{"--threads"}) == 1);
  CHECK(verb_position(Words{}) == 0);
}

// Words as a shell splits them, as far as the examples need it.
Words shell_words(std::string_view text) {
  Words words(1);
  bool quoted = false;
  for (char c : text) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

TEST_CASE("commands: every verb has a summary, two examples that parse, and help for each flag") {
  for (const Command& command : all_commands()) {
    INFO(command.name);
    CHECK(!command.summary.empty());
    CHECK((command.run != nullptr));
    for (std::string_view example : command.examples) {
      const Words words = shell_words(example);
      INFO(example);
      REQUIRE(words.size() >= 2);
      CHECK(words[0] == "trainscope");
      CHECK(words[1] == command.name);
      const std::span<const std::string> rest = std::span(words).subspan(2);
      const Command fitting = command.for_words ? command.for_words(command, rest) : command;
      const ParsedLine line = parse_line(fitting, rest);
      CHECK_NOTHROW(check_arguments(fitting, line.arguments));
      CHECK_NOTHROW(Settings(fitting, line.flags, [](const std::string&) { return std::nullopt; }));
    }
    for (const Flag& flag : command.flags) {
      INFO(flag.name);
      CHECK(!flag.help.empty());
    }
  }
}

TEST_CASE("parser: names of other tools are taken, and what is near them leads to ours") {
  CHECK(texts(parse_line(kCommand, Words{"--learning-rate", "0.1"}), "lr") == Words{"0.1"});
  CHECK(texts(parse_line(kCommand, Words{"--rate=0.1"}), "lr") == Words{"0.1"});
  CHECK(message_of({"m", "--lr", "1", "--rate", "2"}) == "--lr is given 2 times|");
  CHECK(message_of({"m", "--learning_rate", "1"}) ==
        "try has no flag '--learning_rate'|did you mean '--lr'?");
  CHECK(message_of({"m", "--learning-rat", "1"}) ==
        "try has no flag '--learning-rat'|did you mean '--lr'?");
  CHECK(message_of({"m", "--max_iters", "1"}) ==
        "try has no flag '--max_iters'|did you mean '--steps'?");
  CHECK(message_of({"m", "--gpu", "1"}) == "try has no flag '--gpu'|did you mean '--device'?");
}

TEST_CASE("commands: --help shows flags that there are") {
  for (const Command& command : all_commands()) {
    for (std::string_view name : command.essential) {
      INFO(command.name << " --" << name);
      CHECK(std::ranges::count(command.flags, name, &Flag::name) == 1);
    }
  }
}

TEST_CASE("commands: no verb redefines a flag of all verbs, or one of its own") {
  for (const Command& command : all_commands()) {
    std::vector<std::string_view> names;
    for (const Flag& flag : join_flags({command.flags, global_flags()})) {
      INFO(command.name << " --" << flag.name);
      CHECK(std::find(names.begin(), names.end(), flag.name) == names.end());
      names.push_back(flag.name);
      std::vector<std::string_view> others =
          flag.also.empty() ? std::vector<std::string_view>() : split(flag.also, '|');
      if (!flag.formerly.empty()) others.push_back(flag.formerly);
      for (std::string_view other : others) {
        CHECK(flag.is_called(other));
        CHECK(std::find(names.begin(), names.end(), other) == names.end());
        names.push_back(other);
      }
    }
  }
}

}  // namespace
}  // namespace trainscope
