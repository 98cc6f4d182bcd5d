// The glyphs of all faces at one size. Who asks for the same ones again gets the same atlas:
// windows that are opened one after the other, and one that becomes larger and smaller again.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
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
float line_height(const FontSizes& sizes, Face face);

class FaceAtlas {
 public:
  // With glyphs for `more` besides those that our own texts have, as far as a font has them.
  FaceAtlas(const FontSizes& sizes, const std::set<char32_t>& more);
  ~FaceAtlas();
  FaceAtlas(const FaceAtlas&) = delete;
  FaceAtlas& operator=(const FaceAtlas&) = delete;

  ImFontAtlas* glyphs() const { return glyphs_.get(); }
  ImFont* font(Face face) const { return fonts_[static_cast<std::size_t>(face)]; }

 private:
  std::unique_ptr<ImFontAtlas> glyphs_;
  std::array<ImFont*, kFaces> fonts_ = {};
  std::vector<std::uint16_t> ranges_;  // of the packed fonts: first and last, one after the other
  std::vector<std::vector<std::uint16_t>> fallback_ranges_;
};

// Of the atlases built last a few are kept. All windows of a process are drawn by one thread.
std::shared_ptr<const FaceAtlas> face_atlas(const FontSizes& sizes, const std::set<char32_t>& more);

}  // namespace trainscope::gui
