// What the colours of the Graph's nodes mean.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

#include "engine/core/text.h"
#include "gui/panels/empty_state.h"
#include "gui/panels/graph/graph_state.h"

namespace trainscope::gui {
namespace {

// A swatch for each class of ops that the stage has.
void draw_op_legend(Ui& ui, const GraphState& state, Rect rest) {
  std::array<bool, kLegendPlaces> is_there = {};
  for (const NodeValue& value : state.values.nodes) is_there[value.category % kLegendPlaces] = true;
  for (std::size_t i = 0; i < kLegendPlaces; ++i) {
    if (!is_there[i]) continue;
    const std::string_view name = name_of(class_at(i));
    const float width = std::ceil(ui.width(name, Face::kSmall)) + 26.0F;
    if (rest.width < width) return;
    Rect item = take_left(rest, width);
    const Rect swatch = take_left(item, 14.0F);
    const Color color = i < kSeriesColors ? ui.theme().series[i] : ui.theme().control;
    ui.canvas().fill({swatch.x, swatch.y + swatch.height / 2.0F - 4.0F, 8.0F, 8.0F}, color, 2.0F);
    ui.text(item, name, {.face = Face::kSmall, .color = ui.theme().soft_ink});
  }
}

void draw_pass_legend(Ui& ui, const GraphState& state, Rect rest) {
  for (std::size_t i = 0; i < state.values.passes.size(); ++i) {
    const std::string& name = state.values.passes[i];
    const float width = std::ceil(ui.width(name, Face::kSmall)) + 26.0F;
    if (rest.width < width) return;
    Rect item = take_left(rest, width);
    const Rect swatch = take_left(item, 14.0F);
    ui.canvas().fill({swatch.x, swatch.y + swatch.height / 2.0F - 4.0F, 8.0F, 8.0F},
                     ui.theme().series[i % kSeriesColors], 2.0F);
    ui.text(item, name, {.face = Face::kSmall, .color = ui.theme().soft_ink});
  }
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
  const std::int64_t number = workbench.run()->session();
  const std::string session = number > 0 ? fmt::format(" --session {}", number) : std::string();
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
    ui.text(rest,
            state.valued == ColorBy::kRoof
                ? "not known: needs a profile and the machine's rates (doctor --roofs)"
                : "not known for this stage",
            {.face = Face::kSmall, .color = ui.theme().soft_ink, .fit = Fit::kEnd});
    return;
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

void draw_legend(Ui& ui, Workbench& workbench, const GraphState& state, const Rect& rect) {
  if (state.valued == ColorBy::kOp) return draw_op_legend(ui, state, rect);
  if (state.valued == ColorBy::kPass) return draw_pass_legend(ui, state, rect);
  draw_scale_legend(ui, workbench, state, rect);
}

}  // namespace trainscope::gui
