// compare: two or three runs beside each other: times, bytes, plans, losses and tensors.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/compare/find_trace.h"
#include "cli/compare/losses.h"
#include "cli/compare/plans.h"
#include "cli/compare/sides.h"
#include "cli/compare/tensors.h"
#include "cli/compare/times.h"
#include "cli/flags/invocation.h"
#include "cli/replay/replay_command.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr Flag kCompareFlags[] = {
    {.name = "by",
     .type = FlagType::kChoice,
     .value = "kernel|op|node|layer|phase|pass",
     .fallback = "node",
     .help = "What rows of times are, see `query`"},
    {.name = "only",
     .type = FlagType::kChoice,
     .value = "all|time|bytes|plan|loss|tensors",
     .fallback = "all",
     .help =
         "The section to show, else each that the runs hold: times of profiles, bytes and "
         "kernels of plans, loss curves, tensors of --record-numerics. Exit code 9 where a loss "
         "or a tensor differs by more than it may"},
    {.name = "top",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "20",
     .help = "Rows that are shown of each, those that differ most first; --json has all",
     .minimum = 1},
    {.name = "replay",
     .type = FlagType::kToggle,
     .fallback = "on",
     .help = "Run the steps after the first again, each from the parameters and states of the "
             "other run, where all elements of these are recorded: limits are of one step then, "
             "else so many times that"},
    {.name = "fail-if-slower",
     .value = "SHARE",
     .help =
         "Exit code 9 where an undisturbed step of B takes so much longer (5% or 0.05), and more "
         "than runs of one program differ anyway"},
};

// What is compared, as the command line has it.
class Question {
 public:
  explicit Question(const Invocation& invocation)
      : invocation_(invocation), settings_(invocation.settings()), sides_(invocation.arguments()) {
    std::erase(sides_, "");  // C was left out
    runs_ = std::ranges::all_of(sides_, are_runs);
  }

  const Invocation& invocation() const { return invocation_; }
  const Settings& settings() const { return settings_; }
  std::size_t top() const { return static_cast<std::size_t>(settings_.integer("top")); }
  std::string_view only() const { return settings_.text("only"); }
  // A, B and perhaps C.
  const std::vector<std::string>& sides() const { return sides_; }
  bool of_runs() const { return runs_; }

 private:
  const Invocation& invocation_;
  const Settings& settings_;
  std::vector<std::string> sides_;
  bool runs_ = false;
};

// A section's facts under a key of their own, its text behind what is there.
void add_section(const std::string& key, Outcome section, Outcome& to) {
  to.facts.set(key, std::move(section.facts));
  if (!to.text.empty()) to.text += "\n";
  to.text += section.text;
  if (to.exit_code == 0) to.exit_code = section.exit_code;
}

std::vector<LossRun> losses_of_side(const std::string& words) {
  std::vector<LossRun> side;
  for (const std::string& folder : folders_of(words)) side.push_back(read_losses(folder));
  return side;
}

// Of A and B, and where there is a C with losses, of A and C. None where A or B has none.
std::optional<Outcome> loss_outcome(const Question& question) {
  std::vector<std::vector<LossRun>> sides;
  for (const std::string& words : question.sides()) sides.push_back(losses_of_side(words));
  if (!has_losses(sides[0]) || !has_losses(sides[1])) {
    if (question.only() != "loss") return std::nullopt;
    const std::size_t without = has_losses(sides[0]) ? 1 : 0;
    throw Error(ErrorCode::kUsage, fmt::format("'{}' has no losses that are numbers",
                                               printable(question.sides()[without])));
  }
  Outcome outcome = compare_losses({.a = sides[0], .b = sides[1]}, question.top());
  if (sides.size() < 3 || !has_losses(sides[2])) return outcome;
  add_section("c", compare_losses({.a = sides[0], .b = sides[2], .b_name = "C"}, question.top()),
              outcome);
  return outcome;
}

