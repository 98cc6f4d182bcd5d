// Coordinate transformations and filter weights of ONNX's Resize.
#include "engine/ops/pool/resize_taps.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainscope {
namespace {

constexpr std::int64_t kCubicTaps = 4;

struct Weighted {
  std::vector<double> weight;
  std::int64_t first = 0;  // place of the first weight
};

// Place `o` of the result in the input's coordinates.
double source_of(const ResizeMode& mode, const ResizedAxis& axis, std::int64_t o) {
  const auto place = static_cast<double>(o);
  const double last = static_cast<double>(axis.in - 1);
  switch (mode.coordinates) {
    case Coordinates::kHalfPixel:
      return (place + 0.5) / axis.scale - 0.5;
    case Coordinates::kHalfPixelSymmetric: {
      // What was cut off when the length was rounded down is missing on both sides alike.
      const double rounded = axis.length > 0.0 ? static_cast<double>(axis.out) / axis.length : 1.0;
      const double begin = 0.5 * static_cast<double>(axis.in) * (1.0 - rounded);
      return begin + (place + 0.5) / axis.scale - 0.5;
    }
    case Coordinates::kPytorchHalfPixel:
      return axis.out > 1 ? (place + 0.5) / axis.scale - 0.5 : 0.0;
    case Coordinates::kAlignCorners:
      return o == 0 ? 0.0 : place * last / (axis.length - 1.0);
    case Coordinates::kAsymmetric:
      return place / axis.scale;
    case Coordinates::kTfHalfPixelForNn:
      return (place + 0.5) / axis.scale;
    case Coordinates::kTfCropAndResize:
      if (axis.out <= 1) return 0.5 * (axis.region_begin + axis.region_end) * last;
      return axis.region_begin * last +
             place * (axis.region_end - axis.region_begin) * last / (axis.length - 1.0);
  }
  return 0.0;
}

double rounded(Nearest nearest, double x) {
  switch (nearest) {
    case Nearest::kRoundPreferFloor:
      return std::ceil(x - 0.5);
    case Nearest::kRoundPreferCeil:
      return std::floor(x + 0.5);
    case Nearest::kFloor:
      return std::floor(x);
    case Nearest::kCeil:
      return std::ceil(x);
  }
  return x;
}

// Keys' cubic convolution (1981) at a distance.
double cubic_weight(double d, double a) {
  if (d < 1.0) return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
  return d < 2.0 ? ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a : 0.0;
}

// How far the filter reaches where nothing shrinks.
double reach(Filter filter) { return filter == Filter::kCubic ? 2.0 : 1.0; }

// Where an axis shrinks, antialiasing makes the filter as much wider.
double stretch_of(const ResizeMode& mode, const ResizedAxis& axis) {
  return mode.antialias && mode.filter != Filter::kNearest ? std::min(axis.scale, 1.0) : 1.0;
}

// The stretched filter, from the first place that it reaches before floor(x); its weights sum to 1.
Weighted stretched_filter(const ResizeMode& mode, double x, double stretch) {
  const double floor = std::floor(x);
  const double before = std::floor(-reach(mode.filter) / stretch) + 1.0;
  const auto count = static_cast<std::size_t>(2.0 - 2.0 * before);
  Weighted found{.weight = std::vector<double>(count),
                 .first = static_cast<std::int64_t>(floor + before)};
  double sum = 0.0;
  for (std::size_t k = 0; k < count; ++k) {
    const double d = std::abs((floor + before + static_cast<double>(k) - x) * stretch);
    found.weight[k] = mode.filter == Filter::kCubic ? cubic_weight(d, mode.cubic_coefficient)
                                                    : std::max(0.0, 1.0 - d);
    sum += found.weight[k];
  }
  for (double& weight : found.weight) weight /= sum;
  return found;
}

Weighted filter_at(const ResizeMode& mode, double x) {
  const double floor = std::floor(x);
  const double t = x - floor;
  const auto place = static_cast<std::int64_t>(floor);
  switch (mode.filter) {
    case Filter::kNearest:
      return {.weight = {1.0}, .first = static_cast<std::int64_t>(rounded(mode.nearest, x))};
    case Filter::kLinear:
      return {.weight = {1.0 - t, t}, .first = place};
    case Filter::kCubic: {
      const auto at = [&mode](double d) { return cubic_weight(d, mode.cubic_coefficient); };
      return {.weight = {at(1.0 + t), at(t), at(1.0 - t), at(2.0 - t)}, .first = place - 1};
    }
  }
  return {};
}

std::int64_t taps_of(const ResizeMode& mode, const ResizedAxis& axis) {
  const double stretch = stretch_of(mode, axis);
  if (stretch < 1.0) {
    return static_cast<std::int64_t>(-2.0 * std::floor(-reach(mode.filter) / stretch));
  }
  return mode.filter == Filter::kNearest ? 1 : mode.filter == Filter::kLinear ? 2 : kCubicTaps;
}

// Unless no place is inside.
void exclude_outside(Weighted& weighted, std::int64_t count, std::int64_t size) {
  std::vector<double> kept(weighted.weight.size(), 0.0);
  double sum = 0.0;
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t place = weighted.first + k;
    if (place < 0 || place >= size) continue;
    kept[static_cast<std::size_t>(k)] = weighted.weight[static_cast<std::size_t>(k)];
    sum += kept[static_cast<std::size_t>(k)];
  }
  if (sum == 0.0) return;
  for (double& weight : kept) weight /= sum;
  weighted.weight = kept;
}

}  // namespace

Taps resize_taps(const ResizeMode& mode, const ResizedAxis& axis) {
  Taps taps{.outputs = axis.out, .count = taps_of(mode, axis)};
  const double stretch = stretch_of(mode, axis);
  const auto last = static_cast<double>(axis.in - 1);
  const bool crops = mode.coordinates == Coordinates::kTfCropAndResize;
  for (std::int64_t o = 0; o < axis.out; ++o) {
    const double exact = source_of(mode, axis, o);
    const bool outside = crops && (exact < 0.0 || exact > last);
    // Further out all places are the nearest end: no number is too large for an integer.
    const double place = std::clamp(exact, -4.0, last + 4.0);
    Weighted weighted =
        stretch < 1.0 ? stretched_filter(mode, place, stretch) : filter_at(mode, place);
    if (mode.exclude_outside) exclude_outside(weighted, taps.count, axis.in);
    for (std::int64_t k = 0; k < taps.count; ++k) {
      taps.index.push_back(std::clamp<std::int64_t>(weighted.first + k, 0, axis.in - 1));
      taps.weight.push_back(outside ? 0.0 : weighted.weight[static_cast<std::size_t>(k)]);
    }
    if (crops) taps.offset.push_back(outside ? mode.extrapolation : 0.0);
  }
  return taps;
}

bool is_identity(const Taps& taps, std::int64_t size) {
  if (taps.outputs != size) return false;
  for (std::int64_t o = 0; o < size; ++o) {
    double own = 0.0;
    for (std::int64_t t = o * taps.count; t < (o + 1) * taps.count; ++t) {
      const auto i = static_cast<std::size_t>(t);
      if (taps.index[i] == o) {
        own += taps.weight[i];
      } else if (taps.weight[i] != 0.0) {
        return false;
      }
    }
    if (own != 1.0) return false;
  }
  return true;
}

}  // namespace trainscope
