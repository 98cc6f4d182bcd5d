// Pictures of panels as SVG: every text that is seen is a text of the file.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/markup.h"
#include "gui/panels/panels.h"
#include "tests/gui/platform/window_driver.h"

namespace trainscope::gui {
namespace {

using test::WindowDriver;

struct SvgText {
  float x = 0.0F;  // where it begins, on its base line
  float y = 0.0F;
  std::string text;  // as the file has it
};

float number_after(std::string_view element, std::string_view name) {
  const std::size_t at = element.find(name);
  REQUIRE(at != std::string_view::npos);
  return std::strtof(std::string(element.substr(at + name.size())).c_str(), nullptr);
}

std::vector<SvgText> texts_of(std::string_view svg) {
  std::vector<SvgText> texts;
  constexpr std::string_view kBegin = "<text ";
  for (std::size_t at = svg.find(kBegin); at != std::string_view::npos;
       at = svg.find(kBegin, at + 1)) {
    const std::string_view element = svg.substr(at, svg.find("</text>", at) - at);
    texts.push_back({.x = number_after(element, " x=\""),
                     .y = number_after(element, " y=\""),
                     .text = std::string(element.substr(element.rfind('>') + 1))});
  }
  return texts;
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// Whether `drawn` is the label, or as much of it as there is room for: "a long na…", "a lo…name".
// Of a number its unit is a text of its own.
bool is_of(const Item& item, const std::string& drawn) {
  const std::string label = markup_text(item.label);
  if (drawn == label) return true;
  if (item.kind == ItemKind::kNumber) return !drawn.empty() && label.starts_with(drawn);
  static constexpr std::string_view kLeftOut = "…";
  const std::size_t at = drawn.find(kLeftOut);
  return at != std::string::npos && label.starts_with(drawn.substr(0, at)) &&
         label.ends_with(drawn.substr(at + kLeftOut.size()));
}

// Whether one of the texts stands where the item was drawn, and is its label.
bool has_text(const std::vector<SvgText>& texts, const Item& item) {
  return std::ranges::any_of(texts, [&](const SvgText& text) {
    const bool is_there = std::abs(text.x - item.text.x) < 0.02F && text.y > item.text.y &&
                          text.y < item.text.bottom();
    return is_there && is_of(item, text.text);
  });
}

TEST_SUITE_BEGIN("gui");

TEST_CASE("svg: every label and number of every panel is a text of its picture, where it is") {
  WindowDriver window(test::text_run().folder());
  REQUIRE(window.workbench().select_named("call:7"));
  for (const Panel& panel : all_panels()) {
    INFO(panel.id);
    window.app().show_only(panel.id);
    window.settle();
    const std::string svg = window.svg();
    const std::vector<SvgText> texts = texts_of(svg);
    std::size_t labels = 0;
    for (const Item& item : window.items().items()) {
      const bool is_text = item.kind == ItemKind::kLabel || item.kind == ItemKind::kNumber;
      if (!is_text || item.label.empty() || item.seen.empty()) continue;
      INFO(item.path, " '", item.label, "'");
      CHECK(has_text(texts, item));
      ++labels;
    }
    CHECK(labels > 3);
    CHECK(svg.find("<image") == std::string::npos);
    CHECK(count_of(svg, "<g ") == count_of(svg, "</g>"));
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace trainscope::gui
