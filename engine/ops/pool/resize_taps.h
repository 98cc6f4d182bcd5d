// Where the elements of a resized axis come from: ONNX's coordinate transformations and filters.
#pragma once

#include <cstdint>

#include "engine/ops/pool/interpolate.h"

namespace trainscope {

enum class Filter : std::uint8_t { kNearest, kLinear, kCubic };
enum class Coordinates : std::uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,
  kTfCropAndResize,
};
enum class Nearest : std::uint8_t { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };

struct ResizeMode {
  Filter filter = Filter::kNearest;
  Coordinates coordinates = Coordinates::kHalfPixel;
  Nearest nearest = Nearest::kRoundPreferFloor;
  double cubic_coefficient = -0.75;
  bool exclude_outside = false;  // weights of places outside become 0, the others sum to 1
  bool antialias = false;        // where an axis shrinks, the filter covers what becomes one place
  double extrapolation = 0.0;    // what kTfCropAndResize gives outside
};

struct ResizedAxis {
  std::int64_t in = 0;        // elements, > 0
  std::int64_t out = 0;       // elements
  double scale = 1.0;         // out / in, or what the model says instead
  double length = 0.0;        // in * scale: `out` before it was rounded down
  double region_begin = 0.0;  // of kTfCropAndResize, as shares of the axis
  double region_end = 1.0;
};

// One tap for kNearest, two for kLinear, four for kCubic, more for wider filters; all inside the
// axis.
Taps resize_taps(const ResizeMode& mode, const ResizedAxis& axis);

// Whether every output is the input of the same place.
bool is_identity(const Taps& taps, std::int64_t size);

}  // namespace trainscope
