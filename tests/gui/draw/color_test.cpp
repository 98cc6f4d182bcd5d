// Contrast and distances of colours against published numbers; the themes against the rules.
#include "gui/draw/color.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gui/draw/theme.h"

namespace trainscope::gui {
namespace {

TEST_CASE("contrast: WCAG's own examples") {
  CHECK(contrast(rgb(0x000000), rgb(0xffffff)) == doctest::Approx(21.0));
  CHECK(contrast(rgb(0x777777), rgb(0xffffff)) == doctest::Approx(4.48).epsilon(0.01));
  CHECK(contrast(rgb(0xff0000), rgb(0xffffff)) == doctest::Approx(4.0).epsilon(0.01));
  CHECK(contrast(rgb(0x123456), rgb(0x123456)) == doctest::Approx(1.0));
}

TEST_CASE("distance: red and green come together for who sees no red or no green") {
  const Color red = rgb(0xb04030);
  const Color green = rgb(0x607020);
  const double full = distance(red, green, ColorVision::kFull);
  CHECK(distance(red, green, ColorVision::kDeuteranopia) < 0.5 * full);
  CHECK(distance(red, green, ColorVision::kProtanopia) < 0.8 * full);
  CHECK(distance(rgb(0x000000), rgb(0xffffff), ColorVision::kFull) ==
        doctest::Approx(100.0).epsilon(0.001));
}

TEST_CASE("least_distance: of the nearest pair in the worst vision") {
  const std::vector<Color> colors = {rgb(0x000000), rgb(0x0000ff), rgb(0xffffff)};
  double least = 1e9;
  for (const ColorVision vision : kColorVisions) {
    least =
        std::min({least, distance(colors[0], colors[1], vision),
                  distance(colors[0], colors[2], vision), distance(colors[1], colors[2], vision)});
  }
  CHECK(least_distance(colors) == doctest::Approx(least));
}

TEST_CASE("over: alpha between, and its ends") {
  CHECK(over(with_alpha(rgb(0xffffff), 1.0F), rgb(0x000000)) == rgb(0xffffff));
  CHECK(over(with_alpha(rgb(0xffffff), 0.0F), rgb(0x102030)) == rgb(0x102030));
  CHECK(over(Color{255, 255, 255, 128}, rgb(0x000000)) == rgb(0x808080));
}

TEST_CASE("ink_on: is read at 4.5 on any colour") {
  for (int red = 0; red < 256; red += 17) {
    for (int green = 0; green < 256; green += 17) {
      for (int blue = 0; blue < 256; blue += 51) {
        const Color paper{static_cast<std::uint8_t>(red), static_cast<std::uint8_t>(green),
                          static_cast<std::uint8_t>(blue)};
        REQUIRE(contrast(ink_on(paper), paper) >= 4.5);
      }
    }
  }
}

TEST_CASE("themes: all inks are read on all papers at 4.5") {
  for (const ThemeName name : kThemeNames) {
    const Theme& theme = theme_of(name);
    for (const Color paper : theme.papers()) {
      for (const Color ink : theme.inks()) {
        INFO(theme.name, " ", hex_of(ink), " on ", hex_of(paper));
        CHECK(contrast(ink, paper) >= 4.5);
      }
    }
    CHECK(contrast(theme.accent_ink, theme.accent) >= 4.5);
  }
}

TEST_CASE("themes: classes, phases and differences are told apart in every vision") {
  for (const ThemeName name : kThemeNames) {
    const Theme& theme = theme_of(name);
    INFO(theme.name);
    CHECK(least_distance(theme.series) >= 19.9);
    CHECK(least_distance(theme.phases) >= 19.9);
    CHECK(least_distance(theme.differences) >= 19.9);
    // Marks are seen on what lies under them.
    for (const Color color : theme.series) {
      CHECK(contrast(color, theme.inset) >= 2.9);
      CHECK(contrast(color, theme.panel) >= 2.7);
    }
  }
}

TEST_CASE("theme_named: finds each by its name, and no other") {
  for (const ThemeName name : kThemeNames) CHECK(theme_named(theme_of(name).name) == name);
  CHECK_FALSE(theme_named("purple").has_value());
}

}  // namespace
}  // namespace trainscope::gui
