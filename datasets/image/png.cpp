// Reads PNG by libpng's simplified interface, which reports errors without longjmp.
#include "datasets/image/png.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::array<std::uint8_t, 8> kSignature = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::size_t kHeaderBytes = 24;  // signature, length and name of IHDR, width, height

std::int64_t big_endian(std::span<const std::byte> bytes) {
  std::int64_t value = 0;
  for (const std::byte byte : bytes) value = (value << 8) | std::to_integer<std::int64_t>(byte);
  return value;
}

// Frees what libpng holds of an image.
class PngImage {
 public:
  PngImage() { image.version = PNG_IMAGE_VERSION; }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image); }

  [[noreturn]] void fail(std::string_view name) const {
    throw Error(ErrorCode::kBadInput, fmt::format("'{}' is a damaged PNG file: {}", printable(name),
                                                  printable(image.message)));
  }

  png_image image = {};
};

}  // namespace

bool is_png(std::span<const std::byte> bytes) {
  return bytes.size() >= kSignature.size() &&
         std::ranges::equal(bytes.first(kSignature.size()), std::as_bytes(std::span(kSignature)));
}

ImageSize png_size(std::span<const std::byte> bytes, std::string_view name) {
  require(bytes.size() >= kHeaderBytes, ErrorCode::kBadInput,
          "'{}' is a damaged PNG file: it ends within its header", printable(name));
  const std::int64_t width = big_endian(bytes.subspan(16, 4));
  const std::int64_t height = big_endian(bytes.subspan(20, 4));
  const bool possible = width > 0 && height > 0 && width <= kMostPixels && height <= kMostPixels &&
                        width * height <= kMostPixels;
  require(possible, ErrorCode::kBadInput, "'{}' has {} x {} pixels: expected 1 to {}",
          printable(name), height, width, kMostPixels);
  return {.height = static_cast<int>(height), .width = static_cast<int>(width)};
}

Image decode_png(std::span<const std::byte> bytes, std::string_view name) {
  const ImageSize size = png_size(bytes, name);
  PngImage png;
  if (png_image_begin_read_from_memory(&png.image, bytes.data(), bytes.size()) == 0) {
    png.fail(name);
  }
  const bool has_colour = (png.image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  png.image.format = has_colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png.image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits have the same curve as 8
  Image image{.height = size.height,
              .width = size.width,
              .channels = has_colour ? 3 : 1,
              .pixels = std::vector<std::uint8_t>(PNG_IMAGE_SIZE(png.image))};
  // Without a colour for the background, pixels are laid over what the buffer holds: black.
  if (png_image_finish_read(&png.image, nullptr, image.pixels.data(), 0, nullptr) == 0) {
    png.fail(name);
  }
  return image;
}

}  // namespace trainscope
