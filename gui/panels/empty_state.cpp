// Draws empty panels, and quotes command lines.
#include "gui/panels/empty_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

float width_of_text(const Rect& rect) { return std::min(560.0F, rect.width - 24.0F); }

float height_of(Ui& ui, std::string_view text, float width, Face face) {
  const Clip nowhere(ui, {0.0F, 0.0F, 0.0F, 0.0F});
  return ui.paragraph({0.0F, 0.0F, width, 1e6F}, text, {.face = face});
}

// Draws it as far as there is room, and returns where it ends.
float drawn_to(Ui& ui, Workbench& workbench, const Rect& rect, std::string_view title,
               const Message& message) {
  const Scope scope(ui, "empty");
  const float line = ui.row_height();
  const bool has_command = !message.command.empty();
  const float width = width_of_text(rect);
  if (width < 60.0F) return rect.bottom();
  const Face face = rect.height > 120.0F ? Face::kTitle : Face::kBold;
  const float title_height = height_of(ui, title, width, face);
  const float height = height_of(ui, message.text, width, Face::kText);
  const float all = title_height + 4.0F + height + (has_command ? 2.0F * line + 8.0F : 0.0F);
  Rect rest{rect.x + (rect.width - width) / 2.0F,
            rect.y + std::max(4.0F, (rect.height - all) / 2.0F), width, 0.0F};
  rest.height = std::max(0.0F, rect.bottom() - rest.y);
  if (rest.height < title_height) return rest.bottom();
  ui.paragraph(take_top(rest, title_height), title, {.face = face});
  take_top(rest, 4.0F);
  // Names from files may make it longer than there is room for.
  ui.paragraph(take_top(rest, height), message.text,
               {.color = ui.theme().soft_ink, .fit = Fit::kEnd});
  if (!has_command || rest.height < 2.0F * line) return rest.y;
  take_top(rest, 8.0F);
  Rect row = take_top(rest, line + 6.0F);
  const Rect copy = take_right(row, button_width(ui, "Copy"));
  take_right(row, 6.0F);
  {
    const Surface surface(ui, row, ui.theme().inset, 4.0F);
    ui.text(row.inset(8.0F, 0.0F), message.command, {.face = Face::kNumber, .fit = Fit::kMiddle});
  }
  if (button(ui, "copy", copy, "Copy", {.tooltip = "Copy the command line"})) {
    ui.copy(message.command);
    workbench.tell("copied the command line");
  }
  return rest.y;
}

// A button below what is drawn down to `top`; in the main region, which has the room. True when it
// was pressed.
bool button_below(Ui& ui, const Rect& rect, float top, std::string_view name,
                  std::string_view label, const ButtonLook& look) {
  const Rect place{rect.x + (rect.width - width_of_text(rect)) / 2.0F, top + 12.0F,
                   button_width(ui, label), ui.row_height() + 6.0F};
  if (rect.width < 400.0F || place.bottom() > rect.bottom()) return false;
  return button(ui, name, place, label, look);
}

}  // namespace

void draw_empty(Ui& ui, Workbench& workbench, const Rect& rect, std::string_view title,
                const Message& message) {
  drawn_to(ui, workbench, rect, title, message);
}

bool has_content(Ui& ui, Workbench& workbench, const Rect& rect, Topic topic, bool is_there,
                 std::string_view title) {
  const RunData* run = workbench.run();
  if (run == nullptr) {
    draw_empty(ui, workbench, rect, title, {.text = "Open a run or a model first: Ctrl+O."});
    return false;
  }
  if (run->is_opening()) {
    const float top =
        drawn_to(ui, workbench, rect, "Compiling " + run->name(), run->message(Topic::kSource));
    if (button_below(ui, rect, top, "stop_opening", "Stop", {.tooltip = "Give up compiling it"})) {
      workbench.request("file.stop");
    }
    return false;
  }
  if (is_there) return true;
  const Message& source = run->message(Topic::kSource);
  Message shown = source.empty() ? run->message(topic) : source;
  if (shown.empty()) shown.text = "The run has nothing of it.";
  const float top =
      drawn_to(ui, workbench, rect,
               run->wants_sizes() ? "Sizes of " + run->name() : std::string(title), shown);
  if (run->wants_sizes() &&
      button_below(ui, rect, top, "sizes", "Give sizes...",
                   {.primary = true, .tooltip = "Sizes of the model's open dimensions"})) {
    workbench.request("file.sizes");
  }
  return false;
}

std::string twin_of_run(Workbench& workbench, std::string_view verb) {
  const RunData* run = workbench.run();
  return fmt::format("trainscope {} {}", verb, run == nullptr ? std::string("RUN") : run->words());
}

}  // namespace trainscope::gui
