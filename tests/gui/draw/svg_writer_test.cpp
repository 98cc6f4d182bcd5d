// SVG: an element a drawn item, text as text, clips that close.
#include "gui/draw/svg_writer.h"

#include <doctest/doctest.h>

#include <string>

namespace trainscope::gui {
namespace {

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_CASE("SvgWriter: each item is an element with its colour and place") {
  const Fonts fonts;
  SvgWriter svg(fonts, {200.0F, 100.0F});
  svg.fill({10.0F, 20.0F, 30.5F, 40.0F}, rgb(0x112233), 3.0F);
  svg.line({0.0F, 0.0F}, {5.0F, 5.0F}, {.color = rgb(0xff0000), .width = 2.0F, .dashed = true});
  svg.circle({50.0F, 50.0F}, 4.0F, with_alpha(rgb(0x00ff00), 0.5F));
  const Point curve[] = {{0.0F, 0.0F}, {1.0F, 2.0F}, {3.0F, 4.0F}, {5.0F, 6.0F}};
  svg.bezier(curve, {.color = rgb(0x0000ff)});
  const std::string file = svg.file();
  CHECK(file.find(R"(<rect x="10" y="20" width="30.5" height="40" rx="3" fill="#112233"/>)") !=
        std::string::npos);
  CHECK(file.find("stroke-dasharray") != std::string::npos);
  CHECK(file.find(R"(fill-opacity="0.502")") != std::string::npos);
  CHECK(file.find(R"(<path d="M0,0 C1,2 3,4 5,6")") != std::string::npos);
  CHECK(file.find("<image") == std::string::npos);
}

TEST_CASE("SvgWriter: text stays text, escaped, as wide as measured") {
  const Fonts fonts;
  SvgWriter svg(fonts, {200.0F, 100.0F});
  svg.text({1.0F, 2.0F}, "a<b & \"c\"", Face::kBold, rgb(0x000000));
  const std::string file = svg.file();
  CHECK(file.find(">a&lt;b &amp; &quot;c&quot;</text>") != std::string::npos);
  CHECK(file.find("textLength=") != std::string::npos);
  CHECK(file.find(R"(font-weight="bold")") != std::string::npos);
}

TEST_CASE("SvgWriter: clips are groups that close, and hide what is outside") {
  const Fonts fonts;
  SvgWriter svg(fonts, {200.0F, 100.0F});
  svg.push_clip({0.0F, 0.0F, 50.0F, 50.0F});
  svg.push_clip({25.0F, 25.0F, 100.0F, 100.0F});
  CHECK(svg.clip() == Rect{25.0F, 25.0F, 25.0F, 25.0F});
  svg.fill({60.0F, 60.0F, 10.0F, 10.0F}, rgb(0x123456));
  svg.pop_clip();
  svg.pop_clip();
  const std::string file = svg.file();
  CHECK(count_of(file, "<g ") == 2);
  CHECK(count_of(file, "</g>") == 2);
  CHECK(count_of(file, "<clipPath") == 2);
  CHECK(file.find("#123456") == std::string::npos);
}

}  // namespace
}  // namespace trainscope::gui
