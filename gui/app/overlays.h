// What lies over the regions: palette, help, welcome screen, tour, settings, layouts, notes,
// opening.
#pragma once

#include <string_view>

#include "gui/ui/ui.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {

// What of it is open now.
void draw_overlay(Ui& ui, Workbench& workbench, const Rect& window);

// The box of an overlay, in the middle of the window, over what it darkens; closed by Escape or a
// press outside. What is drawn must be within a Modal's life.
class Modal {
 public:
  Modal(Ui& ui, Workbench& workbench, const Rect& window, std::string_view name, Extent size);
  ~Modal();
  Modal(const Modal&) = delete;
  Modal& operator=(const Modal&) = delete;

  const Rect& body() const { return body_; }

 private:
  Ui& ui_;
  Region region_;
  Scope scope_;
  Rect box_;
  Rect body_;
  Surface surface_;
};

void draw_palette(Ui& ui, Workbench& workbench, const Rect& window);
void draw_help(Ui& ui, Workbench& workbench, const Rect& window);
void draw_welcome(Ui& ui, Workbench& workbench, const Rect& window);
void draw_tour(Ui& ui, Workbench& workbench, const Rect& window);
void draw_open(Ui& ui, Workbench& workbench, const Rect& window);
void draw_open_model(Ui& ui, Workbench& workbench, const Rect& window);
void draw_sizes(Ui& ui, Workbench& workbench, const Rect& window);
void draw_notes(Ui& ui, Workbench& workbench, const Rect& window);
void draw_settings(Ui& ui, Workbench& workbench, const Rect& window);
void draw_layouts(Ui& ui, Workbench& workbench, const Rect& window);

}  // namespace trainscope::gui
