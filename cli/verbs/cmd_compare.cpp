// compare: two profiled runs beside each other, row by row; may fail where the second is slower.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/verbs/compare_numerics.h"
#include "engine/bundle/format.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/analysis/comparison.h"
#include "profiler/analysis/profile.h"
#include "profiler/analysis/run_difference.h"

namespace trainscope {
namespace {

using profiler::ComparedRow;
using profiler::Comparison;
using profiler::DifferenceRow;
using profiler::NodeInPlan;
using profiler::RunDifference;
using profiler::Spread;

constexpr Flag kCompareFlags[] = {
    {.name = "by",
     .type = FlagType::kChoice,
     .value = "kernel|op|node|layer|phase|pass",
     .fallback = "node",
     .help = "What rows are, see `query`"},
    {.name = "only",
     .type = FlagType::kChoice,
     .value = "all|time|tensors",
     .fallback = "all",
     .help = "The section to show: times, bytes and kernels, or the tensors of runs with "
             "--record-numerics; exit code 9 where a tensor is beyond its limit"},
    {.name = "top",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "20",
     .help = "Rows that are shown, those that differ most first; --json has all",
     .minimum = 1},
    {.name = "fail-if-slower",
     .value = "SHARE",
     .help =
         "Exit code 9 where an undisturbed step of B takes so much longer (5% or 0.05), and more "
         "than runs of one program differ anyway"},
};

// "A" or "A1,A2,A3": a folder may have commas in its name.
std::vector<std::string> folders_of(const std::string& words) {
  if (std::filesystem::exists(words)) return {words};
  std::vector<std::string> folders;
  for (const std::string_view word : split(words, ',')) folders.emplace_back(word);
  return folders;
}

// One side of the comparison: a run, or several of one command, their steps one behind the other.
class Side {
 public:
  explicit Side(const std::string& words) {
    for (const std::string& folder : folders_of(words)) add(folder);
  }
  profiler::RunSide nodes() const {
    return {.plan = plan_->view(), .times = times_ ? &*times_ : nullptr};
  }
  bool is_profiled() const { return times_.has_value(); }
  profiler::Breakdown by(profiler::GroupBy group) const {
    // Says what a run without a profile needs.
    const auto profile = profiler::Profile::open(RunReader::open(first_));
    require(!times_->steps.empty(), ErrorCode::kUsage, "the profile of '{}' has no whole step yet",
            printable(first_));
    return profiler::breakdown(*times_, profile.plan(), group);
  }

 private:
  void add(const std::string& folder);

  std::string first_;  // folder
  std::optional<StoredPlan> plan_;
  std::optional<profiler::StepTimes> times_;
};

bool same_calls(const PlanView& a, const PlanView& b) {
  return std::ranges::equal(a.calls, b.calls, [&](const PlanCall& left, const PlanCall& right) {
    return a.name_of(left) == b.name_of(right) && a.text(left.kernel) == b.text(right.kernel);
  });
}

void Side::add(const std::string& folder) {
  const RunReader run = RunReader::open(folder);
  std::optional<StoredPlan> plan = run.plan();
  require(plan.has_value(), ErrorCode::kBadInput, "the run '{}' has no plan yet",
          printable(folder));
  if (plan_) {
    if (!same_calls(plan_->view(), plan->view())) {
      throw Error(ErrorCode::kUsage, fmt::format("the runs '{}' and '{}' have not the same calls",
                                                 printable(first_), printable(folder)))
          .hint("several runs of one side are of one command");
    }
    require(is_profiled() && run.events(), ErrorCode::kUsage,
            "several runs of one side need a profile each: '{}' and '{}' are not both profiled",
            printable(first_), printable(folder));
  } else {
    first_ = folder;
    plan_ = std::move(plan);
  }
  if (!run.events()) return;
  const auto profile = profiler::Profile::open(run);
  profiler::StepTimes times = profiler::step_times(profile.events(), profile.plan());
  if (times_) {
    profiler::append(*times_, times);
  } else {
    times_ = std::move(times);
  }
}

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

std::string changes_text(const Comparison& both) {
  std::string text = fmt::format("rows have {:+.1f}% in common and differ by {:.1f}%; beyond that ",
                                 100.0 * (both.common_ratio - 1.0), 100.0 * both.between);
  const std::vector<const ComparedRow*> rows = changed_rows(both);
  if (rows.empty()) return text + "none changed by itself\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    text += fmt::format("{}{} {}", i == 0 ? "changed " : ", ", printable(rows[i]->name),
                        change_text(*rows[i], both));
  }
  return text + "\n";
}

// Nothing where it is alike, or was not measured.
std::string machine_text(const profiler::MachineDifference& machine) {
  if (machine.is_alike()) return "";
  return fmt::format(
      "the machine itself differs: for the same work B's clock takes {:.2f} times as long, its "
      "threads' exchange of bytes {:.2f} times; no row is said to have changed by itself. Repeat "
      "the runs, one behind the other\n",
      machine.clock, machine.usual_exchange);
}

