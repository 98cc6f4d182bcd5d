// Names of keys come from the keyboard's layout: Ctrl+Z is where the key says Z.
#include "gui/platform/glfw_keys.h"

#include <GLFW/glfw3.h>

#include <utility>

namespace trainscope::gui {
namespace {

constexpr std::pair<int, Key> kNamedKeys[] = {{GLFW_KEY_ESCAPE, Key::kEscape},
                                              {GLFW_KEY_ENTER, Key::kEnter},
                                              {GLFW_KEY_KP_ENTER, Key::kEnter},
                                              {GLFW_KEY_TAB, Key::kTab},
                                              {GLFW_KEY_BACKSPACE, Key::kBackspace},
                                              {GLFW_KEY_DELETE, Key::kDelete},
                                              {GLFW_KEY_LEFT, Key::kLeft},
                                              {GLFW_KEY_RIGHT, Key::kRight},
                                              {GLFW_KEY_UP, Key::kUp},
                                              {GLFW_KEY_DOWN, Key::kDown},
                                              {GLFW_KEY_HOME, Key::kHome},
                                              {GLFW_KEY_END, Key::kEnd},
                                              {GLFW_KEY_PAGE_UP, Key::kPageUp},
                                              {GLFW_KEY_PAGE_DOWN, Key::kPageDown}};

}  // namespace

Chord modifiers_of(int modifiers) {
  return {.control = (modifiers & GLFW_MOD_CONTROL) != 0,
          .shift = (modifiers & GLFW_MOD_SHIFT) != 0,
          .alt = (modifiers & GLFW_MOD_ALT) != 0};
}

std::optional<Chord> chord_of(int key, int scan_code, int modifiers) {
  Chord chord = modifiers_of(modifiers);
  for (const auto& [glfw, named] : kNamedKeys) {
    if (glfw != key) continue;
    chord.key = named;
    return chord;
  }
  if (key >= GLFW_KEY_F1 && key <= GLFW_KEY_F12) {
    chord.key = static_cast<Key>(static_cast<int>(Key::kF1) + key - GLFW_KEY_F1);
    return chord;
  }
  if (!chord.control && !chord.alt) return std::nullopt;
  const char* name = glfwGetKeyName(key, scan_code);
  if (name == nullptr || name[0] <= ' ' || name[1] != '\0') return std::nullopt;
  const char c = name[0];
  chord.key = static_cast<Key>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (c == '=' && chord.shift) chord = {.key = static_cast<Key>('+'), .control = chord.control};
  return chord;
}

}  // namespace trainscope::gui
