// Which test two sides allow, and what it says.
#include "cli/compare/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "cli/compare/find_trace.h"
#include "engine/bundle/reader.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/numerics/tensor_comparison.h"

namespace trainscope {
namespace {

using profiler::LossCurve;
using profiler::LossPair;
using profiler::LossWindow;
using profiler::PairedLosses;
using profiler::WelchLosses;

constexpr std::string_view kNoCommonStep = "they have no step in common";

using RunPairs = std::vector<std::pair<const LossRun*, const LossRun*>>;

// Rows of a trace, the mean over micro-batches.
LossCurve losses_in(const profiler::Trace& trace) {
  LossCurve curve;
  std::map<std::int64_t, int> counts;
  for (const profiler::TraceRow& row : trace.rows()) {
    if (row.kind != profiler::TraceKind::kLoss) continue;
    const bool finite = row.statistics.finite() == row.statistics.count;
    const double loss = finite ? row.statistics.mean : std::nan("");
    const int before = counts[row.step]++;
    curve[row.step] = (curve[row.step] * before + loss) / (before + 1);
  }
  return curve;
}

// What says where the data are does not say what they are.
Json identity_of(const Json& data) {
  Json identity = Json::object();
  for (const JsonMember& member : data.as_object()) {
    if (member.key != "file" && member.key != "vocabulary") identity.set(member.key, member.value);
  }
  return identity;
}

std::string option_of(const RunManifest& run, std::string_view name) {
  const Json* option = run.options.find(name);
  return option == nullptr ? "" : option->dump();
}

// The hash of its model file; empty: not known.
std::string model_of(const LossRun& run) {
  if (run.manifest) return run.manifest->model.get_or("xxh3", "");
  const std::optional<profiler::Trace> trace = find_trace(run.folder);
  return trace ? trace->header().model : "";
}

// What keeps two runs' losses from being compared at all; empty: nothing does.
std::string other_task(const LossRun& a, const LossRun& b) {
  const std::string model_a = model_of(a);
  const std::string model_b = model_of(b);
  if (!model_a.empty() && !model_b.empty() && model_a != model_b) return "the models are others";
  if (!a.manifest || !b.manifest) return {};
  const RunManifest& x = *a.manifest;
  const RunManifest& y = *b.manifest;
  if (!(identity_of(x.data) == identity_of(y.data))) return "the data are others";
  if (a.examples != b.examples) {
    return fmt::format("steps have {} and {} examples", a.examples, b.examples);
  }
  if (option_of(x, "shuffle") != option_of(y, "shuffle")) return "--shuffle is another";
  return {};
}

// Of two runs of which one is another engine's: whether traces show the same batches. Empty: they
// do; else why that is not known, or not so.
std::string other_batches(const LossRun& a, const LossRun& b) {
  const std::optional<profiler::Trace> trace_a = find_trace(a.folder);
  const std::optional<profiler::Trace> trace_b = find_trace(b.folder);
  if (!trace_a || !trace_b) return "one of them has no trace that would show its batches";
  try {
    profiler::require_same_batches(*trace_a, *trace_b);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUsage) throw;
    return error.message();
  }
  return {};
}

std::vector<std::uint64_t> seeds_of(const std::vector<LossRun>& side) {
  std::vector<std::uint64_t> seeds;
  for (const LossRun& run : side) {
    if (run.manifest) seeds.push_back(run.manifest->seed);
  }
  return seeds;
}

std::string seeds_text(const std::vector<std::uint64_t>& seeds) {
  return seeds.empty() ? "unknown" : fmt::format("{}", fmt::join(seeds, ", "));
}

// Runs of A with those of B that have the same seed, in A's order; empty where not all have one.
RunPairs same_seeds(const LossSides& sides) {
  RunPairs pairs;
  std::set<const LossRun*> taken;
  for (const LossRun& a : sides.a) {
    const auto other = std::ranges::find_if(sides.b, [&](const LossRun& b) {
      return b.manifest && a.manifest && b.manifest->seed == a.manifest->seed &&
             !taken.contains(&b);
    });
    if (other == sides.b.end()) return {};
    taken.insert(&*other);
    pairs.emplace_back(&a, &*other);
  }
  if (taken.size() != sides.b.size()) return {};
  return pairs;
}

Json pair_json(const LossPair& pair) {
  return Json::object(
      {{"step", pair.step}, {"a", pair.a}, {"b", pair.b}, {"relative", pair.relative}});
}

// 1, 2, 5, 10 ... of the rows, the first beyond the limit, the largest and the last.
std::vector<std::size_t> shown_rows(const PairedLosses& both, std::size_t top) {
  std::set<std::size_t> rows = {both.largest, both.steps.size() - 1};
  if (both.first) rows.insert(*both.first);
  for (std::size_t power = 1; power <= both.steps.size(); power *= 10) {
    for (const std::size_t row : {power, 2 * power, 5 * power}) {
      if (row <= both.steps.size() && rows.size() < top) rows.insert(row - 1);
    }
  }
  return {rows.begin(), rows.end()};
}

std::string pairs_text(const PairedLosses& both, std::size_t top, const std::string& b) {
  const LossPair& largest = both.steps[both.largest];
  std::string text =
      fmt::format("largest relative difference {:.2e} at step {}, limit {:.0e}: ", largest.relative,
                  largest.step, profiler::kSameSeedLimit);
  text += both.first ? fmt::format("beyond it from step {} on\n", both.steps[*both.first].step)
                     : "no step is beyond it\n";
  text += fmt::format("{:>8} {:>14} {:>14} {:>10}\n", "step", "A", b, "relative");
  for (const std::size_t row : shown_rows(both, top)) {
    const LossPair& pair = both.steps[row];
    text += fmt::format("{:>8} {:>14.9g} {:>14.9g} {:>10.2e}\n", pair.step, pair.a, pair.b,
                        pair.relative);
  }
  return text;
}

LossCurve validation_of(const LossRun& run) {
  LossCurve curve;
  for (const EvaluationRecord& each : run.validation) curve[each.step] = each.loss;
  return curve;
}

// Two runs of one seed.
struct PairOutcome {
  Json facts;
  std::string text;
  bool differs = false;
};

PairOutcome pair_outcome(const LossRun& a, const LossRun& b, const std::string& b_name,
                         std::size_t top) {
  const PairedLosses training = profiler::compare_paired(a.curve, b.curve);
  const PairedLosses validation = profiler::compare_paired(validation_of(a), validation_of(b));
  PairOutcome outcome{.facts = Json::object({{"a", a.folder}, {"b", b.folder}}),
                      .text = {},
                      .differs = training.first || validation.first};
  const auto set_losses = [&outcome](const PairedLosses& both, const std::string& name) {
    Json rows = Json::array();
    for (const LossPair& pair : both.steps) rows.push_back(pair_json(pair));
    Json losses = Json::object({{"steps", both.steps.size()}, {"rows", std::move(rows)}});
    losses.set("first", both.first ? pair_json(both.steps[*both.first]) : Json());
    losses.set("largest", both.steps.empty() ? Json() : pair_json(both.steps[both.largest]));
    outcome.facts.set(name, std::move(losses));
  };
  set_losses(training, "training");
  set_losses(validation, "validation");
  outcome.facts.set("differs", outcome.differs);
  outcome.text = pairs_text(training, top, b_name);
  if (!validation.steps.empty()) {
    const LossPair& largest = validation.steps[validation.largest];
    outcome.text += fmt::format("validation losses differ by {:.2e} at most (after step {})\n",
                                largest.relative, largest.step);
  }
  return outcome;
}

std::vector<LossCurve> curves_of(const std::vector<LossRun>& side) {
  std::vector<LossCurve> curves;
  for (const LossRun& run : side) curves.push_back(run.curve);
  return curves;
}

Json window_json(const LossWindow& window) {
  return Json::object({{"from", window.from},
                       {"to", window.to},
                       {"mean_a", window.mean_a},
                       {"mean_b", window.mean_b},
                       {"deviation_a", window.deviation_a},
                       {"deviation_b", window.deviation_b},
                       {"t", window.t},
                       {"freedom", window.freedom},
                       {"p", window.p}});
}

Outcome not_tested(const std::string& reason, const LossSides& sides) {
  const LossRun& a = sides.a.front();
  const LossRun& b = sides.b.front();
  Outcome outcome;
  outcome.facts = Json::object({{"test", "none"}, {"reason", reason}, {"differs", Json()}});
  outcome.text =
      fmt::format("losses are not tested: {}\nlast   A {:.9g} at step {}, {} {:.9g} at step {}\n",
                  reason, a.curve.rbegin()->second, a.curve.rbegin()->first, sides.b_name,
                  b.curve.rbegin()->second, b.curve.rbegin()->first);
  return outcome;
}

Outcome by_welch(const LossSides& sides) {
  const WelchLosses both = profiler::compare_by_welch(curves_of(sides.a), curves_of(sides.b));
  if (both.windows.empty()) return not_tested(std::string(kNoCommonStep), sides);
  Json windows = Json::array();
  std::string rows;
  for (const LossWindow& window : both.windows) {
    windows.push_back(window_json(window));
    rows += fmt::format("{:>7}-{:<7} {:>11.6g} {:>9.2e} {:>11.6g} {:>9.2e} {:>9.2f} {:>9.2g}\n",
                        window.from, window.to, window.mean_a, window.deviation_a, window.mean_b,
                        window.deviation_b, window.t, window.p);
  }
  Outcome outcome;
  outcome.facts = Json::object({{"test", "welch"},
                                {"steps", both.steps},
                                {"differs", both.first.has_value()},
                                {"level", profiler::kWelchLevel},
                                {"windows", std::move(windows)}});
  outcome.facts.set("first", both.first ? window_json(both.windows[*both.first]) : Json());
  const std::string& b = sides.b_name;
  outcome.text = fmt::format(
      "losses of {} runs of A, seeds {}, and {} of {}, seeds {}: Welch's test of the mean losses "
      "of "
      "{} steps\n",
      sides.a.size(), seeds_text(seeds_of(sides.a)), sides.b.size(), b,
      seeds_text(seeds_of(sides.b)), both.steps);
  outcome.text += both.first
                      ? fmt::format("{} differs in steps {} to {}, by more than seeds do\n", b,
                                    both.windows[*both.first].from, both.windows[*both.first].to)
                      : fmt::format("{} differs in no part of them by more than seeds do\n", b);
  outcome.text += fmt::format("{:>15} {:>11} {:>9} {:>11} {:>9} {:>9} {:>9}\n", "steps", "A", "+-",
                              b, "+-", "t", "p") +
                  rows;
  if (both.first) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return outcome;
}

Outcome by_seed(const RunPairs& pairs, const LossSides& sides, std::size_t top) {
  const bool share_no_step = std::ranges::any_of(pairs, [](const auto& pair) {
    return profiler::compare_paired(pair.first->curve, pair.second->curve).steps.empty();
  });
  if (share_no_step) return not_tested(std::string(kNoCommonStep), sides);
  const bool of_engines = !sides.a.front().manifest || !sides.b.front().manifest;
  Outcome outcome;
  outcome.text = fmt::format(
      "losses of A, {} steps, and {}, {} steps: {}\n", sides.a.front().curve.size(), sides.b_name,
      sides.b.front().curve.size(), of_engines ? "the same batches" : "the same seed and data");
  Json facts = Json::array();
  for (const auto& [a, b] : pairs) {
    PairOutcome pair = pair_outcome(*a, *b, sides.b_name, top);
    if (pairs.size() > 1) {
      outcome.text += fmt::format("{} and {}\n", printable(a->folder), printable(b->folder));
    }
    outcome.text += pair.text;
    if (pair.differs) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
    facts.push_back(std::move(pair.facts));
  }
  outcome.facts = Json::object({{"test", "same_seed"},
                                {"limit", profiler::kSameSeedLimit},
                                {"differs", outcome.exit_code != 0},
                                {"pairs", std::move(facts)}});
  return outcome;
}

// Why no runs of the sides can be held against each other; empty: they can.
std::string no_comparison(const LossSides& sides) {
  for (const std::vector<LossRun>* side : {&sides.a, &sides.b}) {
    for (const LossRun& run : *side) {
      const std::string other = other_task(sides.a.front(), run);
      if (!other.empty()) return other;
    }
  }
  return {};
}

}  // namespace

