// The packed fonts, their sizes, and what becomes of characters that they lack.
#include "gui/draw/fonts.h"

#include <doctest/doctest.h>

#include <string>

#include "gui/draw/code_points.h"
#include "gui/draw/font_files.h"
#include "gui/draw/installed_fonts.h"

namespace trainscope::gui {
namespace {

TEST_CASE("font files: packed, with Latin, Greek, Cyrillic and arrows") {
  for (const FontFile file : {FontFile::kSans, FontFile::kSansBold, FontFile::kMono}) {
    for (const char32_t c : {U'A', U'z', U'0', U'é', U'λ', U'Ω', U'Ж', U'→', U'▼'}) {
      CHECK(has_glyph(bytes_of(file), c));
    }
    CHECK_FALSE(has_glyph(bytes_of(file), U'\U00020000'));
  }
}

TEST_CASE("width: grows with the text, and with the scale stays nearly the same") {
  const Fonts small;
  const Fonts large({.scale = 3.0F});
  CHECK(small.width("", Face::kText) == 0.0F);
  CHECK(small.width("mm", Face::kText) == doctest::Approx(2.0F * small.width("m", Face::kText)));
  CHECK(small.width("iiii", Face::kNumber) == small.width("0000", Face::kNumber));
  CHECK(small.width("iiii", Face::kText) < small.width("mmmm", Face::kText));
  const std::string text = "/h.11/attn/MatMul forward";
  CHECK(large.width(text, Face::kText) ==
        doctest::Approx(small.width(text, Face::kText)).epsilon(0.08));
  CHECK(large.metrics(Face::kText).line_height == doctest::Approx(14.0F));
}

TEST_CASE("shown: a letter that is not in the atlas is U+XXXX until the atlas is settled") {
  Fonts fonts;
  std::string storage;
  CHECK(fonts.shown("plain", Face::kText, storage) == "plain");
  CHECK(fonts.shown("λ", Face::kText, storage) == "U+03BB");
  CHECK(fonts.settle());
  CHECK(fonts.shown("λЖ", Face::kText, storage) == "λU+0416");
  CHECK(fonts.settle());
  CHECK(fonts.shown("λЖ", Face::kText, storage) == "λЖ");
  CHECK_FALSE(fonts.settle());
}

TEST_CASE("shown: what no font has stays U+XXXX, and is asked for once") {
  Fonts fonts;
  std::string storage;
  CHECK(fonts.shown("\xee\x80\x80", Face::kText, storage) == "U+E000");
  fonts.settle();
  CHECK(fonts.shown("\xee\x80\x80", Face::kText, storage) == "U+E000");
  CHECK_FALSE(fonts.settle());
  CHECK(fonts.shown("\U0001F600", Face::kText, storage) == "U+1F600");
  CHECK(fonts.shown("a\nb", Face::kText, storage) == "aU+000Ab");
  CHECK(fonts.shown("a\xff", Face::kText, storage) == "a\xEF\xBF\xBD");
}

TEST_CASE("resize: another atlas, or none where nothing changes") {
  Fonts fonts;
  CHECK_FALSE(fonts.resize({}));
  CHECK(fonts.resize({.text = 20.0F}));
  CHECK(fonts.metrics(Face::kText).line_height == 20.0F);
  CHECK(fonts.metrics(Face::kNumber).line_height == 13.0F);
}

TEST_CASE("code points: encoded and decoded, damaged bytes one by one") {
  for (const char32_t c : {U'a', U'é', U'λ', U'→', U'\U0001F600'}) {
    std::string text;
    append_utf8(text, c);
    CHECK(first_code_point(text).value == c);
    CHECK(first_code_point(text).bytes == text.size());
    CHECK(bytes_before(text, text.size()) == text.size());
  }
  for (const char* damaged :
       {"\xff", "\xc3", "\xe2\x86", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
    CHECK(first_code_point(damaged).value == kReplacement);
    CHECK(first_code_point(damaged).bytes == 1);
  }
}

}  // namespace
}  // namespace trainscope::gui
