// A step at a time: what the other side had before it, the replay, its tensors in the place of the
// recorded ones.
#include "cli/compare/replayed_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "cli/replay/replay_command.h"
#include "cli/replay/replayable.h"
#include "engine/bundle/format.h"
#include "engine/core/error.h"
#include "engine/core/system/scratch_folder.h"
#include "engine/core/text.h"
#include "profiler/numerics/indexed_trace.h"
#include "profiler/numerics/tensor_limits.h"

namespace trainscope {
namespace {

using profiler::ComparedTensor;
using profiler::IndexedTrace;
using profiler::TensorComparison;
using profiler::Trace;
using profiler::TraceKind;
using profiler::TraceRow;

constexpr Flag kReplayFlags[] = {kNotBitwiseFlag};

// A call of a verb that runs a run's steps again, without options of its own.
Invocation replaying(const Invocation& invocation, const std::string& folder) {
  static const Command command = replay_command(kReplayFlags, nullptr);
  const GivenFlag quiet[] = {{.name = "quiet", .texts = {"on"}}};
  Settings settings(command, quiet, [](const std::string&) { return std::nullopt; });
  return Invocation(command, std::move(settings), {folder}, invocation.words());
}

bool is_kept(const TraceRow& row) {
  return row.kind == TraceKind::kParameter || row.kind == TraceKind::kState;
}

// What a step begins with, by the names of the run that is to begin with it.
struct Begin {
  std::map<std::string, Tensor> tensors;
  std::vector<std::string> missing;  // keys
};

Begin begin_of(const Trace& run, const IndexedTrace& other, std::int64_t step) {
  Begin begin;
  std::set<std::string> met;
  for (const TraceRow& row : run.rows()) {
    if (!is_kept(row) || !met.insert(row.key()).second) continue;
    const auto found = other.find(step - 1, 0, row.key());
    std::optional<Tensor> elements = found ? other.full(other.row(*found)) : std::nullopt;
    if (elements) {
      begin.tensors.emplace(row.value, std::move(*elements));
    } else {
      begin.missing.push_back(row.key());
    }
  }
  return begin;
}

// A run, and the other side whose parameters and states it goes on from.
struct Pair {
  const TracedSide& run;
  const TracedSide& other;
  bool swapped;  // the run is B
};

Trace replayed_step(const Invocation& invocation, const Pair& pair, std::int64_t step,
                    std::map<std::string, Tensor> tensors, const std::filesystem::path& scratch) {
  Replayable of(replaying(invocation, pair.run.folder), run_named(pair.run.folder), step, step,
                kReplayFlags);
  of.start = {.checkpoint = {}, .step = step - 1, .tensors = std::move(tensors)};
  NumericsRequest numerics = of.request().numerics.value_or(NumericsRequest{});
  numerics.oracle = true;
  numerics.steps = {step};
  invocation.log().info("runs step {} of {} again, from the parameters and states of {}", step,
                        pair.run.name, pair.other.name);
  return *replayed(of, std::move(numerics), scratch).trace;
}

// The replay's tensors in the place of the run's recorded ones. Returns how many with a limit it
// does not have.
std::int64_t take(const Trace& replay, const TensorComparison& again, const Pair& pair,
                  std::int64_t step, TensorComparison& both) {
  std::map<std::pair<std::int64_t, std::string>, const ComparedTensor*> found;
  for (const ComparedTensor& tensor : again.tensors) {
    const TraceRow& row = replay.rows()[tensor.row_a];
    if (row.step == step) found.emplace(std::pair(row.micro_batch, row.key()), &tensor);
  }
  std::int64_t left = 0;
  for (ComparedTensor& tensor : both.tensors) {
    const TraceRow& row = pair.run.trace.rows()[pair.swapped ? tensor.row_b : tensor.row_a];
    if (row.step != step) continue;
    const auto it = found.find({row.micro_batch, row.key()});
    if (it == found.end()) {
      left += tensor.limit ? 1 : 0;
      continue;
    }
    ComparedTensor anew = *it->second;
    anew.row_a = tensor.row_a;
    anew.row_b = tensor.row_b;
    anew.key = tensor.key;
    if (pair.swapped) {
      std::swap(anew.statistics_a, anew.statistics_b);
      std::swap(anew.error_a, anew.error_b);
    }
    tensor = std::move(anew);
  }
  return left;
}

std::string missing_text(const TracedSide& other, const std::vector<std::string>& missing) {
  const std::string more =
      missing.size() > 1 ? fmt::format(" and {} more", missing.size() - 1) : "";
  return fmt::format("{} lacks elements of {}{} after the step before", other.name,
                     printable(missing.front()), more);
}

// By the run's step once more, if that could be run.
StepLimits judge_step(const Invocation& invocation, const Pair& pair, const IndexedTrace& other,
                      std::int64_t step, TensorComparison& both) {
  Begin begin = begin_of(pair.run.trace, other, step);
  if (!begin.missing.empty()) {
    return {
        .step = step, .why_not = missing_text(pair.other, begin.missing), .lacks_elements = true};
  }
  std::int64_t left = 0;
  try {
    const ScratchFolder scratch;
    const Trace replay =
        replayed_step(invocation, pair, step, std::move(begin.tensors), scratch.path());
    const TensorComparison again = compare_tensors(replay, pair.other.trace, step - 1,
                                                   {.a = pair.run.name, .b = pair.other.name});
    left = take(replay, again, pair, step, both);
  } catch (const Error& error) {
    constexpr ErrorCode kOfRuns[] = {ErrorCode::kUsage, ErrorCode::kBadInput, ErrorCode::kNoDevice,
                                     ErrorCode::kOutOfMemory, ErrorCode::kIo};
    if (std::ranges::find(kOfRuns, error.code()) == std::end(kOfRuns)) throw;
    return {.step = step,
            .why_not = fmt::format("{} cannot run again: {}", pair.run.name, error.message())};
  }
  return {.step = step, .replayed = pair.run.name, .start_of = pair.other.name, .left = left};
}

bool is_run(const TracedSide& side) { return Folder::open(side.folder).has_file(kRunManifestFile); }

std::string named_steps(const std::vector<std::int64_t>& steps) {
  return fmt::format("{} {}", steps.size() == 1 ? "step" : "steps", fmt::join(steps, ", "));
}

// How the steps are to be recorded that lack elements.
std::string recording_text(const std::vector<std::int64_t>& steps) {
  std::set<std::int64_t> wanted;
  for (const std::int64_t step : steps) wanted.insert({step - 1, step});
  return fmt::format("; record them: --record-steps {} --record-full '*'", fmt::join(wanted, ","));
}

}  // namespace

std::vector<StepLimits> judge_by_replay(const Invocation& invocation, const TracedSide& a,
                                        const TracedSide& b, TensorComparison& both) {
  std::vector<Pair> pairs;
  if (is_run(a)) pairs.push_back({.run = a, .other = b, .swapped = false});
  if (is_run(b)) pairs.push_back({.run = b, .other = a, .swapped = true});
  const IndexedTrace of_a(a.trace);
  const IndexedTrace of_b(b.trace);
  std::vector<StepLimits> result;
  for (const std::int64_t step : both.steps) {
    StepLimits& limits = result.emplace_back(StepLimits{.step = step});
    if (step == 1) continue;
    if (pairs.empty()) limits.why_not = "neither is a run that could run again";
    for (const Pair& pair : pairs) {
      StepLimits found = judge_step(invocation, pair, pair.swapped ? of_a : of_b, step, both);
      if (limits.why_not.empty() || found.why_not.empty()) limits = std::move(found);
      if (limits.why_not.empty()) break;
    }
  }
  both.find_first();
  return result;
}

std::vector<StepLimits> limits_by_count(const TensorComparison& both) {
  std::vector<StepLimits> result;
  for (const std::int64_t step : both.steps) {
    result.push_back({.step = step, .why_not = step == 1 ? "" : "--no-replay"});
  }
  return result;
}

std::string limits_text(const std::vector<StepLimits>& limits) {
  struct Rule {
    const StepLimits* first;
    std::vector<std::int64_t> steps;
  };
  std::vector<Rule> rules;
  for (const StepLimits& each : limits) {
    const bool same =
        !rules.empty() &&
        std::tie(rules.back().first->replayed, rules.back().first->why_not,
                 rules.back().first->left) == std::tie(each.replayed, each.why_not, each.left);
    if (!same) rules.push_back({.first = &each, .steps = {}});
    rules.back().steps.push_back(each.step);
  }
  std::string text;
  for (const auto& [first, steps] : rules) {
    text += fmt::format("limits of {}: ", named_steps(steps));
    if (!first->replayed.empty()) {
      text += fmt::format("of one step, which {} ran again from {}'s parameters and states",
                          first->replayed, first->start_of);
      if (first->left > 0) {
        text += fmt::format(
            "; those that it did not make again ({}) have that times 1 + 2 + ... + step",
            first->left);
      }
      text += "\n";
    } else if (first->why_not.empty()) {
      text += "of one step\n";
    } else {
      text += fmt::format("that of one step times 1 + 2 + ... + step: {}{}\n", first->why_not,
                          first->lacks_elements ? recording_text(steps) : "");
    }
  }
  return text;
}

Json limits_json(const std::vector<StepLimits>& limits) {
  Json list = Json::array();
  for (const StepLimits& each : limits) {
    const bool of_one = each.why_not.empty();
    list.push_back(Json::object({{"step", each.step},
                                 {"times", of_one ? 1 : profiler::times_one_step(each.step)},
                                 {"not_replayed", each.left},
                                 {"replayed", each.replayed.empty() ? Json() : each.replayed},
                                 {"from", each.start_of.empty() ? Json() : each.start_of},
                                 {"why_not", each.why_not.empty() ? Json() : each.why_not}}));
  }
  return list;
}

}  // namespace trainscope
