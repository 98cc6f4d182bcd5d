// Fronts, methods and clusters as tables.
#include "cli/plan_tables.h"

#include <fmt/format.h>

#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kRowsShown = 24;
constexpr std::size_t kIdShown = 60;

constexpr Flag kFlags[] = {
    {.name = "front",
     .type = FlagType::kSwitch,
     .help = "Memory for time: the plans that no other plan beats; of a run, kept in its folder"},
    {.name = "compare",
     .type = FlagType::kSwitch,
     .help = "Other methods' recomputation, and the planner's in as much memory"},
    {.name = "largest-batch",
     .type = FlagType::kSwitch,
     .help = "The largest batch within --memory-budget, with recomputation and without"},
    {.name = "opportunities",
     .type = FlagType::kSwitch,
     .help = "Clusters for --recompute REQUESTS, and what each would save"},
};

double overhead(double seconds, double plain) { return plain > 0 ? seconds / plain - 1.0 : 0.0; }

std::string bytes_text(std::int64_t bytes) {
  return bytes < 0 ? fmt::format("-{}", human_bytes(static_cast<std::uint64_t>(-bytes)))
                   : human_bytes(static_cast<std::uint64_t>(bytes));
}

Json point_rows(const std::vector<TradePoint>& points, double plain_seconds) {
  Json rows = Json::array();
  for (const TradePoint& point : points) {
    rows.push_back(Json::object({{"method", point.method},
                                 {"arena_bytes", point.arena_bytes},
                                 {"seconds", point.seconds},
                                 {"overhead", overhead(point.seconds, plain_seconds)},
                                 {"repeats", point.repeats}}));
  }
  return rows;
}

// All rows up to `most`, else evenly chosen ones, the first and the last among them.
std::string points_text(const std::vector<TradePoint>& points, double plain_seconds,
                        std::size_t most) {
  std::string text = fmt::format("{:<16} {:>16} {:>12} {:>10} {:>8}\n", "method", "arena bytes", "",
                                 "more time", "repeats");
  const std::size_t count = std::min(points.size(), most);
  for (std::size_t row = 0; row < count; ++row) {
    const std::size_t at = count < 2 ? row : row * (points.size() - 1) / (count - 1);
    const TradePoint& point = points[at];
    text += fmt::format("{:<16} {:>16} {:>12} {:>8.2f} % {:>8}\n", point.method, point.arena_bytes,
                        bytes_text(point.arena_bytes),
                        100.0 * overhead(point.seconds, plain_seconds), point.repeats);
  }
  if (count < points.size()) {
    text += fmt::format("({} of {} plans; --json has all)\n", count, points.size());
  }
  return text;
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
  return settings.on("front") || settings.on("compare") || settings.on("opportunities");
}

void add_plan_tables(const OnnxModel& model, CompileOptions options, const Settings& settings,
                     Outcome& outcome) {
  options.recompute = {};
  const std::unique_ptr<Compiled> compiled = compile(model, options);
  const Program& plain = compiled->program;
  const std::vector<double> times = step_seconds(plain, options.costs);
  double plain_seconds = 0.0;
  for (double seconds : times) plain_seconds += seconds;
  if (settings.on("front")) {
    const std::vector<TradePoint> front = recompute_front(plain, times, op_table(), options.lower);
    outcome.facts.set("front", point_rows(front, plain_seconds));
    outcome.text += "\n" + points_text(front, plain_seconds, kRowsShown);
  }
  if (settings.on("compare")) {
    const std::vector<TradePoint> points = compare_methods(plain, times, op_table(), options.lower);
    outcome.facts.set("compare", point_rows(points, plain_seconds));
    outcome.text += "\n" + points_text(points, plain_seconds, points.size());
  }
  if (settings.on("opportunities")) {
    outcome.text += "\n";
    add_opportunities(recompute_opportunities(plain, times, op_table(), options.lower),
                      plain_seconds, outcome);
  }
}

}  // namespace trainscope
