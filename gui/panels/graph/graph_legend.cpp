// What the colours of the Graph's nodes mean.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/text.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

struct LegendEntry {
  std::string_view name = {};
  std::size_t category = 0;
};

// How many of the entries find no room; which they are is told where the mouse is.
void draw_left_out(Ui& ui, const Rect& rest, std::span<const LegendEntry> entries) {
  const std::string text = fmt::format("+{}", entries.size());
  const Rect place{rest.x, rest.y, std::min(rest.width, std::ceil(ui.width(text, Face::kSmall))),
                   rest.height};
  const Response response =
      ui.hit("left_out", place, {.kind = ItemKind::kArea, .label = text, .focusable = false});
  std::string names;
  for (const LegendEntry& entry : entries) {
    names.append(names.empty() ? "" : "\n").append(entry.name);
  }
  ui.tooltip(response, names);
  ui.fitting_text(place, {text}, {.face = Face::kSmall, .color = ui.theme().soft_ink});
}

// A swatch and a name each, from the left.
void draw_entries(Ui& ui, std::span<const LegendEntry> entries, Rect rest) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LegendEntry& entry = entries[i];
    const float width = std::ceil(ui.width(entry.name, Face::kSmall)) + 26.0F;
    const bool is_last = i + 1 == entries.size();
    const float left_out = is_last ? 0.0F : std::ceil(ui.width("+00", Face::kSmall));
    if (rest.width < width + left_out) return draw_left_out(ui, rest, entries.subspan(i));
    Rect item = take_left(rest, width);
    const Rect swatch = take_left(item, 14.0F);
    ui.canvas().fill({swatch.x, swatch.y + swatch.height / 2.0F - 4.0F, 8.0F, 8.0F},
                     color_of_category(ui.theme(), entry.category), 2.0F);
    ui.text(item, entry.name, {.face = Face::kSmall, .color = ui.theme().soft_ink});
  }
}

// Each class of ops that the stage has.
std::vector<LegendEntry> op_entries(const GraphState& state) {
  std::array<bool, kLegendPlaces> is_there = {};
  for (const NodeValue& value : state.values.nodes) is_there[value.category % kLegendPlaces] = true;
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < kLegendPlaces; ++i) {
    if (is_there[i]) entries.push_back({name_of(class_at(i)), i});
  }
  return entries;
}

// The passes with the most nodes, and the others as one.
std::vector<LegendEntry> pass_entries(const GraphState& state) {
  std::vector<LegendEntry> entries;
  for (const std::string& pass : state.values.passes) {
    if (entries.size() == kSeriesColors) {
      entries.push_back({"other passes", kSeriesColors});
      break;
    }
    entries.push_back({pass, entries.size()});
  }
  return entries;
}

Unit unit_of(ColorBy coloring) {
  if (coloring == ColorBy::kTime) return Unit::kMilliseconds;
  return coloring == ColorBy::kBytes ? Unit::kBytes : Unit::kShare;
}

// Where the command line prints the value of the node that has the greatest.
std::string fact_of_greatest(Workbench& workbench, const GraphState& state) {
  const PlanLinks& links = *workbench.links();
  const PlanView& plan = links.plan();
  const std::uint32_t node =
      links.node_of_serial(state.picture.nodes[state.values.greatest_at].serial);
  const std::string session = workbench.run()->session_flag();
  const std::span<const std::uint32_t> calls = links.calls_of_node(node);
  if (state.valued == ColorBy::kBytes) {
    std::string sum;
    const auto outputs = rows_of(plan.operands, plan.calls[calls.front()].outputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i].value == kNoRow) continue;
      sum += fmt::format("{}/outputs/{}/bytes", sum.empty() ? "" : " + ", i);
    }
    return fmt::format("{} --node {}{} | {}", twin_of_run(workbench, "inspect"),
                       shell_word(plan.text(plan.nodes[node].name)), session, sum);
  }
  std::string filter;
  for (const std::uint32_t call : calls) {
    filter += fmt::format("{}call=={}", filter.empty() ? "" : "||", call);
  }
  return fmt::format("{} {} --by op{} | {}", twin_of_run(workbench, "query"), shell_word(filter),
                     session, state.valued == ColorBy::kTime ? "/shown_ms" : "/rows/0/roof");
}

// From nothing to the greatest, in four decades; a share in equal steps.
void draw_scale_legend(Ui& ui, Workbench& workbench, const GraphState& state, Rect rest) {
  if (state.values.greatest <= 0.0) {
    return ui.fitting_text(
        rest,
        {state.valued == ColorBy::kRoof
             ? "not known: needs a profile and the machine's rates (doctor --roofs)"
             : "not known for this stage",
         "not known"},
        {.face = Face::kSmall, .color = ui.theme().soft_ink});
  }
  Rect scale = take_left(rest, 120.0F);
  scale = {scale.x, scale.y + scale.height / 2.0F - 4.0F, scale.width, 8.0F};
  for (int i = 0; i < 24; ++i) {
    const float share = static_cast<float>(i) / 23.0F;
    ui.canvas().fill({scale.x + static_cast<float>(i) * 5.0F, scale.y, 5.0F, 8.0F},
                     mixed(ui.theme().control, ui.theme().phases[1], share));
  }
  take_left(rest, 8.0F);
  const TextLook look{.face = Face::kSmall, .color = ui.theme().soft_ink};
  const Quantity greatest{state.values.greatest, unit_of(state.valued)};
  const float word = std::ceil(ui.width("up to", look.face)) + 4.0F;
  const float number = std::ceil(ui.width(text_of(greatest).whole(), look.face)) + 1.0F;
  if (rest.width < word + number) return;
  ui.text(take_left(rest, word), "up to", look);
  ui.number("greatest", take_left(rest, number), greatest, fact_of_greatest(workbench, state),
            look);
}

}  // namespace

Color color_of_category(const Theme& theme, std::size_t category) {
  return category < kSeriesColors ? theme.series[category] : theme.control;
}

void draw_legend(Ui& ui, Workbench& workbench, const GraphState& state, const Rect& rect) {
  const Scope scope(ui, "legend");
  if (state.valued == ColorBy::kOp) return draw_entries(ui, op_entries(state), rect);
  if (state.valued == ColorBy::kPass) return draw_entries(ui, pass_entries(state), rect);
  draw_scale_legend(ui, workbench, state, rect);
}

}  // namespace trainscope::gui
