// Help: what the panel in front shows, every key, and the glossary.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "gui/app/commands.h"
#include "gui/app/glossary.h"
#include "gui/app/overlays.h"
#include "gui/app/workspaces.h"
#include "gui/panels/panels.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

struct HelpState {
  std::size_t page = 0;
};
constexpr std::array<std::string_view, 3> kPages = {"This panel", "Keys", "Glossary"};

constexpr float kMargin = 4.0F;  // between the text and the bar that scrolls it

// Draws a paragraph and takes its height off the top; draws nothing outside of what is seen.
void flow(Ui& ui, Rect& rest, std::string_view text, const TextLook& look = {}) {
  take_top(rest, ui.paragraph(rest, text, look));
}

void draw_panel_page(Ui& ui, Workbench& workbench, Rect& rest) {
  const Panel& panel = panel_in_front(workbench.settings.layout, ui.memory().region);
  flow(ui, rest, panel.title, {.face = Face::kTitle});
  take_top(rest, 6.0F);
  flow(ui, rest, panel.about);
  take_top(rest, 10.0F);
  const bool has_keys = std::ranges::any_of(
      panel.commands, [](const AppCommand& command) { return !command.panel_key.empty(); });
  if (has_keys || !panel.keys.empty()) {
    flow(ui, rest, "Keys of this panel", {.face = Face::kBold});
    for (const AppCommand& command : panel.commands) {
      if (command.panel_key.empty()) continue;
      flow(ui, rest, fmt::format("{}: {}", command.panel_key, command.help));
    }
    if (!panel.keys.empty()) flow(ui, rest, panel.keys);
    take_top(rest, 10.0F);
  }
  if (panel.twin == nullptr) return;
  flow(ui, rest, "The same numbers on the command line", {.face = Face::kBold});
  flow(ui, rest, panel.twin(workbench), {.face = Face::kNumber, .color = ui.theme().soft_ink});
}

void draw_pair(Ui& ui, Rect& rest, std::string_view left, std::string_view right, float width) {
  Rect row = rest;
  const Rect key = take_left(row, width);
  const float height =
      ui.paragraph({key.x, key.y, key.width - 8.0F, key.height}, left, {.face = Face::kBold});
  take_top(rest, std::max(height, ui.paragraph(row, right)) + 3.0F);
}

void draw_keys_page(Ui& ui, Workbench&, Rect& rest) {
  for (const AppCommand& command : all_commands()) {
    if (command.key.empty()) continue;
    draw_pair(ui, rest, command.key, std::string(command.title) + ": " + std::string(command.help),
              110.0F);
  }
  draw_pair(ui, rest, "Tab", "The next control; Enter or Space presses it", 110.0F);
}

void draw_glossary_page(Ui& ui, Workbench&, Rect& rest) {
  for (const GlossaryEntry& entry : glossary()) {
    draw_pair(ui, rest, entry.word, entry.meaning, 170.0F);
  }
}

}  // namespace

void draw_help(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<HelpState>();
  const Panel& front = panel_in_front(workbench.settings.layout, ui.memory().region);
  const std::string region = ui.memory().region;
  const Modal modal(ui, workbench, window, "help", {680.0F, 520.0F});
  ui.memory().region = region;  // help is about the region that had the keys
  Rect rest = modal.body();
  Rect head = take_top(rest, ui.row_height() + 4.0F);
  if (button(ui, "close", take_right(head, button_width(ui, "Close")), "Close")) {
    workbench.overlay = Overlay::kNone;
  }
  tabs(ui, "page", head, kPages, state.page);
  take_top(rest, 8.0F);
  constexpr void (*kDraw[])(Ui&, Workbench&, Rect&) = {draw_panel_page, draw_keys_page,
                                                       draw_glossary_page};
  const std::string name = "text " + std::string(kPages[state.page]) + std::string(front.id);
  // How high the text is shows where it ends.
  float height = 0.0F;
  {
    const Clip nowhere(ui, {0.0F, 0.0F, 0.0F, 0.0F});
    Rect all{0.0F, 0.0F, rest.width - kScrollbarWidth - kMargin, 1e6F};
    kDraw[state.page](ui, workbench, all);
    height = 1e6F - all.height;
  }
  float& offset = ui.memory().scroll[ui.path_of(name)];
  if (ui.take("Down")) offset += 3.0F * ui.row_height();
  if (ui.take("Up")) offset -= 3.0F * ui.row_height();
  if (ui.take("PageDown")) offset += rest.height;
  if (ui.take("PageUp")) offset -= rest.height;
  const Scrolled view = scrolled(ui, name, rest, height);
  const Clip clip(ui, view.view, Moves::kUpAndDown);
  Rect text{view.view.x, view.view.y - view.offset, view.view.width - kMargin, height + 1.0F};
  kDraw[state.page](ui, workbench, text);
}

}  // namespace trainscope::gui
