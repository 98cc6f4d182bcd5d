// Builds the atlas with FreeType and measures text in it.
#include "gui/draw/fonts.h"

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_freetype.h>

#include <cmath>
#include <span>

#include "gui/draw/code_points.h"
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

bool is_ascii(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80 || c == '\n' || c == '\r') return false;
  }
  return true;
}

}  // namespace

Fonts::Fonts(const FontSizes& sizes) : sizes_(sizes), atlas_(std::make_unique<ImFontAtlas>()) {
  build();
}

Fonts::~Fonts() = default;

bool Fonts::resize(const FontSizes& sizes) {
  if (sizes == sizes_) return false;
  sizes_ = sizes;
  build();
  return true;
}

bool Fonts::settle() {
  const std::size_t before = known_.size();
  known_.merge(wanted_);
  wanted_.clear();
  if (known_.size() == before) return false;
  build();
  return true;
}

float Fonts::line_height(Face face) const {
  switch (face) {
    case Face::kText:
    case Face::kBold:
      return sizes_.text;
    case Face::kSmall:
      return std::round(sizes_.text * 0.86F);
    case Face::kTitle:
      return std::round(sizes_.text * 1.3F);
    case Face::kNumber:
      return sizes_.number;
    case Face::kSmallNumber:
      return std::round(sizes_.number * 0.86F);
  }
  return sizes_.text;
}

void Fonts::build() {
  atlas_->Clear();
  atlas_->FontBuilderIO = ImGuiFreeType::GetBuilderForFreeType();
  atlas_->Flags |= ImFontAtlasFlags_NoMouseCursors | ImFontAtlasFlags_NoBakedLines;
  std::vector<char32_t> packed;
  std::set<char32_t> elsewhere;
  for (const char32_t c : known_) {
    if (has_glyph(bytes_of(FontFile::kSans), c)) {
      packed.push_back(c);
    } else {
      elsewhere.insert(c);
    }
  }
  ranges_.assign(std::begin(kAlways), std::end(kAlways));
  append(ranges_, packed);
  ranges_.push_back(0);
  std::vector<InstalledFont> fallbacks;
  if (!elsewhere.empty()) fallbacks = fonts_with(elsewhere, font_folders());
  fallback_ranges_.clear();
  for (const InstalledFont& font : fallbacks) {
    append(fallback_ranges_.emplace_back(), font.code_points);
    fallback_ranges_.back().push_back(0);
  }
  for (std::size_t i = 0; i < kFaces; ++i) {
    const auto face = static_cast<Face>(i);
    ImFontConfig config = config_of(std::round(line_height(face) * sizes_.scale));
    const std::span<const std::byte> file = bytes_of(file_of(face));
    fonts_[i] = atlas_->AddFontFromMemoryTTF(const_cast<std::byte*>(file.data()),
                                             static_cast<int>(file.size()), config.SizePixels,
                                             &config, ranges_.data());
    config.MergeMode = true;
    config.FontDataOwnedByAtlas = true;
    for (std::size_t k = 0; k < fallbacks.size(); ++k) {
      if (fallback_ranges_[k].size() < 2) continue;
      atlas_->AddFontFromFileTTF(fallbacks[k].file.c_str(), config.SizePixels, &config,
                                 fallback_ranges_[k].data());
    }
  }
  atlas_->Build();
}

FaceMetrics Fonts::metrics(Face face) const {
  const ImFont* of_face = font(face);
  return {.line_height = of_face->FontSize / sizes_.scale,
          .ascent = of_face->Ascent / sizes_.scale};
}

float Fonts::width(std::string_view text, Face face) const {
  std::string storage;
  const std::string_view drawn = shown(text, face, storage);
  const ImFont* of_face = font(face);
  float pixels = 0.0F;
  for (std::string_view rest = drawn; !rest.empty();) {
    const CodePoint c = first_code_point(rest);
    rest.remove_prefix(c.bytes);
    pixels += of_face->GetCharAdvance(static_cast<ImWchar>(c.value));
  }
  return pixels / sizes_.scale;
}

std::string_view Fonts::shown(std::string_view text, Face face, std::string& storage) const {
  if (is_ascii(text)) return text;
  storage.clear();
  for (std::string_view rest = text; !rest.empty();) {
    const CodePoint c = first_code_point(rest);
    const bool small = c.value <= 0xFFFF && c.value >= 0x20;
    if (small && font(face)->FindGlyphNoFallback(static_cast<ImWchar>(c.value)) != nullptr) {
      append_utf8(storage, c.value);
    } else {
      storage += fmt::format("U+{:04X}", static_cast<std::uint32_t>(c.value));
      if (small && !known_.contains(c.value)) wanted_.insert(c.value);
    }
    rest.remove_prefix(c.bytes);
  }
  return storage;
}

}  // namespace trainscope::gui
