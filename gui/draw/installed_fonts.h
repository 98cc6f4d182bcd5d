// Fonts of the system, for what the packed ones have no glyph for.
#pragma once

#include <filesystem>
#include <set>
#include <span>
#include <vector>

namespace trainscope::gui {

bool has_glyph(std::span<const std::byte> font_file, char32_t code_point);

struct InstalledFont {
  std::filesystem::path file = {};
  std::vector<char32_t> code_points = {};  // of those asked for
};

// Fonts below `folders` that have some of the code points; each code point is in one font at most.
std::vector<InstalledFont> fonts_with(std::set<char32_t> code_points,
                                      std::span<const std::filesystem::path> folders);
// Where systems and users keep fonts.
std::vector<std::filesystem::path> font_folders();

}  // namespace trainscope::gui
