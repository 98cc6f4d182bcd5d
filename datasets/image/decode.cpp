// From a file's bytes to pixels of the size and channels that a model takes.
#include "datasets/image/decode.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "datasets/image/jpeg.h"
#include "datasets/image/png.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

[[noreturn]] void refuse_kind(std::span<const std::byte> bytes, std::string_view name) {
  throw Error(ErrorCode::kBadInput,
              fmt::format("'{}' is {}", printable(name),
                          bytes.empty() ? "empty: expected a PNG or JPEG file"
                                        : "neither a PNG nor a JPEG file by its first bytes"));
}

// Of the pixels of a line of `size`, those that one of a line of another size is made of.
struct Taps {
  int first = 0;
  std::vector<float> weights;  // their sum is 1
};

std::vector<Taps> taps_of(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double reach = std::max(1.0, scale);
  std::vector<Taps> all(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double middle = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(std::floor(middle - reach)));
    const int last = std::min(from, static_cast<int>(std::ceil(middle + reach)));
    Taps& taps = all[static_cast<std::size_t>(i)];
    taps.first = first;
    double sum = 0.0;
    std::vector<double> weights;
    for (int k = first; k < last; ++k) {
      weights.push_back(std::max(0.0, 1.0 - std::abs((k + 0.5 - middle) / reach)));
      sum += weights.back();
    }
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
  }
  return all;
}

// [outer, from, inner] to [outer, to, inner].
template <typename T>
std::vector<float> along(std::span<const T> values, std::size_t outer, int from, int to,
                         std::size_t inner) {
  const std::vector<Taps> all = taps_of(from, to);
  std::vector<float> result;
  result.reserve(outer * all.size() * inner);
  for (std::size_t o = 0; o < outer; ++o) {
    const T* part = values.data() + o * static_cast<std::size_t>(from) * inner;
    for (const Taps& taps : all) {
      for (std::size_t i = 0; i < inner; ++i) {
        float sum = 0.0F;
        const T* value = part + static_cast<std::size_t>(taps.first) * inner + i;
        for (const float weight : taps.weights) {
          sum += weight * static_cast<float>(*value);
          value += inner;
        }
        result.push_back(sum);
      }
    }
  }
  return result;
}

// First along the side that leaves less: never more than the larger of both images.
Image stretched(const Image& image, ImageSize size) {
  const auto channels = static_cast<std::size_t>(image.channels);
  const auto height = static_cast<std::size_t>(image.height);
  const auto width = static_cast<std::size_t>(image.width);
  const auto new_height = static_cast<std::size_t>(size.height);
  const auto new_width = static_cast<std::size_t>(size.width);
  const std::span<const std::uint8_t> pixels = image.pixels;
  std::vector<float> values;
  if (height * new_width <= new_height * width) {
    values = along(pixels, height, image.width, size.width, channels);
    values = along<float>(values, 1, image.height, size.height, new_width * channels);
  } else {
    values = along(pixels, 1, image.height, size.height, width * channels);
    values = along<float>(values, new_height, image.width, size.width, channels);
  }
  Image result{
      .height = size.height, .width = size.width, .channels = image.channels, .pixels = {}};
  for (const float value : values) {
    result.pixels.push_back(static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L)));
  }
  return result;
}

// The largest part of the proportions of `size` around the middle.
Image middle(const Image& image, ImageSize size) {
  const double height = static_cast<double>(image.width) * size.height / size.width;
  const double width = static_cast<double>(image.height) * size.width / size.height;
  const auto side = [](double wanted, int most) {
    return wanted >= most ? most : std::max(1, static_cast<int>(std::lround(wanted)));
  };
  Image result{.height = side(height, image.height),
               .width = side(width, image.width),
               .channels = image.channels,
               .pixels = {}};
  const int top = (image.height - result.height) / 2;
  const int left = (image.width - result.width) / 2;
  const auto row = static_cast<std::ptrdiff_t>(result.width) * image.channels;
  for (std::ptrdiff_t y = 0; y < result.height; ++y) {
    const std::ptrdiff_t at = ((top + y) * image.width + left) * image.channels;
    result.pixels.insert(result.pixels.end(), image.pixels.begin() + at,
                         image.pixels.begin() + at + row);
  }
  return result;
}

}  // namespace

ImageSize image_size(std::span<const std::byte> bytes, std::string_view name) {
  if (is_png(bytes)) return png_size(bytes, name);
  if (is_jpeg(bytes)) return jpeg_size(bytes, name);
  refuse_kind(bytes, name);
}

Image decode_image(std::span<const std::byte> bytes, std::string_view name) {
  if (is_png(bytes)) return decode_png(bytes, name);
  if (is_jpeg(bytes)) return decode_jpeg(bytes, name);
  refuse_kind(bytes, name);
}

Image with_channels(Image image, int channels) {
  if (image.channels == channels) return image;
  Image result{.height = image.height, .width = image.width, .channels = channels, .pixels = {}};
  if (channels == 3) {
    for (const std::uint8_t grey : image.pixels) result.pixels.insert(result.pixels.end(), 3, grey);
    return result;
  }
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    const unsigned sum =
        299U * image.pixels[i] + 587U * image.pixels[i + 1] + 114U * image.pixels[i + 2];
    result.pixels.push_back(static_cast<std::uint8_t>((sum + 500U) / 1000U));
  }
  return result;
}

Image resized(const Image& image, ImageSize size, Resize how) {
  CHECK_INVARIANT(how != Resize::kNone);
  if (ImageSize{.height = image.height, .width = image.width} == size) return image;
  if (how == Resize::kStretch) return stretched(image, size);
  return stretched(middle(image, size), size);
}

}  // namespace trainscope
