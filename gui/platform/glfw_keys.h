// GLFW's keys as chords.
#pragma once

#include <optional>

#include "gui/ui/input.h"

namespace trainscope::gui {

// Modifiers alone.
Chord modifiers_of(int glfw_modifiers);
// None for keys that type something, which come as text, and for those that mean nothing.
std::optional<Chord> chord_of(int glfw_key, int scan_code, int glfw_modifiers);

}  // namespace trainscope::gui
