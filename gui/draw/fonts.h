// The faces in their sizes, whose atlas of glyphs becomes another one between frames.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "gui/draw/canvas.h"
#include "gui/draw/face_atlas.h"

namespace trainscope::gui {

class Fonts {
 public:
  explicit Fonts(const FontSizes& sizes = {});

  // Both only between frames. True where the atlas is another one than before: the context of Dear
  // ImGui has to be given it, and a texture of it has to be made.
  bool resize(const FontSizes& sizes);
  // Adds what the texts so far had no glyph for, as far as a font has it.
  bool settle();

  const FontSizes& sizes() const { return sizes_; }
  ImFontAtlas* atlas() const { return atlas_->glyphs(); }
  ImFont* font(Face face) const { return atlas_->font(face); }
  FaceMetrics metrics(Face face) const;
  float width(std::string_view text, Face face) const;
  // The text with U+XXXX in place of what no font has; it lies in `text` or in `storage`.
  std::string_view shown(std::string_view text, Face face, std::string& storage) const;

 private:
  FontSizes sizes_;
  std::set<char32_t> known_;           // that were asked for, whether a font has them or not
  mutable std::set<char32_t> wanted_;  // that a text had and are not known yet
  std::shared_ptr<const FaceAtlas> atlas_;
};

// The height of an em by the line height of the packed fonts.
inline constexpr float kEmOfLine = 2048.0F / 2384.0F;

}  // namespace trainscope::gui
