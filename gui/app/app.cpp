// A frame: input, regions, what lies over them, then commands.
#include "gui/app/app.h"

#include <utility>

#include "gui/app/bookmarks.h"
#include "gui/app/commands.h"
#include "gui/app/frame.h"
#include "gui/app/overlays.h"
#include "gui/panels/panels.h"

namespace trainscope::gui {
namespace {

// Not one of a box that lies over the panels.
bool holds_panel(std::string_view region) {
  return region == "main" || region == "strip" || region == "inspector" || region == "stages";
}

}  // namespace

void App::frame(Canvas& canvas, double seconds) {
  items_.begin_frame();
  Input input = queue_.next(seconds);
  Ui ui(canvas, theme_of(workbench_.settings.theme), input, memory_, items_);
  open_dropped();
  workbench_.under_way = workbench_.is_opening();
  workbench_.moves = false;
  if (workbench_.under_way) workbench_.refresh();
  if (workbench_.is_reading_ahead()) workbench_.under_way = true;
  begin_view();
  for (const Panel& panel : all_panels()) {
    if (panel.advance != nullptr) panel.advance(workbench_);
  }
  const Panel* only = panel_named(only_);
  if (only != nullptr) {
    draw_panel_alone(ui, workbench_, *only, canvas.clip());
  } else {
    draw_window(ui, workbench_, canvas.clip());
    draw_overlay(ui, workbench_, canvas.clip());
  }
  ui.finish();
  if (holds_panel(memory_.region)) workbench_.region = memory_.region;
  run_keys(input);
  for (const std::string& command : workbench_.take_requests()) run_command(workbench_, command);
  workbench_.read_ahead();  // behind the first picture
  if (!workbench_.copied.empty()) memory_.clipboard = std::exchange(workbench_.copied, {});
}

void App::start_with(std::string view, std::span<const std::string> commands) {
  first_view_ = std::move(view);
  first_commands_.assign(commands.begin(), commands.end());
}

void App::drop(std::span<const char* const> paths) {
  dropped_.insert(dropped_.end(), paths.begin(), paths.end());
}

void App::open_dropped() {
  if (dropped_.empty()) return;
  const std::size_t first = workbench_.count();
  for (const std::string& path : std::exchange(dropped_, {})) workbench_.open(path);
  if (first < workbench_.count()) workbench_.activate(first);
}

void App::begin_view() {
  if (workbench_.is_opening()) return;
  if (!first_view_.empty()) show_view(workbench_, std::exchange(first_view_, {}));
  // A command may open a model, which the next one waits for.
  while (!first_commands_.empty() && !workbench_.is_opening()) {
    run_command(workbench_, first_commands_.front());
    first_commands_.pop_front();
  }
}

void App::run_keys(Input& input) {
  if (input.chord && run_chord(workbench_, *input.chord)) return;
  // Printable keys come as what they type, whatever the layout of the keyboard.
  for (const char c : input.text) {
    const bool is_letter = c >= 'a' && c <= 'z';
    const bool is_capital = c >= 'A' && c <= 'Z';
    const auto key = static_cast<Key>(is_letter ? c - 'a' + 'A' : c);
    const bool has_run = run_chord(workbench_, {.key = key, .shift = is_capital});
    if (!has_run && is_capital) run_chord(workbench_, {.key = key});  // Caps Lock
  }
}

}  // namespace trainscope::gui
