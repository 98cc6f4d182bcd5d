// TOML: entries with their places, what is refused, and values written so that they read back.
#include "cli/flags/toml_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>
#include <random>

#include "engine/core/error.h"

namespace trainscope {
namespace {

std::string message_of(std::string_view text) {
  try {
    parse_toml(text, "x.toml");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  }
  return "no error";
}

std::string repeated(std::string_view piece, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST_CASE("toml: keys of the top level and of tables, with kinds and places") {
  const std::vector<TomlEntry> entries = parse_toml(
      "steps = 20\n"
      "lr    = 1e-3  # a comment\n"
      "group = [\"a:x=1\", 'b']\n"
      "\n"
      "[train]\n"
      "bias = true\n"
      "day = 2026-11-21\n",
      "x.toml");
  REQUIRE(entries.size() == 6);
  CHECK(entries[0].key == "steps");
  CHECK(entries[0].table.empty());
  CHECK(entries[0].kind == TomlKind::kInteger);
  CHECK(entries[0].value.as_int() == 20);
  CHECK(entries[0].key_place.line == 1);
  CHECK(entries[0].key_place.column == 1);
  CHECK(entries[0].value_place.column == 9);
  CHECK(entries[1].kind == TomlKind::kNumber);
  CHECK(entries[1].value.as_number() == 1e-3);
  CHECK(entries[2].kind == TomlKind::kArray);
  CHECK(entries[2].value == Json::array({"a:x=1", "b"}));
  CHECK(entries[3].key == "train");
  CHECK(entries[3].kind == TomlKind::kTable);
  CHECK(entries[4].table == "train");
  CHECK(entries[4].key == "bias");
  CHECK(entries[4].value.as_bool());
  CHECK(entries[5].kind == TomlKind::kTime);
  CHECK(entries[5].key_place.line == 7);
}

TEST_CASE("toml: an array that holds more than plain values says so") {
  CHECK(parse_toml("a = [1, 'x', true]", "x.toml")[0].plain_items);
  CHECK(!parse_toml("a = [[1]]", "x.toml")[0].plain_items);
  CHECK(!parse_toml("a = [{b = 1}]", "x.toml")[0].plain_items);
  CHECK(parse_toml("a = []", "x.toml")[0].plain_items);
}

TEST_CASE("toml: an empty file and comments alone are good") {
  CHECK(parse_toml("", "x.toml").empty());
  CHECK(parse_toml("# nothing\n\n", "x.toml").empty());
}

TEST_CASE("toml: what nests deeply is refused before it is parsed, wherever it hides") {
  constexpr std::size_t kDeep = 200'000;
  for (const std::string& text :
       {"a = " + repeated("[", kDeep), "a = " + repeated("{b=", kDeep),
        repeated("a.", kDeep) + "a = 1", "[" + repeated("a.", kDeep) + "a]\n",
        "[[" + repeated("a.", kDeep) + "a]]\n", "x = \"\"\"q\"\"\"\"\n" + repeated("a.", kDeep),
        "x = {a = \"\"\"q\"\"\"\", " + repeated("b.", kDeep) + "b = 1}",
        "x = '''q'''''\n" + repeated("a.", kDeep), "x = 'q\\'\n" + repeated("a.", kDeep),
        "# ''' \n" + repeated("a.", kDeep), "x = \"\\\"\"\n" + repeated("a . ", kDeep)}) {
    INFO(text.substr(0, 40));
    CHECK(contains(message_of(text), "nested too deeply"));
  }
}

TEST_CASE("toml: dots and brackets within strings and comments count for nothing") {
  const std::string dots = repeated(".[{", 400);
  for (const std::string& text :
       {"a = \"" + dots + "\"", "a = '" + dots + "'", "a = \"\"\"\n" + dots + "\n\"\"\"",
        "a = '''\n" + dots + "'''", "a = 1 # " + dots, "a = \"\\\"" + dots + "\\\\\""}) {
    INFO(text.substr(0, 40));
    CHECK(message_of(text) == "no error");
  }
  CHECK(message_of("a = [" + repeated("1.5, ", 300) + "2.5]") == "no error");
}

TEST_CASE("toml: the place of what nests too deeply") {
  CHECK(message_of("a = 1\nb = [[[[[[[[[[[[[[[[[1]") == "x.toml:2:21: nested too deeply");
}

TEST_CASE("toml: a file larger than any configuration is refused") {
  CHECK(message_of(std::string((1 << 20) + 1, '#')) ==
        "x.toml: the file has 1048577 bytes; a configuration has at most 1048576");
  CHECK(message_of(std::string(1 << 20, '#')) == "no error");
}

TEST_CASE("toml: every prefix of a file gives entries or an error") {
  const std::string text =
      "a = \"x\\u00e9\" # c\nb = '''\n'' '''\n[t]\nc = [1, 2.5, {d = true}]\n[[u]]\ne.f = 1\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    try {
      parse_toml(std::string_view(text).substr(0, size), "x.toml");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUsage);
      CHECK(error.message().starts_with("x.toml:"));
    }
  }
}

