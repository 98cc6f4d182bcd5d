// Rows of both profiles with their spreads, and what changed by itself.
#include "cli/compare/times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/analysis/comparison.h"

namespace trainscope {
namespace {

using profiler::ComparedRow;
using profiler::Comparison;
using profiler::DifferenceRow;
using profiler::NodeInPlan;
using profiler::RunDifference;
using profiler::Spread;

// "5%" or "0.05"; none where it is not asked for.
std::optional<double> most_slower(const Settings& settings) {
  if (!settings.has("fail-if-slower")) return std::nullopt;
  const std::string& text = settings.text("fail-if-slower");
  const bool percent = text.ends_with('%');
  const auto number =
      parse_number(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0)));
  require(number && *number >= 0.0, ErrorCode::kUsage,
          "--fail-if-slower is '{}': expected a share such as 5% or 0.05", printable(text));
  return percent ? *number / 100.0 : *number;
}

Json spread_json(const Spread& spread) {
  return Json::object({{"median_ms", spread.median / 1e6},
                       {"deviation_ms", spread.deviation / 1e6},
                       {"undisturbed_ms", spread.low / 1e6},
                       {"drift", spread.drift},
                       {"steps", spread.count},
                       {"runs", spread.runs}});
}

Json row_json(const ComparedRow& row, const Comparison& both) {
  return Json::object({{"name", row.name},
                       {"is_call", row.is_call},
                       {"a", spread_json(row.a)},
                       {"b", spread_json(row.b)},
                       {"difference_ms", row.difference_ns() / 1e6},
                       {"significant", std::abs(row.significance()) > profiler::kSignificant},
                       {"change", both.change(row)},
                       {"error", row.is_in_both() ? Json(row.error(both.between)) : Json()},
                       {"changed", both.is_changed(row)}});
}

std::string row_text(const ComparedRow& row) {
  const double share = 100.0 * (row.ratio() - 1.0);
  const bool significant = std::abs(row.significance()) > profiler::kSignificant;
  return fmt::format(
      "{:>10.4f} {:>9.4f} {:>10.4f} {:>9.4f} {:>+10.4f} {:>+7.1f}% {}  {}\n", row.a.median / 1e6,
      row.a.deviation / 1e6, row.b.median / 1e6, row.b.deviation / 1e6, row.difference_ns() / 1e6,
      share, significant ? '*' : ' ', row.is_call ? printable(row.name) : "(" + row.name + ")");
}

// The rows that changed by themselves, the most first.
std::vector<const ComparedRow*> changed_rows(const Comparison& both) {
  std::vector<const ComparedRow*> rows;
  for (const ComparedRow& row : both.rows) {
    if (both.is_changed(row)) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [&both](const ComparedRow* row) { return std::abs(both.change(*row)); });
  return rows;
}

std::string change_text(const ComparedRow& row, const Comparison& both) {
  if (row.a.low <= 0.0) return "in B alone";
  if (row.b.low <= 0.0) return "in A alone";
  return fmt::format("{:+.1f}%", 100.0 * both.change(row));
}

// Of machines that were not alike.
std::string machine_text(const profiler::MachineDifference& machine) {
  return fmt::format(
      "the machine itself differs: for the same work B's clock takes {:.2f} times as long, its "
      "threads' exchange of bytes {:.2f} times; no row is said to have changed by itself. Repeat "
      "the runs, one behind the other\n",
      machine.clock, machine.usual_exchange);
}

std::string changes_text(const Comparison& both) {
  if (!both.machine.is_alike()) return machine_text(both.machine);
  std::string text = both.pairs == 0 ? "" : fmt::format("{} pairs of runs: ", both.pairs);
  text += fmt::format("rows have {:+.1f}% in common and differ by {:.1f}%; beyond that ",
                      100.0 * (both.common_ratio - 1.0), 100.0 * both.between);
  const std::vector<const ComparedRow*> rows = changed_rows(both);
  if (rows.empty()) return text + "none changed by itself\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "changed " : ", ", printable(rows[i]->name),
                        change_text(*rows[i], both));
  }
  return text + "\n";
}

