// Tests of the text helpers.
#include "engine/core/text.h"

#include <doctest/doctest.h>

namespace trainscope {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("nearest_name: finds one slip of the fingers, the nearest first") {
  const Names names = {"learning_rate", "momentum", "weight_decay", "decay"};
  CHECK(nearest_name("momentun", names) == "momentum");
  CHECK(nearest_name("mometnum", names) == "momentum");  // a swap
  CHECK(nearest_name("momntum", names) == "momentum");   // one missing
  CHECK(nearest_name("decays", names) == "decay");
  CHECK(nearest_name("weight_decy", names) == "weight_decay");
  CHECK(nearest_name("decay", names) == "decay");
}

TEST_CASE("nearest_name: of equally near ones the first") {
  CHECK(nearest_name("cat", Names{"bat", "rat"}) == "bat");
  CHECK(nearest_name("ab", Names{"ba", "ab"}) == "ab");
}

TEST_CASE("nearest_name: nothing when another word was meant") {
  const Names names = {"momentum", "decay"};
  CHECK_FALSE(nearest_name("batch", names));
  CHECK_FALSE(nearest_name("", names));
  CHECK_FALSE(nearest_name("x", Names{}));
  CHECK_FALSE(nearest_name("ab", Names{"xy"}));
  CHECK_FALSE(nearest_name(std::string(1000, 'a'), Names{std::string(1000, 'a')}));
}

TEST_CASE("nearest_hint: a question, safe to print, or nothing") {
  const std::vector<std::string_view> names = {"bi\x1b[mas"};
  CHECK(nearest_hint("bi\x1b[mat", names) == "did you mean 'bi\\x1b[mas'?");
  CHECK(nearest_hint("weight", names) == "");
}

TEST_CASE("join and split: undo each other") {
  CHECK(join(Names{}, ", ") == "");
  CHECK(join(Names{"a"}, ", ") == "a");
  CHECK(join(Names{"a", "", "c"}, ", ") == "a, , c");
  using Parts = std::vector<std::string_view>;
  CHECK(join(Parts{"x", "y"}, "") == "xy");
  CHECK(split("a,,b", ',') == Parts{"a", "", "b"});
  CHECK(split("", ',') == Parts{""});
  CHECK(split(",", ',') == Parts{"", ""});
  CHECK(split("abc", ',') == Parts{"abc"});
}

TEST_CASE("trim: blanks at both ends only") {
  CHECK(trim(" \t a b \r\n") == "a b");
  CHECK(trim("   ") == "");
  CHECK(trim("") == "");
}

TEST_CASE("parse_int: whole decimal numbers in range") {
  CHECK(parse_int("42") == 42);
  CHECK(parse_int("-7") == -7);
  CHECK(parse_int("9223372036854775807") == INT64_MAX);
  for (const char* bad : {"", "+1", " 1", "1 ", "1.0", "0x10", "9223372036854775808", "a", "-"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_int(bad));
  }
}

TEST_CASE("parse_number: finite numbers") {
  CHECK(parse_number("1e-3") == 1e-3);
  CHECK(parse_number("-0.5") == -0.5);
  CHECK(parse_number("3") == 3.0);
  for (const char* bad : {"", "nan", "inf", "1e999", "1,5", "1.0f", " 1", "--1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_number(bad));
  }
}

TEST_CASE("human_bytes: binary units, at most one decimal") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1 KiB");
  CHECK(human_bytes(std::uint64_t{1536} * 1024) == "1.5 MiB");
  CHECK(human_bytes((std::uint64_t{1} << 20) - 1) == "1 MiB");  // not "1024 KiB"
  CHECK(human_bytes(std::uint64_t{6} << 30) == "6 GiB");
  CHECK(human_bytes(UINT64_MAX) == "16 EiB");
}

TEST_CASE("is_valid_utf8: RFC 3629") {
  for (const char* good : {"", "abc", "\xC3\xA4", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
                           "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"}) {
    CAPTURE(good);
    CHECK(is_valid_utf8(good));
  }
  CHECK(is_valid_utf8(std::string_view("a\0b", 3)));
  // A lone continuation, overlong forms, a surrogate, beyond U+10FFFF, cut short, wrong followers.
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xF0\x80\x80\x80",
                          "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3",
                          "\xE2\x82", "\xF0\x9F\x98", "\xC3(", "a\xE2(\xAC"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_valid_utf8(bad));
  }
}

