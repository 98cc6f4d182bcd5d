// Means and maxima of the bins of regions, and their gradients.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/api/kernel.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/vision/region.h"

namespace trainscope::cpu {
namespace {

// x [N, C, H, W], y [regions, C, height, width]
struct Sizes {
  Shape image;
  std::int64_t plane;
  std::int64_t channels;
  std::int64_t regions;
  std::int64_t width;  // bins in a row
  std::int64_t height;
  std::int64_t bins;

  Sizes(const Shape& x, const Shape& y)
      : image(x),
        plane(x[2] * x[3]),
        channels(x[1]),
        regions(y[0]),
        width(y[3]),
        height(y[2]),
        bins(y.elements() == 0 ? 0 : y[2] * y[3]) {}
};

// An element of a plane and what its gradient is multiplied with.
template <typename T>
struct Source {
  T value = -std::numeric_limits<T>::infinity();
  T weight = 0;
  std::int64_t offset = -1;  // none
};

// --- RegionMean, RegionMax: bins [R, 4], examples [R], samples []
// ---------------------------------

template <typename T>
struct Sampled {
  const Sizes& s;
  const T* bins;
  const std::int64_t* example_of;
  std::int64_t samples;

  // `first`: the number of the input that holds the bins.
  Sampled(const RunArgs& run, const Sizes& sizes, std::size_t first)
      : s(sizes),
        bins(run.inputs[first].as<const T>()),
        example_of(run.inputs[first + 1].as<const std::int64_t>()),
        samples(*run.inputs[first + 2].as<const std::int64_t>()) {}

  std::int64_t example(std::int64_t region) const { return example_of[region]; }

  // f(offset, weight) for the elements that the mean of a bin is made of.
  template <class F>
  void for_each_chunk(std::int64_t region, std::int64_t bin, F&& f) const {
    const SampledRegion<T> r(bins + 4 * region, samples);
    const T factor = r.mean_factor();
    r.for_each_sample(bin / s.width, bin % s.width, s.image, [&](const Corners<T>& c) {
      for (std::size_t k = 0; k < 4; ++k) {
        if (c.weight[k] != T{0}) f(c.offset[k], c.weight[k] * factor);
      }
    });
  }

  // The first of the largest weighted elements of a bin.
  Source<T> largest(std::int64_t region, std::int64_t bin, const T* plane) const {
    Source<T> best;
    const SampledRegion<T> r(bins + 4 * region, samples);
    r.for_each_sample(bin / s.width, bin % s.width, s.image, [&](const Corners<T>& c) {
      for (std::size_t k = 0; k < 4; ++k) {
        // Outside of the plane there is nothing to read.
        const T value = c.weight[k] == T{0} ? T{0} : c.weight[k] * plane[c.offset[k]];
        if (value > best.value || value != value) best = {value, c.weight[k], c.offset[k]};
      }
    });
    return best;
  }
};

// --- RegionPool: regions [R, 5] in elements, each with its example first
// ---------------------------

template <typename T>
struct Pooled {
  const Sizes& s;
  const T* corner;

  std::int64_t example(std::int64_t region) const {
    const T number = corner[5 * region];
    const bool exists = number >= T{0} && number < static_cast<T>(s.image[0]);
    return exists ? static_cast<std::int64_t>(number) : -1;
  }

  struct Range {
    std::int64_t begin, end;
  };
  struct Bin {
    std::int64_t number, of;
    std::int64_t size;  // of the axis
  };
  // Elements of a bin between two coordinates, ends included.
  static Range elements(T from, T to, const Bin& given) {
    const auto& [bin, bins, size] = given;
    const T kFar = static_cast<T>(1e15);
    if (from != from || to != to) return {0, 0};
    const T first = std::clamp(std::round(from), -kFar, kFar);
    const T last = std::clamp(std::round(to), -kFar, kFar);
    const T step = std::max(last - first + 1, T{1}) / static_cast<T>(bins);
    const auto place = [&](T at) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(at + first), 0, size);
    };
    return {place(std::floor(static_cast<T>(bin) * step)),
            place(std::ceil(static_cast<T>(bin + 1) * step))};
  }

  Source<T> largest(std::int64_t region, std::int64_t bin, const T* plane) const {
    const T* c = corner + 5 * region;
    const Range rows = elements(c[2], c[4], {bin / s.width, s.height, s.image[2]});
    const Range columns = elements(c[1], c[3], {bin % s.width, s.width, s.image[3]});
    Source<T> best;
    for (std::int64_t y = rows.begin; y < rows.end; ++y) {
      for (std::int64_t x = columns.begin; x < columns.end; ++x) {
        const std::int64_t at = y * s.image[3] + x;
        if (plane[at] > best.value || plane[at] != plane[at]) best = {plane[at], T{1}, at};
      }
    }
    return best;
  }
};

// --- Both ----------------------------------------------------------------------------------------

// y of one bin for all channels; NaN where the example does not exist.
template <typename T, class Regions, class Make>
void fill_bins(const RunArgs& run, const Sizes& s, const Regions& regions, Make make) {
  const T* x = run.inputs[0].as<const T>();
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, s.regions * s.bins, row_grain(16 * s.channels),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t region = i / s.bins;
                   const std::int64_t n = regions.example(region);
                   T* to = y + region * s.channels * s.bins + i % s.bins;
                   const bool exists = n >= 0 && n < s.image[0];
                   for (std::int64_t c = 0; c < s.channels; ++c) {
                     to[c * s.bins] =
                         exists ? make(region, i % s.bins, x + (n * s.channels + c) * s.plane)
                                : std::numeric_limits<T>::quiet_NaN();
                   }
                 }
               });
}

