// Cards of steps, evaluations and the plan.
#include "gui/panels/overview/overview_cards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace trainscope::gui {
namespace {

std::vector<OverviewCard> training_cards(const RunData& run) {
  std::vector<OverviewCard> cards;
  const Metrics& metrics = run.metrics();
  if (metrics.steps.empty()) return cards;
  const StepRecord& last = metrics.steps.back();
  cards.push_back({"steps",
                   {static_cast<double>(last.step), Unit::kCount},
                   "/last_step/step",
                   "Optimizer steps so far"});
  cards.push_back({"loss", {last.loss, Unit::kPlain}, "/last_step/loss", "Of the last step"});
  if (!metrics.evaluations.empty()) {
    const EvaluationRecord& evaluation = metrics.evaluations.back();
    cards.push_back({"validation loss",
                     {evaluation.loss, Unit::kPlain},
                     "/last_evaluation/loss",
                     "Of the last evaluation on the validation split"});
    if (std::isfinite(evaluation.accuracy)) {
      cards.push_back({"accuracy",
                       {evaluation.accuracy, Unit::kShare},
                       "/last_evaluation/accuracy",
                       "Share of the labels that the highest score names"});
    }
  }
  cards.push_back({"step",
                   {metrics.median_step_ms(), Unit::kMilliseconds},
                   "/median_step_ms",
                   "Wall time of a step: the median of all"});
  return cards;
}

std::vector<OverviewCard> plan_cards(const RunData& run) {
  std::vector<OverviewCard> cards;
  if (!run.has_memory_plan()) return cards;
  const PlanSpace& arena = run.plan()->arena();
  // `plan` is of the newest session.
  const std::string planned =
      run.shows_newest() ? std::string("plan {run} | ")
                         : fmt::format("inspect {{run}} --memory{} | ", run.session_flag());
  cards.push_back({"peak memory",
                   {static_cast<double>(arena.bytes), Unit::kBytes},
                   planned + "/arena_bytes",
                   "The arena: all memory that a step uses"});
  cards.push_back({"lower bound",
                   {static_cast<double>(arena.lower_bound_bytes), Unit::kBytes},
                   planned + "/lower_bound_bytes",
                   "No placement of these buffers needs less than this"});
  return cards;
}

}  // namespace

std::vector<OverviewCard> overview_cards(const RunData& run) {
  std::vector<OverviewCard> cards = training_cards(run);
  for (OverviewCard& card : plan_cards(run)) cards.push_back(std::move(card));
  return cards;
}

void draw_overview_cards(Ui& ui, const RunData& run, std::span<const OverviewCard> cards,
                         Rect& rest) {
  if (cards.empty()) return;
  const float gap = 8.0F;
  const float least = ui.width("1415.367 ms", Face::kTitle) + 26.0F;
  const auto fitting = static_cast<std::size_t>(std::max(1.0F, (rest.width + gap) / (least + gap)));
  const std::size_t lines = (cards.size() + fitting - 1) / fitting;
  const std::size_t columns = (cards.size() + lines - 1) / lines;
  const float width = std::floor((rest.width - gap * static_cast<float>(columns - 1)) /
                                 static_cast<float>(columns));
  const float height = ui.row_height() * 2.0F + 14.0F;
  const Scope scope(ui, "card");
  for (std::size_t first = 0; first < cards.size(); first += columns) {
    if (rest.height < height) return;  // no card without its number
    Rect line = take_top(rest, height);
    for (std::size_t i = first; i < std::min(first + columns, cards.size()); ++i) {
      const Rect box = take_left(line, width);
      take_left(line, gap);
      const Surface surface(ui, box, ui.theme().header, 5.0F);
      Rect inside = box.inset(10.0F, 5.0F);
      const Rect label = take_top(inside, ui.row_height());
      ui.text(label, cards[i].label, {.face = Face::kSmall, .color = ui.theme().soft_ink});
      const QuantityText text = text_of(cards[i].quantity);
      // As wide as it is, so that the number begins where its label does.
      const Rect number{inside.x, inside.y,
                        std::min(inside.width, ui.width(text.whole(), Face::kTitle) + 1.0F),
                        inside.height};
      std::string fact = cards[i].fact;
      if (const std::size_t at = fact.find("{run}"); at != std::string::npos) {
        fact.replace(at, 5, run.words());
      }
      ui.number(cards[i].label, number, cards[i].quantity, fact, {.face = Face::kTitle});
      const Response hovered = ui.hit(std::string(cards[i].label) + "/card", box,
                                      {.kind = ItemKind::kArea, .focusable = false});
      ui.tooltip(hovered, cards[i].help);
    }
    take_top(rest, gap);
  }
}

}  // namespace trainscope::gui