std::string text_of(const Comparison& both, std::size_t top) {
  std::string text = fmt::format(
      "medians and median absolute deviations of {} and {} steps, in ms; % is of undisturbed "
      "steps, * more than runs differ anyway\n{:>10} {:>9} {:>10} {:>9} {:>10} {:>8}\n",
      both.step.a.count, both.step.b.count, "A", "+-", "B", "+-", "B - A", "%");
  text += row_text(both.step);
  for (std::size_t i = 0; i < std::min(top, both.rows.size()); ++i) text += row_text(both.rows[i]);
  return text + changes_text(both);
}

Json facts_of(const Comparison& both, Json rows) {
  Json changed = Json::array();
  for (const ComparedRow* row : changed_rows(both)) changed.push_back(row->name);
  return Json::object({{"step", row_json(both.step, both)},
                       {"common_ratio", both.common_ratio},
                       {"between", both.between},
                       {"machine", Json::object({{"clock", both.machine.clock},
                                                 {"exchange", both.machine.exchange},
                                                 {"usual_exchange", both.machine.usual_exchange},
                                                 {"measured", both.machine.is_measured},
                                                 {"alike", both.machine.is_alike()}})},
                       {"pairs", both.pairs},
                       {"changed", std::move(changed)},
                       {"rows", std::move(rows)}});
}

Json plan_json(const NodeInPlan& node) {
  return Json::object({{"calls", node.calls}, {"bytes", node.bytes}, {"kernels", node.kernels}});
}

struct Compared {
  Outcome outcome;
  Comparison times;
};

// By ONNX node rows also have what the plans say; of runs without a profile they have that alone.
Compared compare_nodes(const Side& a, const Side& b, const Settings& settings) {
  RunDifference both = profiler::difference_of(a.nodes(), b.nodes());
  Json rows = Json::array();
  Comparison shown = both.times;
  for (const DifferenceRow& row : both.rows) {
    Json json = row_json(row.time, shown);
    json.set("plan_a", plan_json(row.a));
    json.set("plan_b", plan_json(row.b));
    rows.push_back(std::move(json));
    if (row.time.a.count + row.time.b.count > 0) shown.rows.push_back(row.time);
  }
  std::string text;
  if (a.is_profiled() || b.is_profiled()) {
    const auto top = static_cast<std::size_t>(settings.integer("top"));
    text = text_of(shown, top);
  } else {
    text = "neither run was profiled: there are no times\n";
  }
  Json facts = facts_of(shown, std::move(rows));
  facts.set("arena_a", both.arena_a);
  facts.set("arena_b", both.arena_b);
  return {.outcome = {.facts = std::move(facts), .text = std::move(text)},
          .times = std::move(shown)};
}

Compared compare_groups(const Side& a, const Side& b, profiler::GroupBy by,
                        const Settings& settings) {
  Comparison both = profiler::compare_profiles(a.by(by), b.by(by));
  std::ranges::stable_sort(both.rows, std::ranges::greater(),
                           [](const ComparedRow& row) { return std::abs(row.difference_ns()); });
  Json rows = Json::array();
  for (const ComparedRow& row : both.rows) rows.push_back(row_json(row, both));
  const auto top = static_cast<std::size_t>(settings.integer("top"));
  return {.outcome = {.facts = facts_of(both, std::move(rows)), .text = text_of(both, top)},
          .times = std::move(both)};
}

}  // namespace

Outcome compare_times(const Side& a, const Side& b, const Settings& settings) {
  const std::optional<double> most = most_slower(settings);
  const profiler::GroupBy by = *profiler::group_named(settings.text("by"));
  auto [outcome, times] = by == profiler::GroupBy::kNode ? compare_nodes(a, b, settings)
                                                         : compare_groups(a, b, by, settings);
  if (!most) return std::move(outcome);
  require(times.step.a.count > 0 && times.step.b.count > 0, ErrorCode::kUsage,
          "--fail-if-slower needs the profiles of both runs");
  const bool slower = times.is_slower(*most);
  outcome.facts.set("slower", slower);
  if (slower) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return std::move(outcome);
}

std::string_view slower_line(const Outcome& times) {
  const Json* slower = times.facts.find("slower");
  if (slower == nullptr) return {};
  return slower->as_bool() ? "B is slower\n" : "B is not slower\n";
}

}  // namespace trainscope
