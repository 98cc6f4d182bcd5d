// Atlases of glyphs: which are the same, and what they hold.
#include "gui/draw/face_atlas.h"

#include <doctest/doctest.h>
#include <imgui.h>

#include <memory>

#include "gui/draw/fonts.h"

namespace trainscope::gui {
namespace {

TEST_CASE("face atlas: who asks for the same sizes and letters has the same one") {
  const std::shared_ptr<const FaceAtlas> usual = face_atlas({}, {});
  CHECK(face_atlas({}, {}) == usual);
  CHECK(face_atlas({.scale = 2.0F}, {}) != usual);
  CHECK(face_atlas({.number = 14.0F}, {}) != usual);
  CHECK(face_atlas({}, {U'λ'}) != usual);
  CHECK(face_atlas({}, {}) == usual);
  CHECK(usual->font(Face::kText)->FindGlyphNoFallback(U'A') != nullptr);
  CHECK(usual->font(Face::kText)->FindGlyphNoFallback(U'λ') == nullptr);
  CHECK(face_atlas({}, {U'λ'})->font(Face::kText)->FindGlyphNoFallback(U'λ') != nullptr);
}

TEST_CASE("face atlas: what is not asked for any more goes away, what is in use stays") {
  const Fonts held({.text = 15.0F});
  std::weak_ptr<const FaceAtlas> forgotten = face_atlas({.text = 16.0F}, {});
  CHECK_FALSE(forgotten.expired());
  for (float size = 20.0F; size < 30.0F; ++size) face_atlas({.text = size}, {});
  CHECK(forgotten.expired());
  CHECK(held.font(Face::kText)->FontSize == 15.0F);
  CHECK(held.width("A", Face::kText) > 0.0F);
}

TEST_CASE("face atlas: a window that becomes larger and smaller again has the one from before") {
  Fonts fonts;
  const ImFontAtlas* before = fonts.atlas();
  CHECK(fonts.resize({.scale = 1.25F}));
  CHECK(fonts.atlas() != before);
  CHECK(fonts.resize({}));
  CHECK(fonts.atlas() == before);
}

}  // namespace
}  // namespace trainscope::gui
