// PNG by libpng.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "datasets/image/decode.h"

namespace trainscope {

bool is_png(std::span<const std::byte> bytes);
// As decode.h says of any image.
ImageSize png_size(std::span<const std::byte> bytes, std::string_view name);
Image decode_png(std::span<const std::byte> bytes, std::string_view name);

}  // namespace trainscope