TEST_CASE("printable: keeps text, escapes what a terminal obeys or hides") {
  CHECK(printable("layer.0/weight:0") == "layer.0/weight:0");
  CHECK(printable("Gr\xC3\xB6\xC3\x9F"
                  "e \xE2\x82\xAC \xF0\x9F\x98\x80") ==
        "Gr\xC3\xB6\xC3\x9F"
        "e \xE2\x82\xAC \xF0\x9F\x98\x80");
  CHECK(printable("\x1b[31mred\x1b]0;title\x07") == "\\x1b[31mred\\x1b]0;title\\x07");
  CHECK(printable("a\nb\r\t\x7f") == "a\\nb\\r\\t\\x7f");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(printable("\xC2\x9B"
                  "1m") == "\\x9b1m");  // CSI as C1
  CHECK(printable("a\xE2\x80\xAE"
                  "b") == "a\\u{202e}b");                                // right-to-left override
  CHECK(printable("\xE2\x80\x8B\xEF\xBB\xBF") == "\\u{200b}\\u{feff}");  // zero width, mark
  CHECK(printable("\xFF\xC3") == "\\xff\\xc3");                          // not UTF-8
}

TEST_CASE("printable: shortens long text to its beginning and end") {
  const std::string text = std::string(100, 'a') + std::string(1000, 'b') + std::string(100, 'c');
  CHECK(printable(text, 30) ==
        std::string(20, 'a') + "..." + std::string(10, 'c') + " (1200 bytes)");
  CHECK(printable("abcdef", 6) == "abcdef");
}

TEST_CASE("printable: does not cut a character, survives bytes that are none") {
  std::string euros;
  for (int i = 0; i < 100; ++i) euros += "\xE2\x82\xAC";
  const std::string shortened = printable(euros, 31);
  CHECK(is_valid_utf8(shortened));
  CHECK(shortened.find("\\x") == std::string::npos);
  CHECK(is_valid_utf8(printable(std::string(500, '\x80'), 31)));
  CHECK(printable("abc", 0) == "... (3 bytes)");
}

TEST_CASE("shape_text and type_text: the form of printed graphs") {
  CHECK(shape_text(Shape{}) == "[]");
  CHECK(shape_text(Shape{2, 3}) == "[2,3]");
  CHECK(shape_text(std::vector<std::int64_t>{-1, 0, 9, 9, 9, 9, 9, 9, 9, 9}) ==
        "[-1,0,9,9,9,9,9,9,9,9]");
  CHECK(type_text({.dtype = DType::kF32, .shape = {2, 3}}) == "f32[2,3]");
  CHECK(type_text({.dtype = DType::kBool, .shape = {}}) == "bool[]");
}

TEST_CASE("matches_pattern: * any text, ? one byte, the whole name") {
  CHECK(matches_pattern("h.0.attn.bias", "*.bias"));
  CHECK(matches_pattern("h.0.attn.bias", "h.*.attn.*"));
  CHECK(matches_pattern("h.0.attn.bias", "h.?.attn.bias"));
  CHECK(matches_pattern("", "*"));
  CHECK(matches_pattern("", ""));
  CHECK(matches_pattern("abcbc", "a*bc"));
  CHECK(matches_pattern("abc", "***abc***"));
  CHECK(matches_pattern("aXbXc", "a*b*c"));
  CHECK_FALSE(matches_pattern("h.0.attn.bias", "bias"));
  CHECK_FALSE(matches_pattern("h.10.attn", "h.?.attn"));
  CHECK_FALSE(matches_pattern("", "?"));
  CHECK_FALSE(matches_pattern("abc", ""));
  CHECK_FALSE(matches_pattern("abcb", "a*bc"));
  CHECK_FALSE(matches_pattern("h.0.bias_x", "*.bias"));
}

TEST_CASE("shell_line: words as a shell takes them again") {
  CHECK(shell_line(std::vector<std::string>{"trainscope", "train", "m.onnx", "--lr=0.1"}) ==
        "trainscope train m.onnx --lr=0.1");
  CHECK(shell_line(std::vector<std::string>{"a b", "it's", ""}) == "'a b' 'it'\\''s' ''");
}

TEST_CASE("matches_pattern: many stars do not take exponential time") {
  std::string pattern;
  for (int i = 0; i < 50; ++i) pattern += "a*";
  CHECK_FALSE(matches_pattern(std::string(2000, 'a'), pattern + "b"));
}

}  // namespace
}  // namespace trainscope