std::string text_of(const Comparison& both, std::size_t top) {
  std::string text = fmt::format(
      "medians and median absolute deviations of {} and {} steps, in ms; % is of undisturbed "
      "steps, * more than runs differ anyway\n{:>10} {:>9} {:>10} {:>9} {:>10} {:>8}\n",
      both.step.a.count, both.step.b.count, "A", "+-", "B", "+-", "B - A", "%");
  text += row_text(both.step);
  for (std::size_t i = 0; i < std::min(top, both.rows.size()); ++i) text += row_text(both.rows[i]);
  return text + machine_text(both.machine) + changes_text(both);
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
Compared compare_nodes(const Invocation& invocation) {
  const Side a(invocation.argument(0));
  const Side b(invocation.argument(1));
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
  std::string text = fmt::format("arena   A {} bytes, B {} bytes\n", both.arena_a, both.arena_b);
  if (a.is_profiled() || b.is_profiled()) {
    const auto top = static_cast<std::size_t>(invocation.settings().integer("top"));
    text += text_of(shown, top);
  } else {
    text += "neither run was profiled: --json has the bytes and kernels of each node\n";
  }
  Json facts = facts_of(shown, std::move(rows));
  facts.set("arena_a", both.arena_a);
  facts.set("arena_b", both.arena_b);
  return {.outcome = {.facts = std::move(facts), .text = std::move(text)},
          .times = std::move(shown)};
}

Compared compare_groups(const Invocation& invocation, profiler::GroupBy by) {
  Comparison both = profiler::compare_profiles(Side(invocation.argument(0)).by(by),
                                               Side(invocation.argument(1)).by(by));
  std::ranges::stable_sort(both.rows, std::ranges::greater(),
                           [](const ComparedRow& row) { return std::abs(row.difference_ns()); });
  Json rows = Json::array();
  for (const ComparedRow& row : both.rows) rows.push_back(row_json(row, both));
  const auto top = static_cast<std::size_t>(invocation.settings().integer("top"));
  return {.outcome = {.facts = facts_of(both, std::move(rows)), .text = text_of(both, top)},
          .times = std::move(both)};
}

// Tensors of the first run of each side, where both recorded them, unless --only asks for something
// else; else none.
std::optional<Outcome> numbers(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::string& only = settings.text("only");
  if (only == "time") return std::nullopt;
  const std::string first = folders_of(invocation.argument(0)).front();
  const std::string second = folders_of(invocation.argument(1)).front();
  const auto a = find_trace(first);
  const auto b = find_trace(second);
  if (a && b) {
    return compare_numerics(*a, *b, static_cast<std::size_t>(settings.integer("top")));
  }
  if (only != "tensors") return std::nullopt;
  throw Error(ErrorCode::kUsage,
              fmt::format("'{}' has no trace of its numbers", printable(a ? second : first)))
      .hint("train with --record-numerics");
}

Outcome compare_times(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::optional<double> most = most_slower(settings);
  const profiler::GroupBy by = *profiler::group_named(settings.text("by"));
  auto [outcome, times] =
      by == profiler::GroupBy::kNode ? compare_nodes(invocation) : compare_groups(invocation, by);
  if (!most) return std::move(outcome);
  require(times.step.a.count > 0 && times.step.b.count > 0, ErrorCode::kUsage,
          "--fail-if-slower needs the profiles of both runs");
  const bool slower = times.is_slower(*most);
  outcome.facts.set("slower", slower);
  outcome.text += slower ? "B is slower\n" : "B is not slower\n";
  if (slower) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return std::move(outcome);
}

bool are_runs(const std::string& words) {
  return std::ranges::all_of(folders_of(words), [](const std::string& folder) {
    return Folder::open(folder).has_file(kRunManifestFile);
  });
}

// Why tensors are not compared is said in their section; the others are shown all the same.
void add_tensors(const Invocation& invocation, Outcome& outcome) {
  std::optional<Outcome> tensors;
  try {
    tensors = numbers(invocation);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) outcome.exit_code = static_cast<int>(error.code());
    outcome.facts.set("tensors_refused", error.message());
    outcome.text += fmt::format("\ntensors are not compared: {}\n", error.message());
    return;
  }
  if (!tensors) return;
  outcome.facts.set("tensors", std::move(tensors->facts));
  outcome.text += "\n" + tensors->text;
  if (outcome.exit_code == 0) outcome.exit_code = tensors->exit_code;
}

// Each section that both hold; of traces alone, and where it is asked for, that of tensors.
Outcome run_compare(const Invocation& invocation) {
  const bool runs = are_runs(invocation.argument(0)) && are_runs(invocation.argument(1));
  if (invocation.settings().text("only") == "tensors" || !runs) {
    if (std::optional<Outcome> tensors = numbers(invocation)) return std::move(*tensors);
  }
  Outcome outcome = compare_times(invocation);
  add_tensors(invocation, outcome);
  return outcome;
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .summary =
              "Compare two runs: times, bytes and kernels by node, and the tensors they recorded.",
          .arguments = {{.name = "A",
                         .help = "the folder of a run; where it was not profiled, --by node "
                                 "compares plans alone. A1,A2,...: runs of one command, as one"},
                        {.name = "B", .help = "another one, or several"}},
          .flags = join_flags({kCompareFlags}),
          .examples = {"trainscope compare runs/before runs/after --fail-if-slower 5%",
                       "trainscope compare runs/a1,runs/a2 runs/b1,runs/b2 --by op"},
          .run = run_compare};
}

}  // namespace trainscope
