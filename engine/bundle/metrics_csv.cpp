// Metrics as a table.
#include "engine/bundle/metrics_csv.h"

#include <array>
#include <string_view>

namespace trainscope {
namespace {

// Keys of the lines of metrics.jsonl; none of their values needs quotes.
constexpr std::array<std::string_view, 11> kColumns = {
    "kind",    "step",    "loss",   "accuracy", "learning_rate", "gradient_norm",
    "step_ms", "samples", "tokens", "examples", "milliseconds"};

std::string cell(const Json* value) {
  if (value == nullptr) return {};
  if (value->is_string()) return value->as_string();
  // NaN and infinity are null in JSON's text, and no numbers of a table either.
  const std::string text = value->dump();
  return text == "null" ? std::string() : text;
}

std::string row(const Json& record) {
  std::string text;
  for (std::string_view column : kColumns) {
    if (column != kColumns.front()) text += ',';
    text += cell(record.find(column));
  }
  return text;
}

}  // namespace

std::string metrics_csv_header() {
  std::string text;
  for (std::string_view column : kColumns) {
    if (column != kColumns.front()) text += ',';
    text += column;
  }
  return text + "\n";
}

std::string metrics_csv_row(const StepRecord& step) { return row(to_json(step)); }

std::string metrics_csv_row(const EvaluationRecord& evaluation) { return row(to_json(evaluation)); }

std::string metrics_csv(const Metrics& metrics) {
  std::string text = metrics_csv_header();
  auto evaluation = metrics.evaluations.begin();
  const auto add_evaluations_before = [&](std::int64_t step) {
    for (; evaluation != metrics.evaluations.end() && evaluation->step < step; ++evaluation) {
      text += metrics_csv_row(*evaluation) + "\n";
    }
  };
  for (const StepRecord& step : metrics.steps) {
    add_evaluations_before(step.step);
    text += metrics_csv_row(step) + "\n";
  }
  if (!metrics.evaluations.empty()) {
    add_evaluations_before(metrics.evaluations.back().step + 1);
  }
  return text;
}

}  // namespace trainscope
