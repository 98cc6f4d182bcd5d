// Fronts, methods and clusters as tables.
#include "cli/print/plan_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/core/byte_count.h"
#include "engine/core/text.h"
#include "engine/plain_step.h"

namespace trainscope {
namespace {

constexpr std::size_t kRowsShown = 24;
constexpr std::size_t kIdShown = 60;

constexpr Flag kFlags[] = {
    {.name = "front",
     .type = FlagType::kSwitch,
     .help = "Memory for time: the plans that no other plan beats; of a run, kept in its folder"},
    {.name = "sweep",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Plans for N budgets, each from those before it, and how long planning took: what a "
             "slider does",
     .minimum = 2,
     .maximum = 100'000},
    {.name = "compare",
     .type = FlagType::kSwitch,
     .help = "Other methods' recomputation, and the planner's in as much memory"},
    {.name = "largest-batch",
     .type = FlagType::kSwitch,
     .help = "The largest batch within --memory-budget, with recomputation and without"},
    {.name = "micro-batches",
     .type = FlagType::kSwitch,
     .help = "Every split of the examples of a step into equal micro-batches, and the quickest "
             "that fits"},
    {.name = "opportunities",
     .type = FlagType::kSwitch,
     .help = "Clusters for --recompute REQUESTS, and what each would save"},
};

// 0 for the plain step: its time may have been added up in another order.
double overhead(double seconds, double plain) {
  constexpr double kRounding = 1e-9;
  const double share = plain > 0 ? seconds / plain - 1.0 : 0.0;
  return std::abs(share) < kRounding ? 0.0 : share;
}

Json point_rows(const std::vector<TradePoint>& points, double plain_seconds) {
  Json rows = Json::array();
  for (const TradePoint& point : points) {
    rows.push_back(Json::object({{"method", point.method},
                                 {"arena_bytes", point.arena_bytes},
                                 {"seconds", point.seconds},
                                 {"overhead", overhead(point.seconds, plain_seconds)},
                                 {"repeats", point.rematerialized_nodes},
                                 {"host_bytes", point.host_bytes}}));
  }
  return rows;
}

// All rows up to `most`, else evenly chosen ones, the first and the last among them.
std::string points_text(const std::vector<TradePoint>& points, double plain_seconds,
                        std::size_t most) {
  const bool offloads =
      std::ranges::any_of(points, [](const TradePoint& point) { return point.host_bytes > 0; });
  std::string text = fmt::format("{:<16} {:>16} {:>12} {:>10} {:>8}{}\n", "method", "arena bytes",
                                 "", "more time", "repeats", offloads ? "         host" : "");
  const std::size_t count = std::min(points.size(), most);
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t at = count < 2 ? row : row * (points.size() - 1) / (count - 1);
    const TradePoint& point = points[at];
    text += fmt::format("{:<16} {:>16} {:>12} {:>8.2f} % {:>8}", point.method, point.arena_bytes,
                        bytes_text(point.arena_bytes),
                        100.0 * overhead(point.seconds, plain_seconds), point.rematerialized_nodes);
    if (offloads) text += fmt::format(" {:>12}", bytes_text(point.host_bytes));
    text += '\n';
  }
  if (count < points.size()) {
    text += fmt::format("({} of {} plans; --json has all)\n", count, points.size());
  }
  return text;
}

void add_sweep(const BudgetSweep& sweep, double plain_seconds, Outcome& outcome) {
  Json rows = Json::array();
  for (const SweptBudget& each : sweep.budgets) {
    rows.push_back(Json::object({{"budget_bytes", each.budget_bytes},
                                 {"arena_bytes", each.plan.arena_bytes},
                                 {"seconds", each.plan.seconds},
                                 {"overhead", overhead(each.plan.seconds, plain_seconds)},
                                 {"host_bytes", each.plan.host_bytes},
                                 {"milliseconds", each.milliseconds}}));
  }
  outcome.facts.set("sweep", Json::object({{"front_points", sweep.front_plans},
                                           {"front_ms", sweep.front_milliseconds},
                                           {"median_ms", sweep.median_milliseconds()},
                                           {"most_ms", sweep.most_milliseconds()},
                                           {"plans", std::move(rows)}}));
  outcome.text += fmt::format(
      "\nfront of {} plans in {:.1f} ms; {} budgets, each a placed plan in {:.1f} ms (median), "
      "{:.1f} ms at most\n",
      sweep.front_plans, sweep.front_milliseconds, sweep.budgets.size(),
      sweep.median_milliseconds(), sweep.most_milliseconds());
}

void add_opportunities(const std::vector<Opportunity>& list, double plain_seconds,
                       Outcome& outcome) {
  Json rows = Json::array();
  outcome.text += fmt::format("{:<60} {:>4} {:>6} {:>12} {:>12} {:>10}\n", "cluster", "kind",
                              "places", "values", "of the peak", "more time");
  for (const Opportunity& row : list) {
    const int kind = static_cast<int>(row.kind);
    const double more = plain_seconds > 0 ? row.seconds / plain_seconds : 0.0;
    rows.push_back(Json::object({{"cluster", row.id},
                                 {"kind", kind},
                                 {"places", row.places},
                                 {"saved_bytes", row.saved_bytes},
                                 {"peak_saved_bytes", row.peak_saved_bytes},
                                 {"overhead", more}}));
    outcome.text += fmt::format(
        "{:<60} {:>4} {:>6} {:>12} {:>12} {:>8.2f} %\n", printable(row.id, kIdShown), kind,
        row.places, bytes_text(row.saved_bytes), bytes_text(row.peak_saved_bytes), 100.0 * more);
  }
  outcome.facts.set("opportunities", std::move(rows));
}

}  // namespace

std::span<const Flag> plan_table_flags() { return kFlags; }

bool asks_for_table(const Settings& settings) {
  return settings.on("front") || settings.has("sweep") || settings.on("compare") ||
         settings.on("opportunities");
}

void add_plan_tables(const OnnxModel& model, CompileOptions options, const Settings& settings,
                     Outcome& outcome) {
  const RecomputeOptions wishes = std::exchange(options.recompute, {});
  const PlainStep step = plain_step(model, std::move(options));
  const Program& plain = step.program();
  const std::vector<double>& times = step.node_seconds;
  if (settings.on("front")) {
    const std::vector<TradePoint> front =
        recompute_front(plain, times, op_table(), step.lower, wishes);
    outcome.facts.set("front", point_rows(front, step.seconds));
    outcome.text += "\n" + points_text(front, step.seconds, kRowsShown);
  }
  if (const std::optional<std::int64_t> count = settings.find_integer("sweep")) {
    add_sweep(sweep_budgets(step, wishes, *count), step.seconds, outcome);
  }
  if (settings.on("compare")) {
    const std::vector<TradePoint> points =
        compare_methods(plain, times, op_table(), step.lower, wishes);
    outcome.facts.set("compare", point_rows(points, step.seconds));
    outcome.text += "\n" + points_text(points, step.seconds, points.size());
  }
  if (settings.on("opportunities")) {
    outcome.text += "\n";
    add_opportunities(recompute_opportunities(plain, times, op_table(), step.lower, wishes),
                      step.seconds, outcome);
  }
}

}  // namespace trainscope
