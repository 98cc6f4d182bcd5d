// Sections about what threads were at, and about steps that took longer than others.
#include <fmt/format.h>

#include <algorithm>

#include "profiler/report/html.h"
#include "profiler/report/sections.h"

namespace trainscope::profiler {
namespace {

constexpr std::size_t kShownIdleCauses = 10;
constexpr std::size_t kShownOutliers = 20;

std::string idle_table(const ThreadTimes& times) {
  HtmlTable rows({{"while thread 0 is at"}, {"share of all idle time"}, {"ms a step", true}});
  std::int64_t all = 0;
  for (const IdleCause& each : times.idle) all += each.ns;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, times.steps));
  for (std::size_t i = 0; i < std::min(kShownIdleCauses, times.idle.size()); ++i) {
    const IdleCause& each = times.idle[i];
    const double share = static_cast<double>(each.ns) / static_cast<double>(all);
    rows.add({element("code", {}, escaped(each.name)),
              bar(share, fmt::format("{:.1f} %", 100.0 * share)),
              fmt::format("{:.4f}", static_cast<double>(each.ns) / 1e6 / steps)});
  }
  return rows.empty() ? std::string()
                      : element("h3", {}, "Why threads had nothing to do") + rows.text();
}

}  // namespace

std::string threads_section(const ReportInput& input) {
  if (!input.threads || input.threads->steps == 0) return {};
  const ThreadTimes& times = *input.threads;
  std::vector<TableColumn> columns = {{"thread", true}};
  for (std::size_t i = 0; i < kThreadUses; ++i) {
    columns.push_back({std::string(name_of(static_cast<ThreadUse>(i))), true});
  }
  HtmlTable rows(columns);
  for (std::size_t thread = 0; thread < times.threads.size(); ++thread) {
    std::vector<std::string> cells = {std::to_string(thread)};
    for (const std::int64_t ns : times.threads[thread].ns) {
      cells.push_back(fmt::format("{:.2f} %", 100.0 * times.share(ns)));
    }
    rows.add(std::move(cells));
  }
  const std::string balance = fmt::format(
      "Shares of the profiled steps. Threads work {:.1f} % of what they would if all worked as "
      "long "
      "as the one that works most.",
      100.0 * times.balance());
  return element("p", {}, balance) + rows.text() + idle_table(times);
}

std::string steps_section(const ReportInput& input) {
  if (!input.spread || input.spread->spread.count == 0) return {};
  const StepSpread& spread = *input.spread;
  std::string text = element(
      "p", {},
      fmt::format(
          "{} profiled steps: median {}, half of them within {} of it; {} to {}, nine in ten "
          "within {}.",
          spread.spread.count, duration_text(spread.spread.median),
          duration_text(spread.spread.deviation),
          duration_text(static_cast<double>(spread.least_ns)),
          duration_text(static_cast<double>(spread.most_ns)),
          duration_text(static_cast<double>(spread.deciles_ns.back()))));
  if (spread.outliers.empty()) return text + element("p", {}, "No step is beyond the others.");
  HtmlTable rows({{"step", true}, {"took", true}, {"because"}});
  for (std::size_t i = 0; i < std::min(kShownOutliers, spread.outliers.size()); ++i) {
    const OutlierStep& each = spread.outliers[i];
    std::string causes;
    for (const std::string& cause : each.causes) {
      causes += (causes.empty() ? "" : "; ") + escaped(cause, 400);
    }
    rows.add({std::to_string(each.step), duration_text(static_cast<double>(each.ns)), causes});
  }
  text += rows.text();
  if (spread.outliers.size() <= kShownOutliers) return text;
  return text + element("p", {{"class", "soft"}},
                        fmt::format("The first {} of {}.", kShownOutliers, spread.outliers.size()));
}

}  // namespace trainscope::profiler
