// remat: the recompute planner alone, on a problem from a file.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/flags/training_flags.h"
#include "engine/core/byte_count.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "memplan/remat/baselines.h"
#include "memplan/remat/csv.h"
#include "memplan/remat/front.h"
#include "memplan/remat/planner.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxProblemBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMessageBytes = 400;

constexpr Flag kRematFlags[] = {
    {.name = "budget",
     .value = "BYTES|PERCENT%",
     .help = "Most bytes in memory, also as 6GiB or 500MB; with % of the peak without recompute"},
    {.name = "seconds",
     .type = FlagType::kNumber,
     .value = "S",
     .fallback = "60",
     .help = "Time limit of the search, which mostly ends long before",
     .minimum = 0},
    {.name = "out", .value = "PLAN.csv", .help = "Where the rows compute,ID and free,ID go"},
    {.name = "front",
     .type = FlagType::kSwitch,
     .help = "List what other budgets would cost, and what other methods would do"},
};

memplan::RematProblem read_problem(const std::string& path) {
  memplan::ParsedRemat parsed = memplan::parse_remat_csv(read_file(path, kMaxProblemBytes));
  require(parsed.message.empty(), ErrorCode::kBadInput, "'{}': {}", printable(path),
          printable(parsed.message, kMessageBytes));
  return std::move(parsed.problem);
}

std::int64_t budget_bytes(const std::string& text, std::int64_t peak_bytes) {
  if (text.ends_with('%')) {
    const std::optional<double> percent = parse_number(text.substr(0, text.size() - 1));
    if (percent && *percent >= 0 && *percent <= 1000) {
      return static_cast<std::int64_t>(
          std::floor(static_cast<double>(peak_bytes) * (*percent / 100)));
    }
  } else if (const std::optional<std::int64_t> bytes = find_bytes(text)) {
    return *bytes;
  }
  fail(ErrorCode::kUsage, "--budget is '{}': expected a number of bytes, 1 or more, or up to 1000%",
       printable(text));
}

double percent_above(double value, double base) { return base > 0 ? 100 * (value / base - 1) : 0; }

struct Planned {
  memplan::RematResult result = {};
  std::int64_t budget = 0;
};

Json facts_of(const Planned& planned) {
  const memplan::RematResult& result = planned.result;
  const auto base = static_cast<double>(result.base_time);
  const double extra = percent_above(static_cast<double>(result.time), base);
  const double bound = percent_above(static_cast<double>(result.lower_bound_time), base);
  return Json::object({{"budget_bytes", planned.budget},
                       {"peak_bytes", result.peak_bytes},
                       {"time", result.time},
                       {"extra_percent", extra},
                       {"lower_bound_time", result.lower_bound_time},
                       {"lower_bound_percent", bound},
                       {"gap_percent", extra - bound},
                       {"proven", result.proven},
                       {"base_time", result.base_time},
                       {"save_all_bytes", result.save_all_bytes},
                       {"least_bytes", result.least_bytes},
                       {"seconds", std::chrono::duration<double>(result.elapsed).count()}});
}

std::string text_of(const Planned& planned) {
  const memplan::RematResult& result = planned.result;
  const auto base = static_cast<double>(result.base_time);
  const double extra = percent_above(static_cast<double>(result.time), base);
  const double bound = percent_above(static_cast<double>(result.lower_bound_time), base);
  return fmt::format(
      "peak {} bytes of {} (without recompute {})\n"
      "time {}, extra {:.3f} %, lower bound {:.3f} %, gap {:.3f} points, {} ({:.3f} s)\n",
      result.peak_bytes, planned.budget, result.save_all_bytes, result.time, extra, bound,
      extra - bound, result.proven ? "the best there is" : "not proven the best",
      std::chrono::duration<double>(result.elapsed).count());
}

Planned plan(const memplan::RematProblem& problem, const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::string& path = invocation.argument(0);
  const std::int64_t save_all =
      memplan::simulate(problem, memplan::save_all_plan(problem)).peak_bytes;
  Planned planned{.budget = budget_bytes(settings.text("budget"), save_all)};
  planned.result = memplan::plan_remat(
      problem, {.budget_bytes = planned.budget, .seconds = settings.number("seconds")});
  if (planned.result.status == memplan::RematStatus::kPlanned) return planned;
  throw Error(ErrorCode::kOutOfMemory, printable(planned.result.message, kMessageBytes))
      .at(printable(path))
      .hint(fmt::format("--budget {} or more", planned.result.workable_bytes));
}

// The front as a table, with the least time that each baseline takes within the same bytes.
void add_front(const memplan::RematProblem& problem, Outcome& outcome) {
  const memplan::RematGraph graph(problem);
  const memplan::RematFront front(graph);
  const std::vector<memplan::RematBaseline> baselines = memplan::remat_baselines(graph);
  const auto base = static_cast<double>(memplan::base_time(problem));
  Json rows = Json::array();
  outcome.text += fmt::format("{:>20} {:>10}", "peak_bytes", "extra_%");
  for (const auto& baseline : baselines) outcome.text += fmt::format(" {:>10}", baseline.name);
  outcome.text += "\n";
  for (const memplan::FrontPoint& point : front.points()) {
    const double extra = percent_above(point.time, base);
    Json row = Json::object({{"peak_bytes", point.peak_bytes}, {"extra_percent", extra}});
    outcome.text += fmt::format("{:>20} {:>10.3f}", point.peak_bytes, extra);
    for (const auto& baseline : baselines) {
      const std::optional<double> time = memplan::best_time_within(baseline, point.peak_bytes);
      if (time) row.set(std::string(baseline.name) + "_percent", percent_above(*time, base));
      outcome.text += time ? fmt::format(" {:>10.3f}", percent_above(*time, base))
                           : fmt::format(" {:>10}", "-");
    }
    outcome.text += "\n";
    rows.push_back(std::move(row));
  }
  outcome.facts.set("front", std::move(rows));
}

Outcome run_remat(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const bool front = settings.on("front");
  require(settings.has("budget") || front, ErrorCode::kUsage,
          "remat needs --budget BYTES or PERCENT%, or --front");
  require(settings.has("budget") || !settings.has("out"), ErrorCode::kUsage,
          "--out needs --budget: a plan of which size?");
  const memplan::RematProblem problem = read_problem(invocation.argument(0));
  Outcome outcome;
  if (settings.has("budget")) {
    const Planned planned = plan(problem, invocation);
    if (settings.has("out")) {
      write_file_atomic(settings.text("out"),
                        memplan::write_remat_plan_csv(problem, planned.result.plan));
    }
    outcome = {.facts = facts_of(planned), .text = text_of(planned)};
  }
  if (front) add_front(problem, outcome);
  return outcome;
}

}  // namespace

Command remat_command() {
  return {.name = "remat",
          .summary = "Trade time for memory in a recompute problem.",
          .arguments = {{.name = "PROBLEM.csv",
                         .help = "rows id,name,bytes,time,backward,inputs in execution order"}},
          .flags = join_flags({kRematFlags}),
          .examples = {"trainscope remat problem.csv --budget 60% --out plan.csv",
                       "trainscope remat problem.csv --front"},
          .run = run_remat};
}

}  // namespace trainscope
