// The clips of a canvas.
#include "gui/draw/canvas.h"

namespace trainscope::gui {

void Canvas::push_clip(const Rect& rect) {
  clips_.push_back(clip().intersected(rect));
  begin_clip(clip());
}

void Canvas::pop_clip() {
  clips_.pop_back();
  end_clip();
}

}  // namespace trainscope::gui