TEST_CASE("toml: mutated files give entries or an error") {
  const std::string seed =
      "model = \"gpt.onnx\"\nsteps = 2000\nlr = 3e-3\ngroup = [\"*.bias:weight_decay=0\", 'b']\n"
      "day = 2026-11-21T07:30:00Z\n[train]\nbias = true\nx = {a.b = 1, c = [[1], [2.5]]}\n"
      "text = \"\"\"\nq\"\"\"\"\n[[u]]\n\"k.k\" = '''\n'' '''\n";
  const std::string pieces = "\"'[]{}=.,#\n\\\t \r-+_eE0179aui\x01\x7f\xff\xc3\xa9";
  std::mt19937 random(20261121);
  const auto below = [&random](std::size_t n) { return random() % n; };
  std::size_t good = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = seed;
    for (std::size_t changes = below(6) + 1; changes > 0; --changes) {
      const std::size_t at = below(text.size());
      const std::size_t kind = below(4);
      if (kind == 0) text[at] = pieces[below(pieces.size())];
      if (kind == 1) text.insert(at, 1 + below(20), pieces[below(pieces.size())]);
      if (kind == 2 && at > 8) text.erase(at, 1 + below(8));
      if (kind == 3) text.insert(at, text.substr(below(text.size()), below(40)));
    }
    const std::string message = message_of(text);
    good += message == "no error" ? 1 : 0;
    const bool told = message == "no error" || message.starts_with("x.toml:");
    if (!told) FAIL(message);
  }
  CHECK(good > 200);  // the mutations are not all of the kind that fails at once
  CHECK(good < 15'000);
}

// The value of "key = VALUE" with VALUE as we write it.
Json read_back(const Json& value) {
  const std::string line = fmt::format("key = {}\n", toml_value(value));
  INFO(line);
  const std::vector<TomlEntry> entries = parse_toml(line, "x.toml");
  REQUIRE(entries.size() == 1);
  return entries[0].value;
}

TEST_CASE("toml: values are written so that they read back") {
  for (const std::string& text :
       {std::string("plain"), std::string("quotes \" and \\"), std::string("line\nend\ttab"),
        std::string("\x7f\x01\x1b"), std::string("\xc3\xa9"), std::string()}) {
    CHECK(read_back(text) == Json(text));
  }
  for (double number : {1e-8, 0.1, -2.5e300, 3.0}) CHECK(read_back(number).as_number() == number);
  CHECK(read_back(-5).as_int() == -5);
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  CHECK(read_back(kLargest).as_int() == kLargest);
  CHECK(read_back(true).as_bool());
  const Json list = Json::array({"a", "b\"c"});
  CHECK(read_back(list) == list);
}

}  // namespace
}  // namespace trainscope