LossRun read_losses(const std::string& folder) {
  LossRun run{.folder = folder, .curve = {}};
  const Folder opened = Folder::open(folder);
  if (opened.has_file(kRunManifestFile)) {
    const RunReader reader = RunReader::open(opened);
    run.manifest = reader.manifest();
    Metrics metrics = reader.metrics();
    for (const StepRecord& step : metrics.steps) run.curve[step.step] = step.loss;
    if (!metrics.steps.empty()) run.examples = metrics.steps.front().samples;
    run.validation = std::move(metrics.evaluations);
  }
  if (!run.curve.empty()) return run;
  if (const auto trace = find_trace(folder)) run.curve = losses_in(*trace);
  return run;
}

bool has_losses(const std::vector<LossRun>& side) {
  return std::ranges::all_of(side, [](const LossRun& run) {
    return std::ranges::any_of(run.curve,
                               [](const auto& step) { return std::isfinite(step.second); });
  });
}

Outcome compare_losses(const LossSides& sides, std::size_t top) {
  const std::string no = no_comparison(sides);
  if (!no.empty()) return not_tested(no, sides);
  RunPairs pairs = same_seeds(sides);
  const bool one_each = sides.a.size() == 1 && sides.b.size() == 1;
  const bool of_engines = !sides.a.front().manifest || !sides.b.front().manifest;
  if (one_each && of_engines) {
    const std::string other = other_batches(sides.a.front(), sides.b.front());
    if (!other.empty()) return not_tested(other, sides);
    pairs = {{&sides.a.front(), &sides.b.front()}};
  }
  if (pairs.empty() && sides.a.size() > 1 && sides.b.size() > 1) return by_welch(sides);
  if (pairs.empty()) {
    return not_tested(
        fmt::format("seeds are others (A {}, {} {}), which one run a side says nothing about: give "
                    "several, A1,A2,A3 B1,B2,B3",
                    seeds_text(seeds_of(sides.a)), sides.b_name, seeds_text(seeds_of(sides.b))),
        sides);
  }
  return by_seed(pairs, sides, top);
}

}  // namespace trainscope
