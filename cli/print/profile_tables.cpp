// Shares of the steps by thread; deciles and outliers of the steps.
#include "cli/print/profile_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/core/text.h"
#include "profiler/analysis/critical_path.h"
#include "profiler/analysis/step_spread.h"
#include "profiler/analysis/thread_times.h"

namespace trainscope {
namespace {

using profiler::CriticalPath;
using profiler::IdleCause;
using profiler::OutlierStep;
using profiler::StepSpread;
using profiler::ThreadTime;
using profiler::ThreadTimes;
using profiler::ThreadUse;

constexpr std::size_t kShownCauses = 8;

double ms_of(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

double ms_a_step(const ThreadTimes& times, std::int64_t ns) {
  return times.steps == 0 ? 0.0 : ms_of(ns) / static_cast<double>(times.steps);
}

Json uses_json(const ThreadTimes& times, const ThreadTime& thread) {
  Json uses = Json::object();
  for (std::size_t i = 0; i < profiler::kThreadUses; ++i) {
    const auto use = static_cast<ThreadUse>(i);
    uses.set(std::string(name_of(use)), times.share(thread.of(use)));
  }
  return uses;
}

Json path_json(const CriticalPath& path) {
  Json streams = Json::array();
  for (std::size_t i = 0; i < path.stream_ns.size(); ++i) {
    streams.push_back(Json::object({{"stream", static_cast<std::int64_t>(i)},
                                    {"ms", ms_of(path.stream_ns[i])},
                                    {"all_ms", ms_of(path.stream_all_ns[i])}}));
  }
  return Json::object({{"ms", ms_of(path.ns)},
                       {"calls", static_cast<std::int64_t>(path.calls.size())},
                       {"streams", std::move(streams)}});
}

std::string path_text(const CriticalPath& path) {
  std::string text =
      fmt::format("critical path: {:.4f} ms through {} calls", ms_of(path.ns), path.calls.size());
  for (std::size_t i = 0; i < path.stream_ns.size(); ++i) {
    if (path.stream_all_ns[i] == 0) continue;
    text += fmt::format("{} stream {} has {:.4f} of its {:.4f} ms on it", i == 0 ? ";" : ",", i,
                        ms_of(path.stream_ns[i]), ms_of(path.stream_all_ns[i]));
  }
  return text + "\n";
}

std::string threads_text(const ThreadTimes& times, const CriticalPath& path) {
  std::string text = fmt::format("{} steps of {:.3f} ms; shares of the step by thread\n{:>6}",
                                 times.steps, ms_a_step(times, times.total_ns), "thread");
  for (std::size_t i = 0; i < profiler::kThreadUses; ++i) {
    text += fmt::format(" {:>9}", name_of(static_cast<ThreadUse>(i)));
  }
  text += '\n';
  for (std::size_t thread = 0; thread < times.threads.size(); ++thread) {
    text += fmt::format("{:>6}", thread);
    for (const std::int64_t ns : times.threads[thread].ns) {
      text += fmt::format(" {:>8.2f}%", 100.0 * times.share(ns));
    }
    text += '\n';
  }
  text += fmt::format(
      "balance: threads work {:.1f}% of what they would if all worked as long as "
      "the one that works most\n",
      100.0 * times.balance());
  for (std::size_t i = 0; i < std::min(kShownCauses, times.idle.size()); ++i) {
    const IdleCause& cause = times.idle[i];
    text += fmt::format("{}{:>10.4f} ms a step, while thread 0 is at {}\n",
                        i == 0 ? "idle: " : "      ", ms_a_step(times, cause.ns),
                        printable(cause.name));
  }
  return text + path_text(path);
}

Json outlier_json(const OutlierStep& each) {
  return Json::object(
      {{"step", each.step}, {"ms", ms_of(each.ns)}, {"causes", Json::list(each.causes)}});
}

std::string steps_text(const StepSpread& spread) {
  std::string text = fmt::format(
      "{} steps: median {:.4f} ms, median absolute deviation {:.4f}; {:.4f} to {:.4f} ms\n",
      spread.spread.count, spread.spread.median / 1e6, spread.spread.deviation / 1e6,
      ms_of(spread.least_ns), ms_of(spread.most_ns));
  for (std::size_t i = 0; i < spread.deciles_ns.size(); ++i) {
    text += fmt::format("{:>3}% within {:>12.4f} ms\n", 10 * (i + 1), ms_of(spread.deciles_ns[i]));
  }
  if (spread.outliers.empty()) text += "no step is beyond the others\n";
  for (const OutlierStep& each : spread.outliers) {
    text += fmt::format("step {} took {:.4f} ms:\n", each.step, ms_of(each.ns));
    for (const std::string& cause : each.causes) text += fmt::format("    {}\n", cause);
  }
  return text;
}

}  // namespace

Outcome thread_table(const profiler::Profile& profile, const profiler::StepTimes& steps) {
  const ThreadTimes times = profiler::thread_times(profile.events(), profile.plan());
  const CriticalPath path = profiler::critical_path(steps, profile.plan());
  Json threads = Json::array();
  for (const ThreadTime& thread : times.threads) threads.push_back(uses_json(times, thread));
  Json idle = Json::array();
  for (const IdleCause& cause : times.idle) {
    idle.push_back(Json::object({{"while", cause.name}, {"ms", ms_a_step(times, cause.ns)}}));
  }
  return {.facts = Json::object({{"steps", times.steps},
                                 {"step_ms", ms_a_step(times, times.total_ns)},
                                 {"threads", std::move(threads)},
                                 {"balance", times.balance()},
                                 {"idle", std::move(idle)},
                                 {"critical_path", path_json(path)}}),
          .text = threads_text(times, path)};
}

Outcome step_table(const profiler::Profile& profile, const profiler::StepTimes& times) {
  const StepSpread spread = profiler::step_spread(profile.events(), profile.plan(), times);
  Json deciles = Json::array();
  for (const std::int64_t ns : spread.deciles_ns) deciles.push_back(ms_of(ns));
  Json outliers = Json::array();
  for (const OutlierStep& each : spread.outliers) outliers.push_back(outlier_json(each));
  Json steps = Json::array();
  for (const profiler::StepTime& step : times.steps) {
    steps.push_back(Json::object({{"step", step.step}, {"ms", ms_of(step.ns())}}));
  }
  return {.facts = Json::object({{"steps", std::move(steps)},
                                 {"median_ms", spread.spread.median / 1e6},
                                 {"deviation_ms", spread.spread.deviation / 1e6},
                                 {"least_ms", ms_of(spread.least_ns)},
                                 {"most_ms", ms_of(spread.most_ns)},
                                 {"deciles_ms", std::move(deciles)},
                                 {"outliers", std::move(outliers)}}),
          .text = steps_text(spread)};
}

std::string_view whose_time(bool is_of_device) {
  return is_of_device ? "the device, and of the driving thread where the device is idle"
                      : "the driving thread";
}

Outcome range_table(const profiler::RangeTimes& times, std::string_view by, std::size_t most) {
  const std::size_t shown = most == 0 ? times.rows.size() : std::min(most, times.rows.size());
  Json rows = Json::array();
  std::string text =
      fmt::format("{:.6f} ms; time is that of {}\n{:>12} {:>7} {:>8}  {}\n", ms_of(times.range_ns),
                  whose_time(times.is_of_device), "ms", "share", "spans", by);
  std::int64_t shown_ns = 0;
  for (const profiler::RangeRow& row : std::span(times.rows).first(shown)) {
    rows.push_back(Json::object({{"name", row.name},
                                 {"is_call", row.is_call},
                                 {"ns", row.ns},
                                 {"share", times.share(row)},
                                 {"spans", row.spans}}));
    text += fmt::format("{:>12.6f} {:>6.2f}% {:>8}  {}\n", ms_of(row.ns), 100.0 * times.share(row),
                        row.spans, row.is_call ? printable(row.name) : "(" + row.name + ")");
    shown_ns += row.ns;
  }
  text += fmt::format(
      "{:>12.6f}          in {} of {} rows; {:.6f} ms are no call, copy or wait for data\n",
      ms_of(shown_ns), shown, times.rows.size(), ms_of(times.range_ns - times.spans_ns));
  return {
      .facts = Json::object(
          {{"range_ns", times.range_ns}, {"spans_ns", times.spans_ns}, {"rows", std::move(rows)}}),
      .text = std::move(text)};
}

}  // namespace trainscope
