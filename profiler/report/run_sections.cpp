// Sections about the run: summary, curves, stages, near misses, environment.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/core/byte_count.h"
#include "engine/core/numbers.h"
#include "engine/core/text.h"
#include "profiler/analysis/step_times.h"
#include "profiler/report/charts.h"
#include "profiler/report/html.h"
#include "profiler/report/sections.h"

namespace trainscope::profiler {
namespace {

std::string card(std::string_view what, std::string_view value) {
  return element("div", {{"class", "card"}}, escaped(what) + element("b", {}, escaped(value)));
}

std::vector<double> step_times_ms(const Metrics& metrics) {
  std::vector<double> values;
  for (const StepRecord& step : metrics.steps) {
    if (std::isfinite(step.step_ms) && step.step_ms > 0.0) values.push_back(step.step_ms);
  }
  return values;
}

std::string training_cards(const ReportInput& input) {
  std::string cards;
  if (input.metrics.steps.empty()) return cards;
  const StepRecord& last = input.metrics.steps.back();
  cards += card("steps", std::to_string(last.step));
  cards += card(fmt::format("loss of step {}", last.step), fmt::format("{:.5g}", last.loss));
  const std::vector<double> times = step_times_ms(input.metrics);
  if (times.empty()) return cards;
  const double ms = median(times);
  cards += card("median step", duration_text(ms * 1e6));
  if (last.tokens > 0) {
    cards +=
        card("tokens a second", fmt::format("{:.0f}", 1e3 * static_cast<double>(last.tokens) / ms));
  } else if (last.samples > 0) {
    cards += card("examples a second",
                  fmt::format("{:.4g}", 1e3 * static_cast<double>(last.samples) / ms));
  }
  return cards;
}

std::string memory_cards(const PlanView& plan) {
  std::string cards = card("arena", bytes_text(plan.arena().bytes));
  const std::int64_t bound = plan.arena().lower_bound_bytes;
  if (bound > 0) {
    const double above =
        100.0 * (static_cast<double>(plan.arena().bytes) / static_cast<double>(bound) - 1.0);
    cards += card("above the lower bound", fmt::format("{:.2f} %", above));
  }
  if (plan.recompute.empty()) return cards;
  const PlanRecompute& recompute = plan.recompute.front();
  if (recompute.plain_bytes > 0) {
    cards += card("without recomputation", bytes_text(recompute.plain_bytes));
  }
  return cards;
}

std::string json_text(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

// The name of a file without its folders; the data's kind where they are of none.
std::string file_at(const Json& object, std::string_view key) {
  if (!object.is_object()) return "-";
  if (const Json* file = object.find(key)) {
    return std::filesystem::path(json_text(*file)).filename().string();
  }
  return object.get_or("kind", "-");
}

std::string json_rows(const Json& object) {
  HtmlTable table({{"name"}, {"value"}});
  if (!object.is_object()) return {};
  for (const auto& [name, value] : object.as_object()) {
    table.add(
        {element("code", {}, escaped(name)), element("code", {}, escaped(json_text(value), 400))});
  }
  return table.empty() ? std::string() : table.text();
}

std::string change_text(std::int64_t before, std::int64_t after, bool bytes) {
  const auto text = [bytes](std::int64_t value) {
    return bytes ? bytes_text(value) : fmt::format("{:.4g} M", static_cast<double>(value) / 1e6);
  };
  if (before == after) return text(after);
  return fmt::format("{} to {}", text(before), text(after));
}

}  // namespace

std::string summary_section(const ReportInput& input) {
  const RunSession& session = input.manifest.sessions.back();
  const std::string what = fmt::format("{} on {}", file_at(input.manifest.model, "file"),
                                       file_at(input.manifest.data, "file"));
  const std::string how =
      fmt::format("{}, {} of {} session{}; {} thread{}, {}", name_of(session.status), input.session,
                  input.manifest.sessions.size(), input.manifest.sessions.size() == 1 ? "" : "s",
                  session.threads, session.threads == 1 ? "" : "s", session.isa);
  std::string text = element("p", {{"class", "soft"}}, escaped(what + "; " + how, 1000));
  if (!session.message.empty()) text += element("p", {}, escaped(session.message, 2000));
  std::string cards = training_cards(input);
  if (input.plan) cards += memory_cards(*input.plan);
  return text + element("div", {{"class", "cards"}}, cards);
}

std::string curves_section(const ReportInput& input) {
  const Metrics& metrics = input.metrics;
  if (metrics.steps.empty()) return {};
  Line loss{.name = "training", .color = 0};
  Line rate{.name = "learning rate", .color = 5};
  Line norm{.name = "gradient norm", .color = 4};
  Line time{.name = "step", .color = 7};
  for (const StepRecord& step : metrics.steps) {
    const auto x = static_cast<double>(step.step);
    loss.points.emplace_back(x, step.loss);
    rate.points.emplace_back(x, step.learning_rate);
    norm.points.emplace_back(x, step.gradient_norm);
    time.points.emplace_back(x, step.step_ms);
  }
  LineChart losses{.title = "Loss", .x_label = "step", .y_label = "loss", .lines = {loss}};
  Line validation{.name = "validation", .color = 4};
  Line accuracy{.name = "accuracy", .color = 5};
  for (const EvaluationRecord& each : metrics.evaluations) {
    validation.points.emplace_back(static_cast<double>(each.step), each.loss);
    accuracy.points.emplace_back(static_cast<double>(each.step), each.accuracy);
  }
  const auto is_finite = [](const auto& point) { return std::isfinite(point.second); };
  if (!validation.points.empty()) losses.lines.push_back(validation);
  std::string charts = line_chart(losses);
  charts += line_chart({.title = "Time of a step",
                        .x_label = "step",
                        .y_label = "ms",
                        .lines = {time},
                        .from_zero = true,
                        .cuts_outliers = true});
  charts += line_chart({.title = "Learning rate",
                        .x_label = "step",
                        .y_label = "rate",
                        .lines = {rate},
                        .from_zero = true});
  if (std::ranges::any_of(norm.points, is_finite)) {
    charts += line_chart({.title = "Gradient norm before clipping",
                          .x_label = "step",
                          .y_label = "norm",
                          .lines = {norm},
                          .from_zero = true});
  }
  if (std::ranges::any_of(accuracy.points, is_finite)) {
    charts += line_chart({.title = "Accuracy on the validation split",
                          .x_label = "step",
                          .y_label = "share of labels",
                          .lines = {accuracy}});
  }
  return element("div", {{"class", "columns"}}, charts);
}

std::string stages_section(const ReportInput& input) {
  if (input.stages.empty()) return element("p", {}, "The run has no stages yet.");
  HtmlTable table({{"stage"},
                   {"nodes", true},
                   {"FLOPs", true},
                   {"bytes moved", true},
                   {"ms", true},
                   {"what it counted"}});
  std::size_t unchanged = 0;
  for (const StageRecord& stage : input.stages) {
    if (!stage.changed && &stage != &input.stages.front()) {
      ++unchanged;
      continue;
    }
    std::string counters;
    for (const auto& [name, count] : stage.counters) {
      if (count == 0) continue;
      counters += fmt::format("{}{}: {}", counters.empty() ? "" : ", ", name, count);
    }
    table.add({element("code", {}, escaped(stage.name)),
               stage.nodes_before == stage.nodes_after
                   ? std::to_string(stage.nodes_after)
                   : fmt::format("{} to {}", stage.nodes_before, stage.nodes_after),
               change_text(stage.flops_before, stage.flops_after, false),
               change_text(stage.bytes_before, stage.bytes_after, true),
               fmt::format("{:.2f}", stage.milliseconds), escaped(counters, 400)});
  }
  std::string text = table.text();
  if (unchanged > 0)
    text += element("p", {{"class", "soft"}}, fmt::format("{} passes changed nothing.", unchanged));
  return text;
}

std::string near_misses_section(const ReportInput& input) {
  constexpr std::size_t kMost = 100;
  HtmlTable table({{"pass"}, {"node"}, {"why it stayed"}});
  std::size_t all = 0;
  for (const StageRecord& stage : input.stages) {
    for (const NearMissRecord& miss : stage.near_misses) {
      if (++all > kMost) continue;
      std::string nodes = element("code", {}, escaped(miss.node()));
      if (miss.nodes.size() > 1) nodes += fmt::format(" and {} more", miss.nodes.size() - 1);
      table.add({element("code", {}, escaped(stage.name)), nodes, escaped(miss.reason, 400)});
    }
  }
  if (all == 0) return {};
  std::string text = table.text();
  if (all > kMost)
    text += element(
        "p", {},
        fmt::format("The first {} of {}; `trainscope inspect RUN --stages --explain` shows all.",
                    kMost, all));
  return text;
}

std::string environment_section(const ReportInput& input) {
  const RunManifest& manifest = input.manifest;
  std::string text;
  HtmlTable sessions({{"session", true},
                      {"began"},
                      {"ended"},
                      {"status"},
                      {"steps"},
                      {"program"},
                      {"device"},
                      {"threads", true},
                      {"instructions"}});
  for (std::size_t i = 0; i < manifest.sessions.size(); ++i) {
    const RunSession& each = manifest.sessions[i];
    sessions.add({std::to_string(i + 1), escaped(each.start_time), escaped(each.end_time),
                  std::string(name_of(each.status)),
                  fmt::format("{} to {}", each.from_step + 1, each.last_step),
                  escaped(each.program_version), escaped(each.device), std::to_string(each.threads),
                  escaped(each.isa)});
  }
  text += sessions.text();
  text += element("h3", {}, "Commands");
  std::string commands;
  for (const RunSession& each : manifest.sessions) commands += shell_line(each.command) + "\n";
  text += element("pre", {}, escaped(commands, 20000));
  text += element("h3", {}, "Model") + json_rows(manifest.model);
  text += element("h3", {}, "Data") + json_rows(manifest.data);
  text += element("h3", {}, fmt::format("Options (seed {})", manifest.seed)) +
          json_rows(manifest.options);
  return text;
}

}  // namespace trainscope::profiler
