// Makes the list of panels from panels.def.
#include "gui/panels/panels.h"

#include <algorithm>

namespace trainscope::gui {

#define PANEL(name) Panel name##_panel();
#include "gui/panels/panels.def"
#undef PANEL

std::span<const Panel> all_panels() {
#define PANEL(name) name##_panel(),
  static const std::vector<Panel> panels = {
#include "gui/panels/panels.def"
  };
#undef PANEL
  return panels;
}

const Panel* panel_named(std::string_view id) {
  const std::span<const Panel> panels = all_panels();
  const auto found = std::ranges::find(panels, id, &Panel::id);
  return found == panels.end() ? nullptr : &*found;
}

}  // namespace trainscope::gui
