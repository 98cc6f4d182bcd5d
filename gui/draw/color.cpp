// Contrast by WCAG 2.1, distance by CIE 1976, colour blindness by Machado et al. (2009).
#include "gui/draw/color.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainscope::gui {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

double linear(std::uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

Triple linear(Color color) { return {linear(color.red), linear(color.green), linear(color.blue)}; }

Triple product(const Matrix& matrix, const Triple& v) {
  Triple result{};
  for (std::size_t i = 0; i < 3; ++i) {
    result[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
  }
  return result;
}

constexpr Matrix kXyzOfRgb = {{{0.4124564, 0.3575761, 0.1804375},
                               {0.2126729, 0.7151522, 0.0721750},
                               {0.0193339, 0.1191920, 0.9503041}}};
constexpr std::array<Matrix, 4> kVisions = {{
    {{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}}},
    {{{0.152286, 1.052583, -0.204868},
      {0.114503, 0.786281, 0.099216},
      {-0.003882, -0.048116, 1.051998}}},
    {{{0.367322, 0.860646, -0.227968},
      {0.280085, 0.672501, 0.047413},
      {-0.011820, 0.042940, 0.968881}}},
    {{{1.255528, -0.076749, -0.178779},
      {-0.078411, 0.930809, 0.147602},
      {0.004733, 0.691367, 0.303900}}},
}};

double luminance(Color color) { return product(kXyzOfRgb, linear(color))[1]; }

double lab_curve(double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116.0; }

Triple lab_as_seen(Color color, ColorVision vision) {
  Triple seen = product(kVisions[static_cast<std::size_t>(vision)], linear(color));
  for (double& channel : seen) channel = std::clamp(channel, 0.0, 1.0);
  const Triple xyz = product(kXyzOfRgb, seen);
  const double x = lab_curve(xyz[0] / 0.95047);  // white is D65
  const double y = lab_curve(xyz[1]);
  const double z = lab_curve(xyz[2] / 1.08883);
  return {116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)};
}

std::uint8_t blend(std::uint8_t a, std::uint8_t b, float share) {
  return static_cast<std::uint8_t>(
      std::lround(static_cast<float>(a) + (static_cast<float>(b) - static_cast<float>(a)) * share));
}

}  // namespace

Color with_alpha(Color color, float alpha) {
  color.alpha = static_cast<std::uint8_t>(std::lround(std::clamp(alpha, 0.0F, 1.0F) * 255.0F));
  return color;
}

Color mixed(Color a, Color b, float share) {
  return {blend(a.red, b.red, share), blend(a.green, b.green, share), blend(a.blue, b.blue, share),
          blend(a.alpha, b.alpha, share)};
}

Color over(Color top, Color below) {
  const float share = static_cast<float>(top.alpha) / 255.0F;
  top.alpha = 255;
  return mixed(below, top, share);
}

std::string hex_of(Color color) {
  return fmt::format("#{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
}

double contrast(Color a, Color b) {
  const double x = luminance(a) + 0.05;
  const double y = luminance(b) + 0.05;
  return std::max(x, y) / std::min(x, y);
}

Color ink_on(Color paper) {
  constexpr Color kBlack = rgb(0x000000);
  constexpr Color kWhite = rgb(0xffffff);
  return contrast(kBlack, paper) >= contrast(kWhite, paper) ? kBlack : kWhite;
}

double distance(Color a, Color b, ColorVision vision) {
  const Triple x = lab_as_seen(a, vision);
  const Triple y = lab_as_seen(b, vision);
  return std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

double least_distance(std::span<const Color> colors) {
  double least = std::numeric_limits<double>::infinity();
  for (const ColorVision vision : kColorVisions) {
    for (std::size_t i = 0; i < colors.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        least = std::min(least, distance(colors[i], colors[j], vision));
      }
    }
  }
  return least;
}

}  // namespace trainscope::gui
