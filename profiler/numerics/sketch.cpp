// A multiply, a shift and a multiply an element.
#include "profiler/numerics/sketch.h"

#include <cmath>
#include <cstddef>

namespace trainscope::profiler {

SketchPlace sketch_place(std::uint64_t index, std::uint64_t seed) {
  std::uint64_t h = ((index + 1) * 0x9E3779B97F4A7C15ull) ^ seed;
  h = (h ^ (h >> 32)) * 0xD6E8FEB86659FD93ull;
  return {.bucket = static_cast<int>(h >> 57), .negative = ((h >> 56) & 1) != 0};
}

void add_to_sketch(std::span<const double> elements, std::uint64_t first, Sketch& sketch,
                   std::uint64_t seed) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (!std::isfinite(elements[i])) continue;
    const SketchPlace place = sketch_place(first + i, seed);
    double& bucket = sketch[static_cast<std::size_t>(place.bucket)];
    bucket += place.negative ? -elements[i] : elements[i];
  }
}

double estimated_norm(const Sketch& sketch) {
  double sum = 0.0;
  for (const double bucket : sketch) sum += bucket * bucket;
  return std::sqrt(sum);
}

double estimated_distance(const Sketch& a, const Sketch& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace trainscope::profiler
