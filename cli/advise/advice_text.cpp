// A headline, the reasons, a table of levers with their commands, and what was left out.
#include "cli/advise/advice_text.h"

#include <fmt/format.h>

#include <span>

#include "engine/core/byte_count.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string_view words_for(TimesFrom from) {
  switch (from) {
    case TimesFrom::kProfile:
      return "the run's profile";
    case TimesFrom::kSteps:
      return "steps run now";
    case TimesFrom::kMachine:
      return "a model of the machine: nothing was run";
  }
  return "";
}

std::string change_text(double ratio) { return fmt::format("{:+.1f} %", 100.0 * (ratio - 1.0)); }

double bytes_ratio(const Advice& advice, const LeverAdvice& lever) {
  return static_cast<double>(lever.arena_bytes) / static_cast<double>(advice.base.arena_bytes());
}
double time_ratio(const Advice& advice, const LeverAdvice& lever) {
  const double an_example = advice.base.seconds() / static_cast<double>(advice.base.examples());
  return lever.seconds_an_example() / an_example;
}

std::string headline(const Advice& advice) {
  const StepFacts& base = advice.base;
  std::string text =
      fmt::format("advise: a step of {} examples needs {} and {:.3f} ms", base.examples(),
                  bytes_text(base.arena_bytes()), 1e3 * base.seconds());
  if (advice.levers.empty()) return text + "; no lever was found\n";
  const LeverAdvice& best = advice.levers.front();
  if (advice.memory_bytes) {
    text += best.fits ? fmt::format("; to fit in {}", bytes_text(*advice.memory_bytes))
                      : fmt::format("; nothing found fits in {}, nearest",
                                    bytes_text(*advice.memory_bytes));
  } else if (best.gain <= 1.0) {
    return text + "; no lever is predicted to gain anything\n";
  } else {
    text += "; first of all";
  }
  return text + fmt::format(" {}: {} ({}), {:.3f} ms ({} an example) predicted\n", best.lever.name,
                            bytes_text(best.arena_bytes), change_text(bytes_ratio(advice, best)),
                            1e3 * best.forecast.seconds, change_text(time_ratio(advice, best)));
}

std::string paragraph(std::string_view title, std::span<const std::string> sentences) {
  std::string text = fmt::format("\n{}\n", title);
  for (const std::string& each : sentences) text += fmt::format("  {}\n", each);
  return text;
}

std::string trial_text(const Advice& advice, const LeverAdvice& row) {
  const LeverTrial& trial = *row.trial;
  std::string text = fmt::format(
      "     tried: {} bytes used ({}), {:.3f} ms, predicted {:+.1f} %", trial.used_bytes,
      trial.used_bytes == row.arena_bytes ? "as planned" : "NOT as planned", 1e3 * trial.seconds,
      100.0 * time_error(advice, row));
  if (trial.base_seconds > 0.0) {
    text +=
        fmt::format("; in turn with the step as it is, {:.3f} ms then", 1e3 * trial.base_seconds);
  }
  return text + "\n";
}

std::string lever_text(const ShownAdvice& shown, std::size_t place) {
  const Advice& advice = shown.advice;
  const LeverAdvice& row = advice.levers[place];
  std::string text = fmt::format("{:>3}. {:<38} {:>15} {:>10} {:>10} {:>12.3f} {:>10}\n", place + 1,
                                 row.lever.name, row.arena_bytes, bytes_text(row.arena_bytes),
                                 change_text(bytes_ratio(advice, row)), 1e3 * row.forecast.seconds,
                                 change_text(time_ratio(advice, row)));
  if (row.host_bytes > 0) {
    text += fmt::format("     {} more in host memory\n", bytes_text(row.host_bytes));
  }
  if (!row.fits) text += "     does not fit in the memory asked for\n";
  text += fmt::format("     costs {}\n     {}\n", row.lever.cost, shown.words[place].command);
  if (row.too_large_to_try) text += "     not tried: too large for this machine's memory now\n";
  return row.trial ? text + trial_text(advice, row) : text;
}

