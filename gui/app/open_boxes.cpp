// Opens paths that are typed, and compiles models with the sizes that are.
#include "gui/app/open_boxes.h"

#include <string>
#include <utility>

#include "engine/core/text.h"
#include "gui/app/commands.h"
#include "gui/app/overlays.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"

namespace trainscope::gui {
namespace {

constexpr std::string_view kSizesHint = "--batch 8 --seq 128 --shape NAME=2,3";

struct OpenState {
  std::string path = {};
  std::string sizes = {};
  bool takes_focus = false;  // the first field, once
};

float field_height(const Ui& ui) { return ui.row_height() + 8.0F; }

FieldResponse path_field(Ui& ui, Rect& rest, OpenState& state, std::string_view hint) {
  return text_field(ui, "path", take_top(rest, field_height(ui)), state.path,
                    {.hint = hint, .takes_focus = std::exchange(state.takes_focus, false)});
}

// The field, and below it what is wrong with the words in it.
FieldResponse sizes_field(Ui& ui, Rect& rest, OpenState& state) {
  const std::string fault = fault_of_sizes(state.sizes);
  const FieldResponse typed = text_field(ui, "sizes", take_top(rest, field_height(ui)), state.sizes,
                                         {.hint = kSizesHint,
                                          .takes_focus = std::exchange(state.takes_focus, false),
                                          .is_wrong = !fault.empty()});
  const Rect below = take_top(rest, 2.0F * ui.row_height());
  if (!fault.empty()) ui.paragraph(below, fault, {.face = Face::kSmall, .color = ui.theme().error});
  return typed;
}

// At the box's bottom. True when it was pressed; Cancel closes the box.
bool end_buttons(Ui& ui, Workbench& workbench, Rect rest, std::string_view label, bool enabled) {
  Rect buttons = take_bottom(rest, field_height(ui));
  const bool pressed = button(ui, "open", take_right(buttons, button_width(ui, label)), label,
                              {.enabled = enabled, .primary = true});
  take_right(buttons, 8.0F);
  if (button(ui, "cancel", take_right(buttons, button_width(ui, "Cancel")), "Cancel")) {
    workbench.overlay = Overlay::kNone;
  }
  return pressed && enabled;
}

// What a box is done with: its command is run, and it closes.
void finish(Workbench& workbench, std::string command) {
  workbench.overlay = Overlay::kNone;
  workbench.request(std::move(command));
}

}  // namespace

void open_box(Workbench& workbench, Overlay box) {
  auto& state = workbench.state<OpenState>();
  state = {.takes_focus = true};
  if (box == Overlay::kSizes) {
    for (const std::string& word : words_of(workbench.run()->sizes())) {
      state.sizes += (state.sizes.empty() ? "" : " ") + word;
    }
  }
  workbench.overlay = box;
}

void draw_open(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<OpenState>();
  const Modal modal(ui, workbench, window, "open", {560.0F, 3.0F * ui.row_height() + 78.0F});
  Rect rest = modal.body();
  ui.text(take_top(rest, ui.row_height() + 6.0F), "Open a run, a model or a folder of runs",
          {.face = Face::kBold});
  const FieldResponse typed = path_field(ui, rest, state, "runs/demo-1/run or model.onnx");
  const bool has_path = !trim(state.path).empty();
  const bool pressed = end_buttons(ui, workbench, rest, "Open", has_path);
  if (typed.left) workbench.overlay = Overlay::kNone;
  if (pressed || (typed.submitted && has_path)) finish(workbench, "open " + state.path);
}

void draw_open_model(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<OpenState>();
  const float height = 4.0F * ui.row_height() + 3.0F * field_height(ui) + 48.0F;
  const Modal modal(ui, workbench, window, "open_model", {560.0F, height});
  Rect rest = modal.body();
  ui.text(take_top(rest, ui.row_height() + 6.0F), "Open an ONNX model", {.face = Face::kBold});
  const FieldResponse path = path_field(ui, rest, state, "model.onnx");
  take_top(rest, 6.0F);
  ui.text(take_top(rest, ui.row_height()), "Sizes that the model leaves open",
          {.color = ui.theme().soft_ink});
  const FieldResponse sizes = sizes_field(ui, rest, state);
  const bool is_whole = !trim(state.path).empty() && fault_of_sizes(state.sizes).empty();
  const bool pressed = end_buttons(ui, workbench, rest, "Open", is_whole);
  if (path.left || sizes.left) workbench.overlay = Overlay::kNone;
  if (pressed || ((path.submitted || sizes.submitted) && is_whole)) {
    finish(workbench, "open " + state.path + " " + state.sizes);
  }
}

void draw_sizes(Ui& ui, Workbench& workbench, const Rect& window) {
  const RunData* run = workbench.run();
  if (run == nullptr || run->kind() != SourceKind::kModel) {
    workbench.overlay = Overlay::kNone;  // it was closed meanwhile
    return;
  }
  auto& state = workbench.state<OpenState>();
  const float why_height = run->wants_sizes() ? 4.0F * ui.row_height() : 0.0F;
  const float height = why_height + 3.0F * ui.row_height() + 2.0F * field_height(ui) + 42.0F;
  const Modal modal(ui, workbench, window, "sizes", {560.0F, height});
  Rect rest = modal.body();
  ui.text(take_top(rest, ui.row_height() + 6.0F), "Sizes of " + run->name(),
          {.face = Face::kBold, .fit = Fit::kMiddle});
  if (run->wants_sizes()) {
    ui.paragraph(take_top(rest, why_height), run->message(Topic::kSource).text,
                 {.color = ui.theme().soft_ink, .fit = Fit::kEnd});
  }
  const FieldResponse typed = sizes_field(ui, rest, state);
  const bool is_good = !trim(state.sizes).empty() && fault_of_sizes(state.sizes).empty();
  const bool pressed = end_buttons(ui, workbench, rest, "Compile", is_good);
  if (typed.left) workbench.overlay = Overlay::kNone;
  if (pressed || (typed.submitted && is_good)) finish(workbench, "sizes " + state.sizes);
}

}  // namespace trainscope::gui
