// A line of text that is edited.
#pragma once

#include <string>
#include <string_view>

#include "gui/ui/ui.h"

namespace trainscope::gui {

struct FieldLook {
  // Shown while it is empty, where there is room; else what is before its ":".
  std::string_view hint = {};
  std::string_view tooltip = {};
  bool takes_focus = false;  // in this frame
  bool is_wrong = false;     // what it holds is not understood
};

struct FieldResponse {
  bool changed = false;
  bool submitted = false;  // by Enter
  bool left = false;       // by Escape
};

FieldResponse text_field(Ui& ui, std::string_view name, const Rect& rect, std::string& text,
                         const FieldLook& look = {});

}  // namespace trainscope::gui
