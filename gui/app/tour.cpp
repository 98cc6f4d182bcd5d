// Six steps through the window: a card beside what it is about.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "gui/app/overlays.h"
#include "gui/app/workspaces.h"
#include "gui/ui/controls.h"

namespace trainscope::gui {
namespace {

struct TourState {
  std::size_t step = 0;
};

struct TourStep {
  std::string_view title;
  std::string_view text;
  std::string_view panel;  // that it shows, where there is one
};

constexpr std::string_view kMemory = "memory";
constexpr std::string_view kBudget = "budget";

constexpr std::array<TourStep, 6> kSteps = {{
    {"What ran, and how it went",
     "Overview: the model, the data, the result, the peak of memory and the time of a step. Each "
     "number is what the command line prints too.",
     "overview"},
    {"From the model to the step",
     "Graph: forward at the left, backward mirrored at the right. The stages show what each pass "
     "did to every node, and why.",
     "graph"},
    {"Every byte has its place",
     "Memory: the plan is the allocator. A rectangle is a buffer: how long it lives, and where in "
     "the arena it lies.",
     kMemory},
    {"Less memory for more time",
     "Budget: drag the slider, and the step is planned anew: what is made again, and what that "
     "takes. Then train on with the plan.",
     kBudget},
    {"Where the time went",
     "Kernels and Roofline: each op against what the machine can do. Below them, and by F3, the "
     "timeline: what ran when.",
     "kernels"},
    {"One selection, everywhere",
     "What you select in one panel is selected in all of them; the inspector says all that is "
     "known of it. Alt+Left goes back. Ctrl+P finds anything, ? explains the panel in front.",
     ""},
}};

// The workspace of the memory is left as F2 shows it.
void leave(Workbench& workbench, const TourStep& step) {
  if (step.panel == kBudget) show_panel(workbench.settings.layout, kMemory);
}

}  // namespace

void draw_tour(Ui& ui, Workbench& workbench, const Rect& window) {
  auto& state = workbench.state<TourState>();
  state.step = std::min(state.step, kSteps.size() - 1);
  const TourStep& step = kSteps[state.step];
  if (!step.panel.empty()) show_panel(workbench.settings.layout, step.panel);
  // As wide and high as its text asks for.
  const float width = std::min(ui.row_height() * 18.0F, window.width - 72.0F);
  const float title = ui.row_height() * 1.3F;
  const float foot = ui.row_height() + 6.0F;
  float text = 0.0F;
  {
    const Clip nowhere(ui, {0.0F, 0.0F, 0.0F, 0.0F});
    text = ui.paragraph({0.0F, 0.0F, width - 28.0F, 1e6F}, step.text);
  }
  const float height = title + text + foot + 28.0F;
  const Rect box{window.x + 60.0F, std::max(4.0F, window.bottom() - height - 48.0F), width, height};
  const Region region(ui, "tour", box, kModalLayer);
  const Scope scope(ui, "tour");
  const Surface surface(ui, box, ui.theme().header, 6.0F);
  ui.canvas().outline(box, {.color = ui.theme().accent, .width = 1.5F}, 6.0F);
  Rect rest = box.inset(14.0F, 10.0F);
  ui.text(take_top(rest, title), step.title, {.face = Face::kTitle});
  Rect buttons = take_bottom(rest, foot);
  ui.paragraph(rest, step.text);
  const bool is_last = state.step + 1 == kSteps.size();
  const std::string_view next = is_last ? "Done" : "Next";
  bool ended = false;
  if (button(ui, "next", take_right(buttons, button_width(ui, next)), next, {.primary = true})) {
    ended = is_last;
    leave(workbench, step);
    if (!is_last) ++state.step;
  }
  take_right(buttons, 6.0F);
  if (button(ui, "back", take_right(buttons, button_width(ui, "Back")), "Back",
             {.enabled = state.step > 0})) {
    leave(workbench, step);
    --state.step;
  }
  take_right(buttons, 6.0F);
  if (button(ui, "end", take_right(buttons, button_width(ui, "End")), "End", {.flat = true})) {
    ended = true;
    leave(workbench, step);
  }
  ui.text(buttons, fmt::format("{} of {}", state.step + 1, kSteps.size()),
          {.face = Face::kSmall, .color = ui.theme().soft_ink});
  if (!ended) return;
  state.step = 0;
  workbench.settings.tour_seen = true;
  workbench.overlay = Overlay::kNone;
}

}  // namespace trainscope::gui
