// Builds atlases with FreeType, and keeps the last ones.
#include "gui/draw/face_atlas.h"

#include <imgui.h>
#include <imgui_freetype.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <span>
#include <utility>

#include "gui/draw/font_files.h"
#include "gui/draw/installed_fonts.h"

namespace trainscope::gui {
namespace {

// What every atlas has: ASCII, Latin-1, and the signs of our own texts.
constexpr std::uint16_t kAlways[] = {
    0x0020, 0x007E, 0x00A0, 0x00FF, 0x0394, 0x0394, 0x03BC, 0x03C3, 0x2010, 0x2015,
    0x2018, 0x201F, 0x2022, 0x2022, 0x2026, 0x2026, 0x2190, 0x2195, 0x21B5, 0x21B5,
    0x2208, 0x2208, 0x221E, 0x221E, 0x2248, 0x2248, 0x2260, 0x2265, 0x25A0, 0x25A1,
    0x25B2, 0x25B2, 0x25B6, 0x25B6, 0x25BC, 0x25BC, 0x25C0, 0x25C0, 0x25C6, 0x25C7,
    0x25CB, 0x25CF, 0x2605, 0x2606, 0x2713, 0x2713, 0x2715, 0x2715, 0xFFFD, 0xFFFD};

constexpr std::size_t kMostKept = 6;  // a window draws with one at a time

struct Kept {
  FontSizes sizes;
  std::set<char32_t> more;
  std::shared_ptr<const FaceAtlas> atlas;
};

constexpr FontFile file_of(Face face) {
  switch (face) {
    case Face::kBold:
    case Face::kTitle:
      return FontFile::kSansBold;
    case Face::kNumber:
    case Face::kSmallNumber:
      return FontFile::kMono;
    case Face::kText:
    case Face::kSmall:
      break;
  }
  return FontFile::kSans;
}

void append(std::vector<std::uint16_t>& ranges, std::span<const char32_t> code_points) {
  for (const char32_t c : code_points) {
    if (c > 0xFFFF) continue;  // glyphs are found by sixteen bits
    ranges.push_back(static_cast<std::uint16_t>(c));
    ranges.push_back(static_cast<std::uint16_t>(c));
  }
}

ImFontConfig config_of(float pixels) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  config.OversampleH = 1;
  config.OversampleV = 1;
  config.PixelSnapH = true;
  config.SizePixels = pixels;
  config.FontBuilderFlags = ImGuiFreeTypeBuilderFlags_LightHinting;
  return config;
}

}  // namespace

float line_height(const FontSizes& sizes, Face face) {
  switch (face) {
    case Face::kText:
    case Face::kBold:
      return sizes.text;
    case Face::kSmall:
      return std::round(sizes.text * 0.86F);
    case Face::kTitle:
      return std::round(sizes.text * 1.3F);
    case Face::kNumber:
      return sizes.number;
    case Face::kSmallNumber:
      return std::round(sizes.number * 0.86F);
  }
  return sizes.text;
}

FaceAtlas::FaceAtlas(const FontSizes& sizes, const std::set<char32_t>& more)
    : glyphs_(std::make_unique<ImFontAtlas>()), ranges_(std::begin(kAlways), std::end(kAlways)) {
  glyphs_->FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
  glyphs_->Flags |= ImFontAtlasFlags_NoMouseCursors | ImFontAtlasFlags_NoBakedLines;
  std::vector<char32_t> packed;
  std::set<char32_t> elsewhere;
  for (const char32_t c : more) {
    if (has_glyph(bytes_of(FontFile::kSans), c)) {
      packed.push_back(c);
    } else {
      elsewhere.insert(c);
    }
  }
  append(ranges_, packed);
  ranges_.push_back(0);
  std::vector<InstalledFont> fallbacks;
  if (!elsewhere.empty()) fallbacks = fonts_with(elsewhere, font_folders());
  for (const InstalledFont& font : fallbacks) {
    append(fallback_ranges_.emplace_back(), font.code_points);
    fallback_ranges_.back().push_back(0);
  }
  for (std::size_t i = 0; i < kFaces; ++i) {
    const auto face = static_cast<Face>(i);
    ImFontConfig config = config_of(std::round(line_height(sizes, face) * sizes.scale));
    const std::span<const std::byte> file = bytes_of(file_of(face));
    fonts_[i] = glyphs_->AddFontFromMemoryTTF(const_cast<std::byte*>(file.data()),
                                              static_cast<int>(file.size()), config.SizePixels,
                                              &config, ranges_.data());
    config.MergeMode = true;
    config.FontDataOwnedByAtlas = true;
    for (std::size_t k = 0; k < fallbacks.size(); ++k) {
      if (fallback_ranges_[k].size() < 2) continue;
      glyphs_->AddFontFromFileTTF(fallbacks[k].file.c_str(), config.SizePixels, &config,
                                  fallback_ranges_[k].data());
    }
  }
  glyphs_->Build();
}

FaceAtlas::~FaceAtlas() = default;

std::shared_ptr<const FaceAtlas> face_atlas(const FontSizes& sizes,
                                            const std::set<char32_t>& more) {
  static std::deque<Kept> kept;  // the one asked for last in front
  const auto found = std::ranges::find_if(
      kept, [&](const Kept& each) { return each.sizes == sizes && each.more == more; });
  if (found != kept.end()) {
    std::rotate(kept.begin(), found, std::next(found));
    return kept.front().atlas;
  }
  kept.push_front({sizes, more, std::make_shared<const FaceAtlas>(sizes, more)});
  if (kept.size() > kMostKept) kept.pop_back();
  return kept.front().atlas;
}

}  // namespace trainscope::gui
