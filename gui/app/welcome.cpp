// The first screen: what can be opened.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/core/text.h"
#include "gui/app/overlays.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

std::string folder_name(const std::string& path) {
  const std::filesystem::path p(path);
  return p.has_filename() ? p.filename().string() : p.parent_path().filename().string();
}

// The newest run that ./demo.sh has made in a folder.
std::optional<std::filesystem::path> demo_run_in(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  constexpr std::string_view kName = "demo-";
  std::optional<fs::path> found;
  std::int64_t newest = 0;
  std::error_code ended;
  for (fs::directory_iterator entry(folder / "runs", ended);
       !ended && entry != fs::directory_iterator(); entry.increment(ended)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kName)) continue;
    const std::int64_t number = parse_int(name.substr(kName.size())).value_or(0);
    std::error_code ignored;
    if (number <= newest || !fs::exists(entry->path() / "run/manifest.json", ignored)) continue;
    newest = number;
    found = entry->path() / "run";
  }
  return found;
}

// The same of the folder where the window was started, or of the nearest one above it that has one.
std::optional<std::filesystem::path> demo_run() {
  std::filesystem::path above;
  std::error_code ignored;
  const std::filesystem::path start = std::filesystem::current_path(ignored);
  for (std::filesystem::path folder = start; folder != above; folder = folder.parent_path()) {
    std::optional<std::filesystem::path> found = demo_run_in(folder);
    if (found) return found;
    above = folder;
  }
  return std::nullopt;
}

// Looked for once a second: folders above may be slow.
struct WelcomeState {
  std::optional<std::filesystem::path> demo = {};
  double looked = -1.0;  // seconds of the program; below 0: never
};

const std::optional<std::filesystem::path>& demo_of_now(Ui& ui, WelcomeState& state) {
  const double now = ui.input().seconds;
  if (state.looked >= 0.0 && now >= state.looked && now - state.looked < 1.0) return state.demo;
  state.looked = now;
  state.demo = demo_run();
  return state.demo;
}

void draw_recent(Ui& ui, Workbench& workbench, Rect& rest, bool has_demo) {
  ui.text(take_top(rest, ui.row_height()), "Recent", {.face = Face::kBold});
  const std::vector<std::string> recent = workbench.settings.recent;
  if (recent.empty()) {
    take_top(rest, ui.paragraph(rest,
                                has_demo ? "Nothing was opened yet."
                                         : "Nothing was opened yet. ./demo.sh trains a run.",
                                {.color = ui.theme().soft_ink}));
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
  const float height = ui.row_height() + 8.0F;
  Rect buttons = take_top(rest, height);
  const auto choice = [&](std::string_view name, std::string_view label, const ButtonLook& look) {
    const float width = button_width(ui, label);
    if (width > buttons.width) {  // of large text: a row more
      take_top(rest, 8.0F);
      buttons = take_top(rest, height);
    }
    const bool pressed = button(ui, name, take_left(buttons, width), label, look);
    take_left(buttons, 8.0F);
    return pressed;
  };
  // Who has not seen the tour is led to it.
  const bool is_new = !workbench.settings.tour_seen;
  if (choice("open", "Open a run...",
             {.primary = !is_new, .tooltip = "A run, or a folder of runs"})) {
    workbench.request("file.open");
  }
  if (choice("open_model", "Open ONNX...",
             {.tooltip = "A model, and the sizes that it leaves open"})) {
    workbench.request("file.open_model");
  }
  const std::optional<std::filesystem::path> demo =
      demo_of_now(ui, workbench.state<WelcomeState>());
  if (choice("demo", "Open the demo run",
             {.enabled = demo.has_value(),
              .tooltip = demo ? "The newest run that ./demo.sh has made"
                              : "There is none in this folder or above it: ./demo.sh makes one"})) {
    workbench.request("open " + demo->string());
  }
  if (choice("tour", "Take the tour",
             {.primary = is_new, .tooltip = "Six steps through the window"})) {
    workbench.overlay = Overlay::kTour;
  }
  if (choice("close", "Close", {})) workbench.overlay = Overlay::kNone;
  take_top(rest, 12.0F);
  draw_recent(ui, workbench, rest, demo.has_value());
  if (workbench.notice.is_error) {
    ui.paragraph(take_bottom(rest, ui.row_height() * 2.0F), workbench.notice.text,
                 {.color = ui.theme().error, .fit = Fit::kEnd});
  }
}

}  // namespace trainscope::gui
