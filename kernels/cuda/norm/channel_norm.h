// What normalisation of channels is made of: sums over a channel, formed in double by several
// blocks, and what follows from them for its elements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/teams.h"
#include "kernels/cuda/support/views.h"

namespace trainscope::cuda {

// x [batch, channels, plane]
struct ChannelLayout {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t plane = 1;

  __host__ __device__ std::int64_t count() const { return batch * plane; }  // of a channel
  // Offset of element i of channel c, counted over the examples. Divides in 32 bits.
  __device__ std::int64_t at(std::int64_t c, std::int64_t i) const {
    const auto example = static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(plane);
    return (example * (channels - 1) + c) * plane + i;
  }
};

inline ChannelLayout channel_layout(const Shape& x) {
  ChannelLayout layout{.batch = x[0], .channels = x[1], .plane = 1};
  for (int axis = 2; axis < x.rank; ++axis) layout.plane *= x[axis];
  return layout;
}

inline Support divides_in_32_bits(const ChannelLayout& layout) {
  return supported_if(layout.count() <= 0xFFFFFFFF, "a channel has 2^32 elements or more");
}
inline Support supports_channels_of_first(const PrepareArgs& args) {
  return divides_in_32_bits(channel_layout(args.inputs[0].shape()));
}

// --- Parts of a channel --------------------------------------------------------------------------

// A channel's elements in equal parts, a block each. Their number depends on nothing but the sizes.
struct ChannelParts {
  std::int64_t count = 1;
  std::int64_t elements = 0;  // of a part; the last one may have fewer
};
inline ChannelParts channel_parts(const ChannelLayout& layout) {
  constexpr std::int64_t kLeast = 2048;  // elements worth a block of their own
  constexpr std::int64_t kMostParts = 64;
  constexpr std::int64_t kWantedBlocks = 1024;
  const std::int64_t channels = std::max<std::int64_t>(1, layout.channels);
  const std::int64_t parts =
      std::min({kMostParts, layout.count() / kLeast, (kWantedBlocks + channels - 1) / channels});
  const std::int64_t used = std::max<std::int64_t>(1, parts);
  // In whole packs, so that every part begins with one.
  const std::int64_t each = (layout.count() + used - 1) / used;
  return {.count = used, .elements = (each + kPackWidth - 1) / kPackWidth * kPackWidth};
}

// Elements [begin, end) of the channel that this block computes: blocks [channels, parts].
struct OwnPart {
  std::int64_t channel;
  std::int64_t part;
  std::int64_t begin;
  std::int64_t end;
};
__device__ inline OwnPart own_part(const ChannelLayout& layout, const ChannelParts& parts) {
  const std::int64_t channel = std::int64_t{blockIdx.x} / parts.count;
  const std::int64_t part = std::int64_t{blockIdx.x} % parts.count;
  const std::int64_t begin = part * parts.elements;
  const std::int64_t end = begin + parts.elements;
  return {channel, part, begin, end < layout.count() ? end : layout.count()};
}

// Calls run(width) with how many elements kernels move at a time, as an integral constant: packs
// where planes are whole ones and all addresses allow them. Null ones are left out.
template <int kWidthOfPacks>
struct PackOf {
  static constexpr int kWidth = kWidthOfPacks;
};
template <class T, class Run>
void with_packs(const ChannelLayout& layout, std::initializer_list<const T*> tensors, Run run) {
  const bool packs = layout.plane % kPackWidth == 0 &&
                     std::all_of(tensors.begin(), tensors.end(),
                                 [](const T* address) { return takes_packs(address); });
  if (packs) return run(PackOf<kPackWidth>{});
  run(PackOf<1>{});
}

inline Grid channel_grid(const ChannelLayout& layout, const ChannelParts& parts) {
  return {.blocks = dim3(static_cast<unsigned>(layout.channels * parts.count)),
          .threads = dim3(kTeamThreads)};
}

// --- Sums ----------------------------------------------------------------------------------------

// Of the elements x and gradients dy of a channel, or of a part of it; `shift` is an element of the
// channel, so that nothing cancels.
struct ChannelSums {
  double x;      // sum of x - shift
  double xx;     // sum of (x - shift)^2
  double dy;     // sum of dy
  double dy_x;   // sum of dy * (x - shift)
  double shift;  // of all parts the same
};

inline std::size_t channel_sum_bytes(const ChannelLayout& layout) {
  const std::int64_t sums = layout.channels * channel_parts(layout).count;
  return static_cast<std::size_t>(sums) * sizeof(ChannelSums);
}

// The sums of this block's channel: each part's, in order. Every thread computes them.
__device__ inline ChannelSums add_parts(const ChannelSums* of_parts, const ChannelParts& parts,
                                        std::int64_t channel) {
  ChannelSums sums = of_parts[channel * parts.count];
  for (std::int64_t part = 1; part < parts.count; ++part) {
    const ChannelSums& more = of_parts[channel * parts.count + part];
    sums.x += more.x;
    sums.xx += more.xx;
    sums.dy += more.dy;
    sums.dy_x += more.dy_x;
  }
  return sums;
}

struct ChannelStatistics {
  double mean;
  double variance;  // of the population
};

__device__ inline ChannelStatistics statistics_from(const ChannelSums& sums, double count) {
  const double mean = sums.x / count;
  const double variance = sums.xx / count - mean * mean;
  // `variance > 0` would lose a NaN.
  return {sums.shift + mean, variance < 0.0 ? 0.0 : variance};
}

// --- Lines ---------------------------------------------------------------------------------------

// y = (x - mean) * factor + bias
template <typename C>
struct NormLine {
  C mean;
  C factor;
  C bias;

