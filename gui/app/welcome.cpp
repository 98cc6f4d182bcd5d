// The first screen: what can be opened.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "gui/app/overlays.h"
#include "gui/ui/controls.h"
#include "gui/ui/text_field.h"

namespace trainscope::gui {
namespace {

struct OpenState {
  std::string path;
};

std::string folder_name(const std::string& path) {
  const std::filesystem::path p(path);
  return p.has_filename() ? p.filename().string() : p.parent_path().filename().string();
}

// The newest run that ./demo.sh has made, looked for where the window was started.
std::optional<std::filesystem::path> demo_run() {
  std::optional<std::filesystem::path> found;
  for (int i = 1; i < 1000; ++i) {
    std::error_code ignored;
    const std::filesystem::path run = fmt::format("runs/demo-{}/run", i);
    if (!std::filesystem::exists(run / "manifest.json", ignored)) break;
    found = run;
  }
  return found;
}

void draw_recent(Ui& ui, Workbench& workbench, Rect& rest) {
  ui.text(take_top(rest, ui.row_height()), "Recent", {.face = Face::kBold});
  const std::vector<std::string> recent = workbench.settings.recent;
  if (recent.empty()) {
    ui.text(take_top(rest, ui.row_height()), "Nothing was opened yet.",
            {.color = ui.theme().soft_ink});
  }
  for (std::size_t i = 0; i < recent.size() && rest.height > ui.row_height() * 3.0F; ++i) {
    const Scope scope(ui, "recent/" + std::to_string(i));
    const Rect row = take_top(rest, ui.row_height() + 4.0F);
    const Response pressed =
        ui.hit("", row, {.kind = ItemKind::kRow, .label = recent[i], .ink = ui.theme().ink});
    const Surface surface(ui, row, pressed.hovered ? ui.theme().hovered : ui.paper(), 3.0F);
    Rect inside = row.inset(8.0F, 0.0F);
    ui.text(take_left(inside, inside.width * 0.35F), folder_name(recent[i]), {.fit = Fit::kEnd});
    take_left(inside, 10.0F);
    ui.text(inside, recent[i],
            {.face = Face::kSmall,
             .color = ui.theme().soft_ink,
             .align = Align::kRight,
             .fit = Fit::kMiddle});
    if (pressed.clicked) workbench.request("open " + recent[i]);
  }
}

}  // namespace

void draw_welcome(Ui& ui, Workbench& workbench, const Rect& window) {
  const Modal modal(ui, workbench, window, "welcome", {620.0F, 470.0F});
  Rect rest = modal.body();
  ui.text(take_top(rest, ui.row_height() * 1.8F), "Trainscope", {.face = Face::kTitle});
  take_top(rest, ui.paragraph(rest,
                              "See why a training step costs what it costs: which node, which "
                              "kernel, which byte. Open a run's folder, an ONNX model, or a folder "
                              "of runs; or drop one on the window.",
                              {.color = ui.theme().soft_ink}));
  take_top(rest, 12.0F);
  Rect buttons = take_top(rest, ui.row_height() + 8.0F);
  if (button(ui, "open", take_left(buttons, button_width(ui, "Open...")), "Open...",
             {.primary = true})) {
    workbench.overlay = Overlay::kOpen;
  }
  take_left(buttons, 8.0F);
  const std::optional<std::filesystem::path> demo = demo_run();
  constexpr std::string_view kDemo = "Open the demo run";
  if (button(ui, "demo", take_left(buttons, button_width(ui, kDemo)), kDemo,
             {.enabled = demo.has_value(), .tooltip = "The newest run that ./demo.sh has made"})) {
    workbench.request("open " + demo->string());
  }
  take_left(buttons, 8.0F);
  if (button(ui, "tour", take_left(buttons, button_width(ui, "Take the tour")), "Take the tour")) {
    workbench.overlay = Overlay::kTour;
  }
  take_left(buttons, 8.0F);
  if (button(ui, "close", take_left(buttons, button_width(ui, "Close")), "Close")) {
    workbench.overlay = Overlay::kNone;
  }
  if (!demo) {
    ui.text(take_top(rest, ui.row_height() + 4.0F), "./demo.sh trains the demo run in two minutes.",
            {.face = Face::kSmall, .color = ui.theme().soft_ink});
  }
  take_top(rest, 12.0F);
  draw_recent(ui, workbench, rest);
  if (workbench.notice.is_error) {
    ui.paragraph(take_bottom(rest, ui.row_height() * 2.0F), workbench.notice.text,
                 {.color = ui.theme().error, .fit = Fit::kEnd});
  }
}

void draw_open(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<OpenState>();
  const Modal modal(ui, workbench, window, "open", {560.0F, 3.0F * ui.row_height() + 78.0F});
  Rect rest = modal.body();
  ui.text(take_top(rest, ui.row_height() + 6.0F), "Open a run, a model or a folder of runs",
          {.face = Face::kBold});
  const FieldResponse typed = text_field(
      ui, "path", take_top(rest, ui.row_height() + 8.0F), state.path,
      {.hint = "runs/demo-1/run or model.onnx", .takes_focus = ui.memory().focus.empty()});
  take_top(rest, 10.0F);
  Rect buttons = take_top(rest, ui.row_height() + 8.0F);
  const bool pressed = button(ui, "open", take_right(buttons, button_width(ui, "Open")), "Open",
                              {.enabled = !state.path.empty(), .primary = true});
  take_right(buttons, 8.0F);
  if (button(ui, "cancel", take_right(buttons, button_width(ui, "Cancel")), "Cancel") ||
      typed.left) {
    workbench.overlay = Overlay::kNone;
  }
  if ((!pressed && !typed.submitted) || state.path.empty()) return;
  workbench.overlay = Overlay::kNone;
  workbench.request("open " + state.path);
  state.path.clear();
}

}  // namespace trainscope::gui
