// Looks through font folders with FreeType.
#include "gui/draw/installed_fonts.h"

#include <ft2build.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>

namespace trainscope::gui {
namespace {

namespace fs = std::filesystem;

using Library = std::unique_ptr<std::remove_pointer_t<FT_Library>, decltype(&FT_Done_FreeType)>;
using FontFace = std::unique_ptr<std::remove_pointer_t<FT_Face>, decltype(&FT_Done_Face)>;

constexpr std::size_t kMostFonts = 2000;  // that are looked at

Library open_library() {
  FT_Library library = nullptr;
  FT_Init_FreeType(&library);  // null where it fails
  return {library, &FT_Done_FreeType};
}

bool has(FT_Face face, char32_t code_point) {
  return face != nullptr && FT_Get_Char_Index(face, code_point) != 0;
}

std::vector<fs::path> font_files(std::span<const fs::path> folders) {
  std::vector<fs::path> files;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                           ignored);
    for (; entry != fs::recursive_directory_iterator() && files.size() < kMostFonts;
         entry.increment(ignored)) {
      const std::string ending = entry->path().extension().string();
      if (ending == ".ttf" || ending == ".otf" || ending == ".ttc") files.push_back(entry->path());
    }
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

bool has_glyph(std::span<const std::byte> font_file, char32_t code_point) {
  const Library library = open_library();
  if (library == nullptr) return false;
  FT_Face face = nullptr;
  FT_New_Memory_Face(library.get(), reinterpret_cast<const FT_Byte*>(font_file.data()),
                     static_cast<FT_Long>(font_file.size()), 0, &face);
  const FontFace owner(face, &FT_Done_Face);
  return has(face, code_point);
}

std::vector<InstalledFont> fonts_with(std::set<char32_t> code_points,
                                      std::span<const fs::path> folders) {
  std::vector<InstalledFont> found;
  const Library library = open_library();
  if (library == nullptr) return found;
  for (const fs::path& file : font_files(folders)) {
    if (code_points.empty()) break;
    FT_Face face = nullptr;
    if (FT_New_Face(library.get(), file.c_str(), 0, &face) != 0) continue;
    const FontFace owner(face, &FT_Done_Face);
    InstalledFont font{.file = file};
    for (const char32_t c : code_points) {
      if (has(face, c)) font.code_points.push_back(c);
    }
    for (const char32_t c : font.code_points) code_points.erase(c);
    if (!font.code_points.empty()) found.push_back(std::move(font));
  }
  return found;
}

std::vector<fs::path> font_folders() {
  std::vector<fs::path> folders = {"/usr/share/fonts", "/usr/local/share/fonts"};
  if (const char* home = std::getenv("HOME")) {
    folders.push_back(fs::path(home) / ".local/share/fonts");
    folders.push_back(fs::path(home) / ".fonts");
  }
  return folders;
}

}  // namespace trainscope::gui
