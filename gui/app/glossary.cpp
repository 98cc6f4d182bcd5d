// The table that the build makes of docs/glossary.md.
#include "gui/app/glossary.h"

namespace trainscope::gui {

std::span<const GlossaryEntry> glossary() {
  static constexpr GlossaryEntry entries[] = {
#include TRAINSCOPE_GLOSSARY_ROWS
  };
  return entries;
}

}  // namespace trainscope::gui