Json trial_json(const Advice& advice, const LeverAdvice& row) {
  const LeverTrial& trial = *row.trial;
  return Json::object({{"used_bytes", trial.used_bytes},
                       {"bytes_as_planned", trial.used_bytes == row.arena_bytes},
                       {"ms", 1e3 * trial.seconds},
                       {"base_ms", 1e3 * trial.base_seconds},
                       {"time_error", time_error(advice, row)}});
}

Json lever_json(const Advice& advice, const LeverAdvice& row, const LeverWords& words) {
  Json flags = Json::object();
  for (const GivenFlag& each : words.flags) flags.set(std::string(each.name), each.texts.back());
  Json facts = Json::object({{"name", row.lever.name},
                             {"flags", std::move(flags)},
                             {"arena_bytes", row.arena_bytes},
                             {"host_arena_bytes", row.host_bytes},
                             {"ms", 1e3 * row.forecast.seconds},
                             {"ms_an_example", 1e3 * row.seconds_an_example()},
                             {"examples", row.examples},
                             {"gain", row.gain},
                             {"fits", row.fits},
                             {"same_bits", row.lever.same_bits},
                             {"cost", row.lever.cost},
                             {"command", words.command}});
  facts.set("ms_from", Json::object({{"steps", 1e3 * row.forecast.known_seconds},
                                     {"calls_alone", 1e3 * row.forecast.alone_seconds},
                                     {"model", 1e3 * row.forecast.modelled_seconds}}));
  facts.set("too_large_to_try", row.too_large_to_try);
  if (row.trial) facts.set("trial", trial_json(advice, row));
  return facts;
}

}  // namespace

std::string advice_text(const ShownAdvice& shown) {
  const Advice& advice = shown.advice;
  const Reasons& reasons = shown.reasons;
  std::string text = headline(advice);
  text += paragraph("why this peak", reasons.of_peak);
  text += paragraph("why this time", reasons.of_time);
  text += fmt::format("  (Times are from {}.{}{})\n", words_for(advice.base.times_from),
                      advice.base.note.empty() ? "" : " " + advice.base.note,
                      advice.base.note.empty() ? "" : ".");
  text += fmt::format("\n     {:<38} {:>15} {:>10} {:>10} {:>12} {:>10}\n", "lever", "arena bytes",
                      "", "", "ms a step", "an example");
  for (std::size_t i = 0; i < advice.levers.size(); ++i) {
    text += lever_text(shown, i);
  }
  for (const Lever& each : advice.left_out) {
    text += fmt::format("not here: {}: {}\n", each.name, each.why_not);
  }
  return text;
}

Json advice_json(const ShownAdvice& shown) {
  const Advice& advice = shown.advice;
  const Reasons& reasons = shown.reasons;
  Json levers = Json::array();
  for (std::size_t i = 0; i < advice.levers.size(); ++i) {
    levers.push_back(lever_json(advice, advice.levers[i], shown.words[i]));
  }
  Json left_out = Json::array();
  for (const Lever& each : advice.left_out) {
    left_out.push_back(Json::object({{"name", each.name}, {"why_not", each.why_not}}));
  }
  const StepFacts& base = advice.base;
  Json facts = Json::object({{"arena_bytes", base.arena_bytes()},
                             {"ms", 1e3 * base.seconds()},
                             {"examples", base.examples()},
                             {"steps", static_cast<std::int64_t>(base.times.steps.size())},
                             {"times_from", words_for(base.times_from)},
                             {"note", base.note},
                             {"why_this_peak", Json::list(reasons.of_peak)},
                             {"why_this_time", Json::list(reasons.of_time)},
                             {"headline", std::string(trim(headline(advice)))}});
  if (base.labels_that_count) facts.set("labels_that_count", *base.labels_that_count);
  if (advice.memory_bytes) facts.set("memory_bytes", *advice.memory_bytes);
  facts.set("levers", std::move(levers));
  facts.set("left_out", std::move(left_out));
  return facts;
}

}  // namespace trainscope
