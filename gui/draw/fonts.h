// The faces in their sizes, as one atlas of glyphs, which is made anew between frames.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gui/draw/canvas.h"

struct ImFont;
struct ImFontAtlas;

namespace trainscope::gui {

// Line heights in logical pixels. Text and numbers have sizes of their own.
struct FontSizes {
  float text = 14.0F;
  float number = 13.0F;
  float scale = 1.0F;  // pixels of a logical one

  bool operator==(const FontSizes&) const = default;
};

class Fonts {
 public:
  explicit Fonts(const FontSizes& sizes = {});
  ~Fonts();
  Fonts(const Fonts&) = delete;
  Fonts& operator=(const Fonts&) = delete;

  // Both only between frames. True where the atlas is another one than before, and its texture has
  // to be made anew.
  bool resize(const FontSizes& sizes);
  // Adds what the texts so far had no glyph for, as far as a font has it.
  bool settle();

  const FontSizes& sizes() const { return sizes_; }
  ImFontAtlas* atlas() const { return atlas_.get(); }
  ImFont* font(Face face) const { return fonts_[static_cast<std::size_t>(face)]; }
  FaceMetrics metrics(Face face) const;
  float width(std::string_view text, Face face) const;
  // The text with U+XXXX in place of what no font has; it lies in `text` or in `storage`.
  std::string_view shown(std::string_view text, Face face, std::string& storage) const;

 private:
  void build();
  float line_height(Face face) const;

  FontSizes sizes_;
  std::unique_ptr<ImFontAtlas> atlas_;
  std::array<ImFont*, kFaces> fonts_ = {};
  std::set<char32_t> known_;           // that were asked for, whether a font has them or not
  mutable std::set<char32_t> wanted_;  // that a text had and are not known yet
  std::vector<std::uint16_t> ranges_;  // of the packed fonts: first and last, one after the other
  std::vector<std::vector<std::uint16_t>> fallback_ranges_;
};

// The height of an em by the line height of the packed fonts.
inline constexpr float kEmOfLine = 2048.0F / 2384.0F;

}  // namespace trainscope::gui
