// Tests of JSON values and their parser.
#include "engine/core/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

std::string parse_message(std::string_view text, const JsonLimits& limits = {}) {
  const Error error = error_of([&] { Json::parse(text, limits); });
  CHECK(error.code() == ErrorCode::kBadInput);
  return error.message();
}

TEST_CASE("json: parses every type and keeps the order of members") {
  const Json json = Json::parse(
      R"( {"z": null, "a": [true, false], "i": -9223372036854775808, "d": 1.5, "s": "\u00e4\n"} )");
  CHECK(json.as_object().keys() == std::vector<std::string>{"z", "a", "i", "d", "s"});
  CHECK(json.at("z").is_null());
  CHECK(json.at("a").at(0).as_bool());
  CHECK_FALSE(json.at("a").at(1).as_bool());
  CHECK(json.at("i").as_int() == INT64_MIN);
  CHECK(json.at("d").as_number() == 1.5);
  CHECK(json.at("s").as_string() == "\xC3\xA4\n");
  CHECK(json.size() == 5);
}

TEST_CASE("json: integers stay integers, beyond int64 they become doubles") {
  CHECK(Json::parse("9223372036854775807").as_int() == INT64_MAX);
  CHECK(Json::parse("9223372036854775808").type() == JsonType::kDouble);
  CHECK(Json::parse("3.0").type() == JsonType::kDouble);
  CHECK(Json(UINT64_MAX).as_number() == 18446744073709551616.0);
  CHECK(Json(std::uint64_t{7}).as_int() == 7);
}

