// The words of the window, each in a sentence: from docs/glossary.md.
#pragma once

#include <span>
#include <string_view>

namespace trainscope::gui {

struct GlossaryEntry {
  std::string_view word = {};
  std::string_view meaning = {};
};
std::span<const GlossaryEntry> glossary();

}  // namespace trainscope::gui