// Of the first run of each side; none where not all recorded them.
std::optional<Outcome> tensor_outcome(const Question& question) {
  std::vector<TracedSide> sides;
  for (const std::string& words : question.sides()) {
    const std::string first = folders_of(words).front();
    std::optional<profiler::Trace> trace = find_trace(first);
    if (trace) {
      const std::string name(1, static_cast<char>('A' + sides.size()));
      sides.push_back({.name = name, .folder = first, .trace = std::move(*trace)});
    } else if (question.only() == "tensors") {
      throw Error(ErrorCode::kUsage,
                  fmt::format("'{}' has no trace of its numbers", printable(first)))
          .hint("train with --record-numerics");
    } else {
      return std::nullopt;
    }
  }
  return compare_numerics(sides, question.invocation());
}

// Why tensors are not compared is said in their section; the others are shown all the same.
void add_tensors(const Question& question, Outcome& outcome) {
  try {
    std::optional<Outcome> section = tensor_outcome(question);
    if (section) add_section("tensors", std::move(*section), outcome);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) outcome.exit_code = static_cast<int>(error.code());
    outcome.facts.set("tensors_refused", error.message());
    outcome.text += fmt::format("\ntensors are not compared: {}\n", error.message());
  }
}

// The sections of plans and profiles, of A and B. The facts of times stand at the top.
Outcome compare_programs(const Question& question) {
  const Side a(question.sides()[0]);
  const Side b(question.sides()[1]);
  Outcome times = compare_times(a, b, question.settings());
  Outcome outcome{.facts = std::move(times.facts), .text = {}, .exit_code = times.exit_code};
  add_section("bytes", compare_bytes(a, b, question.top()), outcome);
  add_section("plan", compare_plans(a, b, question.top()), outcome);
  outcome.text += "\n" + times.text;
  return outcome;
}

// One section, as --only names it; its facts are the outcome's.
Outcome compare_section(const Question& question) {
  const std::string_view only = question.only();
  if (only == "loss") return *loss_outcome(question);
  if (only == "tensors") return *tensor_outcome(question);
  const Side a(question.sides()[0]);
  const Side b(question.sides()[1]);
  if (only == "bytes") return compare_bytes(a, b, question.top());
  if (only == "plan") return compare_plans(a, b, question.top());
  Outcome outcome = compare_times(a, b, question.settings());
  outcome.text += slower_line(outcome);
  return outcome;
}

// Of traces without a run there are tensors, perhaps with losses; the facts of tensors stand at the
// top.
std::optional<Outcome> compare_traces(const Question& question) {
  std::optional<Outcome> section = tensor_outcome(question);
  if (!section) return std::nullopt;
  Outcome outcome{.facts = std::move(section->facts), .text = {}};
  if (std::optional<Outcome> curves = loss_outcome(question)) {
    add_section("loss", std::move(*curves), outcome);
  }
  outcome.text += (outcome.text.empty() ? "" : "\n") + section->text;
  if (outcome.exit_code == 0) outcome.exit_code = section->exit_code;
  return outcome;
}

Outcome answer(const Question& question) {
  if (question.only() != "all") return compare_section(question);
  if (!question.of_runs()) {
    if (std::optional<Outcome> traces = compare_traces(question)) return std::move(*traces);
  }
  Outcome outcome = compare_programs(question);
  if (std::optional<Outcome> curves = loss_outcome(question)) {
    add_section("loss", std::move(*curves), outcome);
  }
  add_tensors(question, outcome);
  outcome.text += slower_line(outcome);
  return outcome;
}

Outcome run_compare(const Invocation& invocation) {
  return unless_stopped([&] { return answer(Question(invocation)); });
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .summary =
              "Compare two or three runs: times, bytes and kernels by node, loss curves, and "
              "the tensors they recorded.",
          .arguments = {{.name = "A",
                         .help = "the folder of a run, or of another engine's trace. A1,A2,...: "
                                 "runs of one command; of six or more a side, as many on both, the "
                                 "first of A is held against the first of B and so on, others are "
                                 "taken as one"},
                        {.name = "B", .help = "another one, or several"},
                        {.name = "C",
                         .help = "a third one, whose losses and tensors are held against A's too",
                         .required = false}},
          .flags = join_flags({kCompareFlags}),
          .examples = {"trainscope compare runs/before runs/after --fail-if-slower 5%",
                       "trainscope compare runs/ours runs/torch runs/ort --only tensors"},
          .run = run_compare};
}

}  // namespace trainscope