  __device__ C at(C x) const { return (x - mean) * factor + bias; }
};

template <typename C>
__device__ NormLine<C> norm_line(const ChannelStatistics& used, double epsilon, C scale, C bias) {
  const double factor = static_cast<double>(scale) / std::sqrt(used.variance + epsilon);
  const C mean = static_cast<C>(used.mean);
  // What rounding the mean to C leaves over goes into the bias.
  const double rest = factor * (used.mean - static_cast<double>(mean));
  return {mean, static_cast<C>(factor), static_cast<C>(static_cast<double>(bias) - rest)};
}

// dx = by_dy * dy + by_x * (x - mean) + constant
template <typename C>
struct GradientLine {
  C by_dy;
  C by_x;
  C constant;
  C mean;

  __device__ C at(C dy, C x) const { return by_dy * dy + (by_x * (x - mean) + constant); }
};

template <typename C>
struct ChannelGradient {
  GradientLine<C> dx;
  double dscale;
  double dbias;
};

// From the sums over `count` elements that were normalised with statistics of their own.
template <typename C>
__device__ ChannelGradient<C> training_gradient(const ChannelSums& sums, double count, C scale,
                                                double epsilon) {
  const ChannelStatistics used = statistics_from(sums, count);
  const double inverse = 1.0 / std::sqrt(used.variance + epsilon);
  const double dscale = inverse * (sums.dy_x - (used.mean - sums.shift) * sums.dy);
  const double by_dy = static_cast<double>(scale) * inverse;
  return {{static_cast<C>(by_dy), static_cast<C>(-by_dy * inverse * dscale / count),
           static_cast<C>(-by_dy * sums.dy / count), static_cast<C>(used.mean)},
          dscale,
          sums.dy};
}

template <int kWidth, typename T>
__device__ Pack<T, kWidth> pack_at(const T* x, std::int64_t at) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(x + at);
}
template <int kWidth, typename T>
__device__ void put_pack(T* y, std::int64_t at, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(y + at) = pack;
}

template <typename C>
__device__ void keep_at(C* output, std::int64_t c, double value) {
  if (output != nullptr) output[c] = static_cast<C>(value);
}

}  // namespace trainscope::cuda
