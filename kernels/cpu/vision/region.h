// Regions of an image as bins: where the bins lie and what is read in them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/api/tensor_view.h"

namespace trainscope::cpu {

// Four elements of a plane around a point, and their weights.
template <typename T>
struct Corners {
  std::array<std::int64_t, 4> offset{};
  std::array<T, 4> weight{};
};

// Whether a coordinate is less than about one element outside an axis of `size`; nothing is near an
// axis without elements.
template <typename T>
bool is_near(T at, std::int64_t size) {
  return size > 0 && at >= T{-1} && at <= static_cast<T>(size);
}

// For coordinates that are near.
template <typename T>
Corners<T> corners_at(T y, T x, std::int64_t height, std::int64_t width) {
  Corners<T> corners;
  const T py = std::clamp(y, T{0}, static_cast<T>(height - 1));
  const T px = std::clamp(x, T{0}, static_cast<T>(width - 1));
  const auto top = static_cast<std::int64_t>(py);
  const auto left = static_cast<std::int64_t>(px);
  const std::int64_t bottom = std::min(top + 1, height - 1);
  const std::int64_t right = std::min(left + 1, width - 1);
  const T dy = py - static_cast<T>(top);
  const T dx = px - static_cast<T>(left);
  corners.offset = {top * width + left, top * width + right, bottom * width + left,
                    bottom * width + right};
  corners.weight = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
  return corners;
}

// The bins of a region in elements: where the first begins and how large each is, [top, left,
// height, width], and their samples.
template <typename T>
struct SampledRegion {
  static constexpr std::int64_t kMostElements = 4096;  // of a bin along an axis, that have a sample
  static constexpr std::int64_t kMostGiven = 1024;     // samples

  T top, left;
  T bin_height, bin_width;
  std::int64_t rows, columns;  // of samples in a bin

  // given: samples of a bin along each axis; 0: one for each element.
  SampledRegion(const T* bins, std::int64_t given)
      : top(bins[0]), left(bins[1]), bin_height(bins[2]), bin_width(bins[3]) {
    const auto samples = [given](T bin) {
      if (given > 0) return std::min(given, kMostGiven);
      const T wanted = std::min(std::ceil(bin), static_cast<T>(kMostElements));
      return wanted > T{0} ? static_cast<std::int64_t>(wanted) : 0;
    };
    rows = samples(bin_height);
    columns = samples(bin_width);
  }

  // f(corners) for each sample of bin (y, x), row by row; the samples outside the image are told
  // last and once, as corners without weight.
  template <class F>
  void for_each_sample(std::int64_t y, std::int64_t x, const Shape& image, F&& f) const {
    bool outside = false;
    for (std::int64_t row = 0; row < rows; ++row) {
      const T at_y = top + static_cast<T>(y) * bin_height +
                     (static_cast<T>(row) + T{0.5}) * bin_height / static_cast<T>(rows);
      if (!is_near(at_y, image[2])) {
        outside = true;
        continue;
      }
      for (std::int64_t column = 0; column < columns; ++column) {
        const T at_x = left + static_cast<T>(x) * bin_width +
                       (static_cast<T>(column) + T{0.5}) * bin_width / static_cast<T>(columns);
        if (is_near(at_x, image[3])) {
          f(corners_at(at_y, at_x, image[2], image[3]));
        } else {
          outside = true;
        }
      }
    }
    if (outside && rows * columns > 0) f(Corners<T>{});
  }
  T mean_factor() const { return T{1} / static_cast<T>(std::max<std::int64_t>(1, rows * columns)); }
};

}  // namespace trainscope::cpu