TEST_CASE("json: malformed text is refused with line and column") {
  struct Case {
    std::string text;
    const char* message;
  };
  const Case cases[] = {
      {"", "JSON, line 1, column 1: "},
      {"{\"a\": 1,\n  \"b\": }", "JSON, line 2, column 8: "},
      {"[1, 2", "JSON, line 1, column 5: "},
      {"{\"a\" 1}", "JSON, line 1, column 6: "},
      {"[1] x", "JSON, line 1, column 5: "},
      {"nul", "invalid literal"},
      {"[01]", "expected ']'"},
      {"\"\\ud800\"", "surrogate"},
      {"\"a\nb\"", "control character"},
      {"\"\xFF\"", "ill-formed UTF-8"},
      {"1e999", "number overflow"},
      {"[NaN]", "JSON, line 1, column 2: "},
      {"{'a': 1}", "JSON, line 1, column 2: "},
      {"[1,]", "JSON, line 1, column 4: "},
      {"// comment\n1", "JSON, line 1, column 1: "},
      {std::string("[1]\0]", 5), "JSON, line 1, column 4: NUL character"},
      {std::string("\"a\0b\"", 5), "JSON, line 1, column 3: NUL character"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const std::string message = parse_message(c.text);
    CAPTURE(message);
    CHECK(contains(message, c.message));
    CHECK_FALSE(contains(message, "json.exception"));
  }
}

TEST_CASE("json: a duplicate key is refused") {
  CHECK(parse_message("{\"a\": 1, \"b\": 2,\n \"a\": 3}") ==
        "JSON, line 2, column 4: duplicate key 'a'");
  CHECK(
      contains(parse_message(R"({"x": {"k\u001b": 1, "k\u001b": 1}})"), "duplicate key 'k\\x1b'"));
  CHECK(Json::parse(R"([{"a": 1}, {"a": 1}])").size() == 2);
}

TEST_CASE("json: depth is limited to 64, without recursion for deeper text") {
  const std::string good = std::string(64, '[') + std::string(64, ']');
  CHECK(Json::parse(good).dump() == good);
  CHECK(parse_message(std::string(65, '[') + std::string(65, ']')) ==
        "JSON, line 1, column 65: nested deeper than 64 levels");
  CHECK(contains(parse_message(std::string(200'000, '[')), "nested deeper than 64 levels"));
  CHECK(contains(parse_message("[[1]]", {.max_depth = 1}), "nested deeper than 1 levels"));
}

TEST_CASE("json: text longer than the limit is refused before it is parsed") {
  CHECK(parse_message("[1, 2, 3]", {.max_bytes = 8}) ==
        "JSON text of 9 B is longer than the allowed 8 B");
}

TEST_CASE("json: large objects are built in reasonable time and found by key") {
  Json json = Json::object();
  for (int i = 0; i < 100'000; ++i) json.set("key" + std::to_string(i), i);
  CHECK(json.at("key99999").as_int() == 99'999);
  const Json again = Json::parse(json.dump());
  CHECK(again == json);
  CHECK(again.find("key100000") == nullptr);
  json.set("key5", "new");
  CHECK(json.size() == 100'000);
  CHECK(json.at("key5").as_string() == "new");
}

TEST_CASE("json: lookup around the size at which the index begins") {
  Json json;
  for (int i = 0; i < 40; ++i) {
    json.set("k" + std::to_string(i), i);
    for (int j = 0; j <= i; ++j) CHECK(json.at("k" + std::to_string(j)).as_int() == j);
    CHECK_FALSE(json.contains("k" + std::to_string(i + 1)));
  }
}

TEST_CASE("json: errors name the key, what was expected and what was found") {
  const Json json = Json::parse(R"({"steps": "ten", "rate": 0.5, "big": 300, "list": [1]})");
  const auto message = [](auto action) { return error_of(action).message(); };
  const Error missing = error_of([&] { json.at("step"); });
  CHECK(missing.code() == ErrorCode::kBadInput);
  CHECK(missing.message() == "key 'step' is missing");
  CHECK(missing.hint() == "did you mean 'steps'?");
  CHECK(message([&] { json.get<int>("steps"); }) ==
        "key 'steps': expected an integer, found a string (\"ten\")");
  CHECK(message([&] { json.get<int>("rate"); }) ==
        "key 'rate': expected an integer, found a number (0.5)");
  CHECK(message([&] { json.get<std::uint8_t>("big"); }) == "key 'big': 300 is out of range");
  CHECK(message([&] { json.get<bool>("list"); }) ==
        "key 'list': expected true or false, found an array");
  CHECK(message([&] { json.get<double>("steps"); }) ==
        "key 'steps': expected a number, found a string (\"ten\")");
  CHECK(message([&] { json.get<std::string>("rate"); }) ==
        "key 'rate': expected a string, found a number (0.5)");
  CHECK(message([&] { json.array_at("rate"); }) ==
        "key 'rate': expected an array, found a number (0.5)");
  CHECK(message([&] { json.object_at("list"); }) ==
        "key 'list': expected an object, found an array");
  CHECK(message([&] { json.at("list").at(1); }) == "item 1 is missing: the array has 1");
  CHECK(message([&] { json.as_array(); }) == "expected an array, found an object");
  CHECK(message([&] { Json().as_string(); }) == "expected a string, found null");
  CHECK(message([&] { Json(1).at("a"); }) == "expected an object, found an integer (1)");
}

TEST_CASE("json: get and get_or convert, an absent key gives the fallback") {
  const Json json = Json::parse(R"({"n": 3, "x": 2.5, "s": "a", "b": true, "null": null})");
  CHECK(json.get<int>("n") == 3);
  CHECK(json.get<double>("n") == 3.0);
  CHECK(json.get<float>("x") == 2.5F);
  CHECK(json.get<std::string>("s") == "a");
  CHECK(json.get_or("b", false));
  CHECK(json.get_or("m", 7) == 7);
  CHECK(json.get_or("m", "text") == "text");
  CHECK(json.get_or("s", "text") == "a");
  CHECK(json.get_or("x", 1.0) == 2.5);
  // Present but of another type is an error, not the fallback.
  CHECK_THROWS_AS(json.get_or("null", 1), Error);
}

TEST_CASE("json: builds by literals and writes compact or indented") {
  Json json = Json::object({{"a", 1}, {"b", Json::array({"x", nullptr, true})}});
  json.set("c", Json::object()).set("d", Json::list(std::vector<double>{0.5, 2}));
  CHECK(json.dump() == R"({"a":1,"b":["x",null,true],"c":{},"d":[0.5,2.0]})");
  CHECK(json.dump(2) == R"({
  "a": 1,
  "b": [
    "x",
    null,
    true
  ],
  "c": {},
  "d": [
    0.5,
    2.0
  ]
})");
  Json list;
  list.push_back(1).push_back("two");
  CHECK(list.dump() == R"([1,"two"])");
}

TEST_CASE("json: doubles are written shortest and read back equal") {
  CHECK(Json(0.1).dump() == "0.1");
  CHECK(Json(3.0).dump() == "3.0");
  CHECK(Json(-0.0).dump() == "-0.0");
  CHECK(Json(1e300).dump() == "1e+300");
  for (double value : {1.0 / 3, 5e-324, std::numeric_limits<double>::max(), 123456789.0, 1e15, 1e16,
                       -2.5e-7, std::nextafter(1.0, 2.0)}) {
    CAPTURE(value);
    const Json again = Json::parse(Json(value).dump());
    CHECK(again.type() == JsonType::kDouble);
    CHECK(again.as_number() == value);
  }
}

TEST_CASE("json: NaN and infinities are written as null") {
  const Json json = Json::array({std::nan(""), HUGE_VAL, -HUGE_VAL});
  CHECK(json.dump() == "[null,null,null]");
}

TEST_CASE("json: strings are escaped, bytes that are not UTF-8 replaced") {
  CHECK(Json("a\"\\\n\r\t\x01\x7f/").dump() == R"("a\"\\\n\r\t\u0001\u007f/")");
  CHECK(Json("\xE2\x82\xAC").dump() == "\"\xE2\x82\xAC\"");
  CHECK(Json("a\xFF\xE2\x82").dump() == "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
  const std::string nul("a\0b", 3);
  CHECK(Json(nul).dump() == R"("a\u0000b")");
  CHECK(Json::parse(Json(nul).dump()).as_string() == nul);
}

TEST_CASE("json: a value nested too deep is refused by dump") {
  Json json = 1;
  for (int i = 0; i < 64; ++i) json = Json::array({json});
  CHECK(json.dump().size() == 129);
  json = Json::array({json});
  CHECK(error_of([&] { json.dump(); }).message() ==
        "JSON nested deeper than 64 levels cannot be written");
}

TEST_CASE("json: equality looks at type, order and content") {
  CHECK(Json::parse("{\"a\":[1]}") == Json::object({{"a", Json::array({1})}}));
  CHECK_FALSE(Json(1) == Json(1.0));
  CHECK_FALSE(Json::parse(R"({"a":1,"b":2})") == Json::parse(R"({"b":2,"a":1})"));
}

TEST_CASE("json: read_json_file names the file in its errors") {
  const TemporaryFolder folder;
  put(folder / "good.json", "{\"a\": 1}\n");
  CHECK(read_json_file(folder / "good.json").get<int>("a") == 1);
  put(folder / "bad.json", "{\"a\": }");
  const Error error = error_of([&] { read_json_file(folder / "bad.json"); });
  REQUIRE(error.context().size() == 1);
  CHECK(contains(error.context()[0], "bad.json"));
  CHECK(error_of([&] { read_json_file(folder / "none.json"); }).code() == ErrorCode::kIo);
}

}  // namespace
}  // namespace trainscope
