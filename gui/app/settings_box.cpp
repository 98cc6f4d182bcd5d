// Settings and notes, each in a box over the window.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "gui/app/bookmarks.h"
#include "gui/app/overlays.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"

namespace trainscope::gui {
namespace {

struct NotesState {
  std::string text;
};

constexpr std::string_view kLongestLabel = "Scale of everything";

float label_width(const Ui& ui) { return std::ceil(ui.width(kLongestLabel)) + 16.0F; }

void size_row(Ui& ui, Rect& rest, std::string_view name, std::string_view label, float& value,
              const SliderRange& range, std::string_view format_unit) {
  Rect row = take_top(rest, ui.row_height() + 8.0F);
  ui.text(take_left(row, label_width(ui)), label);
  const std::string text = fmt::format("{:.{}f} {}", value, range.step < 1.0 ? 2 : 0, format_unit);
  const float number = std::ceil(ui.width("0.00 px", Face::kNumber)) + 8.0F;
  ui.text(take_right(row, number), text, {.face = Face::kNumber, .align = Align::kRight});
  double wanted = static_cast<double>(value);
  if (slider(ui, name, row, wanted, range, text)) {
    value = static_cast<float>(std::round(wanted / range.step) * range.step);
  }
}

}  // namespace

void draw_settings(Ui& ui, Workbench& workbench, const Rect& window) {
  Settings& settings = workbench.settings;
  const float row = ui.row_height();
  const Modal modal(ui, workbench, window, "settings", {22.0F * row, 6.0F * row + 100.0F});
  Rect rest = modal.body();
  Rect head = take_top(rest, ui.row_height() + 6.0F);
  if (button(ui, "close", take_right(head, button_width(ui, "Close")), "Close")) {
    workbench.overlay = Overlay::kNone;
  }
  ui.text(head, "Settings", {.face = Face::kTitle});
  take_top(rest, 8.0F);
  Rect themes = take_top(rest, ui.row_height() + 8.0F);
  ui.text(take_left(themes, std::ceil(ui.width("Theme")) + 16.0F), "Theme");
  std::array<std::string_view, kThemeNames.size()> titles;
  for (std::size_t i = 0; i < titles.size(); ++i) titles[i] = theme_of(kThemeNames[i]).title;
  auto chosen = static_cast<std::size_t>(settings.theme);
  if (tabs(ui, "theme", themes, titles, chosen)) settings.theme = kThemeNames[chosen];
  take_top(rest, 6.0F);
  size_row(ui, rest, "scale", kLongestLabel, settings.scale, {kLeastScale, kGreatestScale, 0.05},
           "x");
  size_row(ui, rest, "text_size", "Size of text", settings.text_size, {11.0, 24.0, 1.0}, "px");
  size_row(ui, rest, "number_size", "Size of numbers", settings.number_size, {10.0, 24.0, 1.0},
           "px");
  take_top(rest, 6.0F);
  toggle(ui, "motion", take_top(rest, ui.row_height() + 4.0F),
         "Less motion: changes are shown at once", settings.reduced_motion);
}

void draw_notes(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<NotesState>();
  const Modal modal(ui, workbench, window, "notes", {620.0F, 440.0F});
  Rect rest = modal.body();
  Rect head = take_top(rest, ui.row_height() + 6.0F);
  if (button(ui, "close", take_right(head, button_width(ui, "Close")), "Close")) {
    workbench.overlay = Overlay::kNone;
  }
  ui.fitting_text(head, {"Notes and bookmarks of this run", "Notes"}, {.face = Face::kTitle});
  take_top(rest, 8.0F);
  Rect entry = take_top(rest, ui.row_height() + 8.0F);
  const bool pressed = button(ui, "add", take_right(entry, button_width(ui, "Add")), "Add",
                              {.primary = true, .tooltip = "With the view that is shown now"});
  take_right(entry, 8.0F);
  const FieldResponse typed =
      text_field(ui, "text", entry, state.text, {.hint = "a note on what is shown now"});
  if (pressed || typed.submitted) {
    add_note(workbench, state.text);
    state.text.clear();
  }
  take_top(rest, 8.0F);
  const float height = ui.row_height() + 6.0F;
  const std::vector<Note> notes = workbench.notes.notes;
  if (notes.empty()) {
    ui.paragraph(rest, "There are none. M keeps the panel and the selection as a bookmark.",
                 {.color = ui.theme().soft_ink});
  }
  const Scrolled view = scrolled(ui, "list", rest, height * static_cast<float>(notes.size()));
  const Clip clip(ui, view.view, Moves::kUpAndDown);
  for (std::size_t i = 0; i < notes.size(); ++i) {
    const Scope scope(ui, std::to_string(i));
    Rect row{view.view.x, view.view.y + height * static_cast<float>(i) - view.offset,
             view.view.width, height};
    if (button(ui, "remove", take_right(row, kLeastControl + 4.0F), "✕",
               {.flat = true, .tooltip = "Remove"})) {
      remove_note(workbench, i);
    }
    const std::string label = notes[i].text.empty() ? notes[i].view : notes[i].text;
    if (button(ui, "show", row, label,
               {.flat = true,
                .tooltip = "Show this view",
                .fit = Fit::kMiddle,
                .align = Align::kLeft})) {
      workbench.overlay = Overlay::kNone;
      show_view(workbench, notes[i].view);
    }
  }
}

}  // namespace trainscope::gui
