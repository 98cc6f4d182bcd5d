// Characters to ids and back; every way in which bytes are not UTF-8.
#include "datasets/vocabulary.h"

#include <doctest/doctest.h>

#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

using Ids = std::vector<std::uint16_t>;
using namespace std::string_literals;

}  // namespace

TEST_CASE("vocabulary: ids are positions among the sorted distinct characters") {
  const Vocabulary vocabulary = Vocabulary::of("hello\n");
  CHECK(vocabulary.size() == 5);  // \n e h l o
  CHECK(vocabulary.encode("hello\n") == Ids{2, 1, 3, 3, 4, 0});
  CHECK(vocabulary.decode(std::vector<std::int64_t>{4, 1, 0}) == "oe\n");
  CHECK(vocabulary.to_json().dump() == R"("\nehlo")");
}

TEST_CASE("vocabulary: characters of two, three and four bytes are one id each") {
  const std::string text = "zé€😀é";
  const Vocabulary vocabulary = Vocabulary::of(text);
  CHECK(vocabulary.size() == 4);
  const Ids ids = vocabulary.encode(text);
  CHECK(ids == Ids{0, 1, 2, 3, 1});
  CHECK(vocabulary.decode(std::vector<std::int64_t>(ids.begin(), ids.end())) == text);
}

TEST_CASE("vocabulary: through JSON and back, NUL and the last code point too") {
  const std::string text = "b\0a\x7f\"\\\xF4\x8F\xBF\xBF"s;
  const Vocabulary vocabulary = Vocabulary::of(text);
  const Vocabulary back = Vocabulary::from_json(Json::parse(vocabulary.to_json().dump()));
  CHECK(back.size() == 7);
  CHECK(back.encode(text) == vocabulary.encode(text));
}

TEST_CASE("vocabulary: bytes that are not UTF-8 are refused with their offset") {
  struct Row {
    std::string text;
    const char* message;
  };
  const Row rows[] = {
      {"ab\x80", "byte 2 (0x80) is not valid UTF-8"},            // continuation alone
      {"\xC3(", "byte 0 (0xc3) is not valid UTF-8"},             // continuation missing
      {"a\xC3", "byte 1 (0xc3) is not valid UTF-8"},             // cut short
      {"\xC0\xAF", "byte 0 (0xc0) is not valid UTF-8"},          // overlong
      {"\xE0\x80\xAF", "byte 0 (0xe0) is not valid UTF-8"},      // overlong
      {"x\xED\xA0\x80", "byte 1 (0xed) is not valid UTF-8"},     // surrogate
      {"\xF4\x90\x80\x80", "byte 0 (0xf4) is not valid UTF-8"},  // beyond U+10FFFF
      {"\xF5\x80\x80\x80", "byte 0 (0xf5) is not valid UTF-8"},
      {"\xF0\x8F\xBF\xBF", "byte 0 (0xf0) is not valid UTF-8"},  // overlong
      {"é\xFF", "byte 2 (0xff) is not valid UTF-8"},
      {"caf\xE9 latin-1", "byte 3 (0xe9) is not valid UTF-8"},
      {"\xFF\xFE"
       "a\0"s,
       "byte 0 (0xff) is not valid UTF-8"},              // UTF-16
      {"\xE2\x82", "byte 0 (0xe2) is not valid UTF-8"},  // euro sign cut short
  };
  for (const Row& row : rows) {
    const Error error = error_of([&] { Vocabulary::of(row.text); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(error.message() == row.message);
  }
}

TEST_CASE("vocabulary: unknown characters are named") {
  const Vocabulary vocabulary = Vocabulary::of("abc");
  const Error error = error_of([&] { vocabulary.encode("abé"); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(error.message() ==
        "the character 'é' (U+00E9) at byte 2 is not in the vocabulary of 3 characters");
  CHECK(contains(error_of([&] { vocabulary.encode("\x1b"); }).message(), "'\\x1b' (U+001B)"));
  CHECK(error_of([&] { vocabulary.encode("\xFF"); }).message() ==
        "byte 0 (0xff) is not valid UTF-8");
  CHECK(vocabulary.encode("").empty());
}

TEST_CASE("vocabulary: malformed lists are refused") {
  const auto message_of = [](const Json& json) {
    const Error error = error_of([&] { Vocabulary::from_json(json); });
    CHECK(error.code() == ErrorCode::kBadInput);
    return error.message();
  };
  CHECK(contains(message_of(Json()), "expected a string"));
  CHECK(contains(message_of(Json::array({"a", "b"})), "expected a string"));
  CHECK(contains(message_of(Json("")), "has 0 characters"));
  CHECK(contains(message_of(Json("ba")), "not in ascending order at 'a' (U+0061)"));
  CHECK(contains(message_of(Json("aa")), "not in ascending order"));
}

TEST_CASE("vocabulary: more characters than ids are refused") {
  std::string text;
  const auto add = [&](std::uint32_t c) {
    for (const int shift : {18, 12, 6, 0}) {
      const std::uint32_t bits = (c >> shift) & (shift == 18 ? 0x7U : 0x3FU);
      text += static_cast<char>((shift == 18 ? 0xF0U : 0x80U) | bits);
    }
  };
  for (std::uint32_t c = 0; c < 65536; ++c) add(0x10000 + c);
  CHECK(Vocabulary::of(text).size() == 65536);
  add(0x20000);
  const Error error = error_of([&] { Vocabulary::of(text); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "65537 distinct characters"));
}

}  // namespace trainscope