// add(region, bin, plane number, gradient) for what dy says of the planes [begin, end) of dx,
// region by region: the division of the work does not matter.
template <typename T, class Regions, class Add>
void spread_bins(const RunArgs& run, const Sizes& s, const Regions& regions, Add add) {
  const T* dy = run.inputs[0].as<const T>();
  T* dx = run.outputs[0].as<T>();
  const std::int64_t work = s.plane + s.regions * s.bins * 16;
  parallel_for(run.threads, s.image[0] * s.channels, row_grain(work),
               [&](std::int64_t begin, std::int64_t end) {
                 std::fill(dx + begin * s.plane, dx + end * s.plane, T{0});
                 for (std::int64_t region = 0; region < s.regions; ++region) {
                   const std::int64_t n = regions.example(region);
                   if (n < 0 || n >= s.image[0]) continue;
                   const std::int64_t first = std::max(begin, n * s.channels);
                   const std::int64_t last = std::min(end, (n + 1) * s.channels);
                   for (std::int64_t plane = first; plane < last; ++plane) {
                     const std::int64_t channel = region * s.channels + plane % s.channels;
                     for (std::int64_t bin = 0; bin < s.bins; ++bin) {
                       add(region, bin, plane, dy[channel * s.bins + bin]);
                     }
                   }
                 }
               });
}

// x, bins, examples, samples -> y
template <typename T>
void region_mean(const RunArgs& run) {
  const Sizes s(run.inputs[0].shape(), run.outputs[0].shape());
  const Sampled<T> regions(run, s, 1);
  fill_bins<T>(run, s, regions, [&](std::int64_t region, std::int64_t bin, const T* plane) {
    T sum = 0;
    regions.for_each_chunk(region, bin,
                           [&](std::int64_t at, T weight) { sum += weight * plane[at]; });
    return sum;
  });
}

// dy, bins, examples, samples -> dx
template <typename T>
void region_mean_grad(const RunArgs& run) {
  T* dx = run.outputs[0].as<T>();
  const Sizes s(run.outputs[0].shape(), run.inputs[0].shape());
  const Sampled<T> regions(run, s, 1);
  spread_bins<T>(
      run, s, regions, [&](std::int64_t region, std::int64_t bin, std::int64_t plane, T gradient) {
        T* to = dx + plane * s.plane;
        regions.for_each_chunk(region, bin,
                               [&](std::int64_t at, T weight) { to[at] += weight * gradient; });
      });
}

template <typename T, class Regions>
void fill_with_largest(const RunArgs& run, const Sizes& s, const Regions& regions) {
  fill_bins<T>(run, s, regions, [&](std::int64_t region, std::int64_t bin, const T* plane) {
    const Source<T> best = regions.largest(region, bin, plane);
    return best.offset < 0 ? T{0} : best.value;
  });
}

// dy and x are inputs 0 and 1.
template <typename T, class Regions>
void spread_to_largest(const RunArgs& run, const Sizes& s, const Regions& regions) {
  const T* x = run.inputs[1].as<const T>();
  T* dx = run.outputs[0].as<T>();
  spread_bins<T>(run, s, regions,
                 [&](std::int64_t region, std::int64_t bin, std::int64_t plane, T gradient) {
                   const Source<T> best = regions.largest(region, bin, x + plane * s.plane);
                   if (best.offset < 0) return;
                   dx[plane * s.plane + best.offset] += best.weight * gradient;
                 });
}

// x, bins, examples, samples -> y
template <typename T>
void region_max(const RunArgs& run) {
  const Sizes s(run.inputs[0].shape(), run.outputs[0].shape());
  fill_with_largest<T>(run, s, Sampled<T>(run, s, 1));
}

// dy, x, bins, examples, samples -> dx
template <typename T>
void region_max_grad(const RunArgs& run) {
  const Sizes s(run.inputs[1].shape(), run.inputs[0].shape());
  spread_to_largest<T>(run, s, Sampled<T>(run, s, 2));
}

// x, regions -> y
template <typename T>
void region_pool(const RunArgs& run) {
  const Sizes s(run.inputs[0].shape(), run.outputs[0].shape());
  fill_with_largest<T>(run, s, Pooled<T>{s, run.inputs[1].as<const T>()});
}

// dy, x, regions -> dx
template <typename T>
void region_pool_grad(const RunArgs& run) {
  const Sizes s(run.inputs[1].shape(), run.inputs[0].shape());
  spread_to_largest<T>(run, s, Pooled<T>{s, run.inputs[2].as<const T>()});
}

template <typename T>
void add_for(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("RegionMean", dtype, {.name = "region_mean", .run = region_mean<T>});
  table.add("RegionMeanGrad", dtype, {.name = "region_mean_grad", .run = region_mean_grad<T>});
  table.add("RegionMax", dtype, {.name = "region_max", .run = region_max<T>});
  table.add("RegionMaxGrad", dtype, {.name = "region_max_grad", .run = region_max_grad<T>});
  table.add("RegionPool", dtype, {.name = "region_pool", .run = region_pool<T>});
  table.add("RegionPoolGrad", dtype, {.name = "region_pool_grad", .run = region_pool_grad<T>});
}

}  // namespace

void add_region_pool(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
