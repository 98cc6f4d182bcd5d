// Draws what Dear ImGui would give to a graphics card: no card, no window.
#pragma once

#include "gui/draw/picture.h"

struct ImDrawData;
struct ImFontAtlas;

namespace trainscope::gui {

// As many pixels as the draw data's display; the atlas is the only texture.
Picture rasterized(const ImDrawData& data, const ImFontAtlas& atlas, Color background);

}  // namespace trainscope::gui
