// PNG and JPEG files as pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace trainscope {

// Pixels [height, width, channels] of 8 bits; 1 channel: grey, 3: red, green, blue in sRGB.
struct Image {
  int height = 0;
  int width = 0;
  int channels = 1;
  std::vector<std::uint8_t> pixels;
};

struct ImageSize {
  int height = 0;
  int width = 0;

  bool operator==(const ImageSize&) const = default;
};

// An image of more pixels is refused before memory is taken for it.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

// Of a file's bytes, told apart by the first of them. The size is read from the header, which is
// all that must be there. 16 bits become 8, transparent pixels lie on black. Throws kBadInput
// naming `name`: of another kind, damaged, cut short, of no or too many pixels, of colours that are
// neither grey nor RGB (CMYK).
ImageSize image_size(std::span<const std::byte> bytes, std::string_view name);
Image decode_image(std::span<const std::byte> bytes, std::string_view name);

// Grey as 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), or grey thrice.
Image with_channels(Image image, int channels);

// How an image of another size becomes one of the model's size.
enum class Resize : std::uint8_t {
  kNone,     // it does not
  kStretch,  // both sides on their own
  kCover,    // the largest part of its proportions around the middle, stretched
};

// Bilinear; a smaller image averages what its pixels cover (a triangle filter as wide as the
// reduction, as PIL's BILINEAR and torchvision's antialias=True). Not for kNone.
Image resized(const Image& image, ImageSize size, Resize how);

}  // namespace trainscope
