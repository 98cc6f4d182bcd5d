// The fonts that are packed into the program: DejaVu Sans, its bold, and DejaVu Sans Mono.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace trainscope::gui {

enum class FontFile : std::uint8_t { kSans, kSansBold, kMono };
inline constexpr std::size_t kFontFiles = 3;

// A TrueType file.
std::span<const std::byte> bytes_of(FontFile file);

}  // namespace trainscope::gui
