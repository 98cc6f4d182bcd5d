// The Inspector: all that is known of the selection, and links to what it has to do with.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "engine/core/text.h"
#include "gui/panels/empty_state.h"
#include "gui/ui/controls.h"
#include "gui/views/inspection.h"
#include "gui/workbench/panel.h"
#include "gui/workbench/workbench.h"

namespace trainscope::gui {
namespace {

constexpr float kMostInspectorWidth = 560.0F;  // numbers stay near what they are of

struct InspectorState {
  Inspection shown;
  Selection of;
  const RunData* run = nullptr;
  std::uint64_t version = 0;
};

const Inspection& inspection_of_now(Workbench& workbench) {
  auto& state = workbench.state<InspectorState>();
  RunData* run = workbench.run();
  const bool kept = run == state.run && workbench.selection() == state.of && run != nullptr &&
                    run->version() == state.version;
  if (!kept) {
    state.shown = run == nullptr ? Inspection()
                                 : inspection_of(workbench.selection(), *run, workbench.links());
    state.of = workbench.selection();
    state.run = run;
    state.version = run == nullptr ? 0 : run->version();
  }
  return state.shown;
}

Unit unit_of(InspectionKind kind) {
  switch (kind) {
    case InspectionKind::kBytesRead:
    case InspectionKind::kBytesWritten:
    case InspectionKind::kWorkspace:
    case InspectionKind::kValueBytes:
    case InspectionKind::kOffset:
    case InspectionKind::kBufferBytes:
      return Unit::kBytes;
    case InspectionKind::kFlops:
      return Unit::kFlops;
    case InspectionKind::kTime:
      return Unit::kMilliseconds;
    case InspectionKind::kShare:
    case InspectionKind::kRoof:
      return Unit::kShare;
    case InspectionKind::kGigaflops:
      return Unit::kGigaflopsPerSecond;
    case InspectionKind::kGigabytes:
      return Unit::kGigabytesPerSecond;
    default:
      return Unit::kCount;
  }
}

// "{run}" becomes the run's path, and its session.
std::string fact_of(Workbench& workbench, const InspectionRow& row) {
  std::string fact = row.fact;
  const std::size_t at = fact.find("{run}");
  if (at == std::string::npos) return fact;
  const RunData& run = *workbench.run();
  fact.replace(at, 5, run.words() + run.session_flag());
  return fact;
}

void draw_link(Ui& ui, Workbench& workbench, const Rect& rect, const InspectionRow& row) {
  const Theme& theme = ui.theme();
  const bool leads = !row.target.empty();
  const Color ink = leads ? theme.accent : theme.ink;
  const Response pressed = ui.hit("link", rect,
                                  {.kind = leads ? ItemKind::kRow : ItemKind::kArea,
                                   .label = row.text,
                                   .value = row.target,
                                   .focusable = leads,
                                   .ink = ink});
  const Surface surface(ui, rect, leads && pressed.hovered ? theme.hovered : ui.paper(), 3.0F);
  Rect rest = rect.inset(4.0F, 0.0F);
  // What the name leaves, and not less than a good third.
  const float room = std::max(rest.width * 0.38F, rest.width - ui.width(row.text) - 8.0F);
  const float detail = std::min(room, ui.width(row.detail, Face::kSmall) + 8.0F);
  ui.text(
      take_right(rest, detail), row.detail,
      {.face = Face::kSmall, .color = theme.soft_ink, .align = Align::kRight, .fit = Fit::kMiddle});
  take_right(rest, 6.0F);
  ui.text(rest, row.text, {.color = ink, .fit = Fit::kMiddle});
  ui.tooltip(pressed, row.text + "\n" + row.detail);
  if (leads && pressed.clicked) workbench.request("select " + row.target);
}

// Returns the height that the row takes.
float draw_row(Ui& ui, Workbench& workbench, const Rect& place, const InspectionRow& row,
               std::size_t i) {
  const Scope scope(ui, std::to_string(i));
  const Theme& theme = ui.theme();
  const float height = ui.row_height();
  Rect line{place.x, place.y, place.width, height};
  if (row.kind == InspectionKind::kHeading) {
    line.y += 8.0F;
    ui.canvas().fill({line.x, line.y, line.width, 1.0F}, theme.line);
    return ui.paragraph({line.x, line.y + 4.0F, line.width, 1e6F}, row.label,
                        {.face = Face::kBold, .color = theme.soft_ink}) +
           14.0F;
  }
  if (row.kind == InspectionKind::kNote) {
    return ui.paragraph({line.x, line.y + 2.0F, line.width, 1e6F}, row.text,
                        {.color = theme.soft_ink}) +
           6.0F;
  }
  // Links below a heading, without labels, are as wide as they can be.
  const bool is_wide = row.kind == InspectionKind::kLink && row.label.empty() && row.is_wide;
  if (is_number(row.kind)) {
    const Response hovered =
        ui.hit("row", line, {.kind = ItemKind::kArea, .label = row.label, .focusable = false});
    ui.tooltip(hovered, meaning_of(row.kind));
  }
  const Rect label = take_left(line, is_wide ? 0.0F : std::min(104.0F, line.width * 0.38F));
  ui.text(label, row.label, {.color = theme.soft_ink, .fit = Fit::kEnd});
  if (row.kind == InspectionKind::kLink) {
    draw_link(ui, workbench, line, row);
    return height;
  }
  if (is_number(row.kind)) {
    ui.number(row.label, line.inset(4.0F, 0.0F), {row.number, unit_of(row.kind)},
              fact_of(workbench, row));
    return height;
  }
  const Rect text{line.x + 4.0F, line.y, line.width - 8.0F, 1e6F};
  if (ui.width(row.text) <= text.width) {
    ui.text({text.x, text.y, text.width, height}, row.text);
    return height;
  }
  return ui.paragraph({text.x, text.y + 2.0F, text.width, 1e6F}, row.text) + 4.0F;
}

float draw_rows(Ui& ui, Workbench& workbench, const Rect& place, const Inspection& shown) {
  Rect rest = place;
  for (std::size_t i = 0; i < shown.rows.size(); ++i) {
    take_top(rest, draw_row(ui, workbench, rest, shown.rows[i], i));
  }
  return place.height - rest.height;
}

void draw_inspector(Ui& ui, Workbench& workbench, const Rect& rect) {
  const RunData* run = workbench.run();
  if (!has_content(ui, workbench, rect, Topic::kPlan, run != nullptr && run->plan() != nullptr,
                   "Inspector")) {
    return;
  }
  if (workbench.selection().subject != Subject::kNothing && workbench.is_reading_ahead()) {
    draw_empty(ui, workbench, rect, "Reading",
               {.text = "What became of each node, and the times of all calls."});
    return;
  }
  const Inspection shown = inspection_of_now(workbench);
  if (shown.what.empty()) {
    draw_empty(ui, workbench, rect, "Nothing selected",
               {.text = "Click a node, a row or a rectangle, or find one by name: Ctrl+P."});
    return;
  }
  Rect rest = rect.inset(16.0F, 6.0F);
  rest.width = std::min(rest.width, kMostInspectorWidth);
  const std::string what =
      shown.stage.empty() ? shown.what : fmt::format("{} of the stage {}", shown.what, shown.stage);
  ui.text(take_top(rest, ui.row_height() - 2.0F), what,
          {.face = Face::kSmall, .color = ui.theme().soft_ink, .fit = Fit::kMiddle});
  ui.text(take_top(rest, ui.row_height() + 2.0F), shown.name,
          {.face = Face::kTitle, .fit = Fit::kMiddle});
  take_top(rest, 4.0F);
  float height = 0.0F;
  {
    const Clip nowhere(ui, {0.0F, 0.0F, 0.0F, 0.0F});
    height = draw_rows(ui, workbench, {0.0F, 0.0F, rest.width - kScrollbarWidth, 1e6F}, shown);
  }
  const Scrolled view = scrolled(ui, "scroll", rest, height);
  float& offset = ui.memory().scroll[ui.path_of("scroll")];
  if (ui.region_has_keys()) {
    if (ui.take("Down")) offset += ui.row_height();
    if (ui.take("Up")) offset -= ui.row_height();
    if (ui.take("PageDown")) offset += rest.height;
    if (ui.take("PageUp")) offset -= rest.height;
  }
  const Clip clip(ui, view.view, Moves::kUpAndDown);
  draw_rows(ui, workbench, {view.view.x, view.view.y - view.offset, view.view.width, 1e6F}, shown);
}

CopiedTable inspector_table(Workbench& workbench) {
  CopiedTable copied{.head = {"what", "value"}};
  const Inspection& shown = inspection_of_now(workbench);
  copied.rows.push_back({shown.what, shown.name});
  std::string heading;
  for (const InspectionRow& row : shown.rows) {
    if (row.kind == InspectionKind::kHeading) {
      heading = row.label;
      continue;
    }
    copied.rows.push_back({row.is_wide ? heading : row.label,
                           is_number(row.kind) ? fmt::format("{:.9g}", row.number) : row.text});
  }
  return copied;
}

std::string inspector_twin(Workbench& workbench) {
  const Inspection& shown = inspection_of_now(workbench);
  std::string line = twin_of_run(workbench, "inspect");
  const std::string session =
      workbench.run() == nullptr ? std::string() : workbench.run()->session_flag();
  if (!shown.stage.empty()) line += " --stage " + shell_word(shown.stage);
  if (shown.what == "node") return line + " --node " + shell_word(shown.name) + session;
  const bool has_fate = shown.what == "tensor" || shown.what == "ONNX node";
  if (has_fate) return line + " --fate " + shell_word(shown.name) + session;
  if (shown.what == "kernel") {
    return twin_of_run(workbench, "query") + " " +
           shell_word(fmt::format("kernel==\"{}\"", shown.name)) + session;
  }
  return line + " --memory" + session;
}

}  // namespace

Panel inspector_panel() {
  return {.id = "inspector",
          .title = "Inspector",
          .about =
              "All that is known of the selection. Of a node: what it computes, the tensors "
              "that it reads and writes, the ONNX nodes that it comes from and the pass that "
              "made it, the kernel that runs it and why others do not, and its time; of one that "
              "a pass took away, what became of it. Of a tensor or a buffer: who writes and reads "
              "it, where its bytes lie and for how long. The mouse over a number says what it is.",
          .keys = "Up, Down, PageUp, PageDown: scroll\nTab, Enter: follow a link",
          .draw = draw_inspector,
          .table = inspector_table,
          .twin = inspector_twin};
}

}  // namespace trainscope::gui
