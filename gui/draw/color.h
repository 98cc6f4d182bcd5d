// Colours: sRGB of eight bits, how much they contrast, and how they look to people who see few.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace trainscope::gui {

struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  std::uint8_t alpha = 255;

  bool operator==(const Color&) const = default;
};

// 0xRRGGBB.
constexpr Color rgb(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value >> 16U), static_cast<std::uint8_t>(value >> 8U),
          static_cast<std::uint8_t>(value)};
}

Color with_alpha(Color color, float alpha);  // 0 to 1
// `share` of b, the rest of a.
Color mixed(Color a, Color b, float share);
// What is seen where a colour with alpha lies on an opaque one.
Color over(Color top, Color below);
std::string hex_of(Color color);  // "#1e1f22"

// The contrast ratio of WCAG 2.1, from 1 to 21, of opaque colours.
double contrast(Color a, Color b);
// Black or white, whichever is read better on it.
Color ink_on(Color paper);

// Complete dichromacy by the matrices of Machado, Oliveira and Fernandes (2009).
enum class ColorVision : std::uint8_t { kFull, kProtanopia, kDeuteranopia, kTritanopia };
inline constexpr std::array kColorVisions = {ColorVision::kFull, ColorVision::kProtanopia,
                                             ColorVision::kDeuteranopia, ColorVision::kTritanopia};

// The distance in CIE 1976 L*a*b* as that eye sees the two; 2.3 is just noticeable.
double distance(Color a, Color b, ColorVision vision);
// The least distance between two of the colours in any vision.
double least_distance(std::span<const Color> colors);

}  // namespace trainscope::gui
