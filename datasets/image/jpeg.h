// JPEG by libjpeg.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "datasets/image/decode.h"

namespace trainscope {

bool is_jpeg(std::span<const std::byte> bytes);
// As decode.h says of any image.
ImageSize jpeg_size(std::span<const std::byte> bytes, std::string_view name);
Image decode_jpeg(std::span<const std::byte> bytes, std::string_view name);

}  // namespace trainscope
