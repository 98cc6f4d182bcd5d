// A line for the first tensor that differs of each pair, and one table.
#include "cli/compare/tensors.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "cli/compare/tensor_table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "profiler/numerics/tensor_comparison.h"

namespace trainscope {
namespace {

using profiler::ComparedTensor;
using profiler::TensorComparison;
using profiler::Trace;
using profiler::TraceRow;

Json optional_json(const std::optional<double>& number) { return number ? Json(*number) : Json(); }

Json not_finite_json(const profiler::TensorStatistics& statistics) {
  return Json::object({{"nan", statistics.nan},
                       {"positive_infinite", statistics.positive_infinite},
                       {"negative_infinite", statistics.negative_infinite}});
}

Json tensor_json(const ComparedTensor& tensor, const Trace& a) {
  const TraceRow& row = a.rows()[tensor.row_a];
  Json json = Json::object({{"step", row.step},
                            {"micro_batch", row.micro_batch},
                            {"phase", name_of(row.phase)},
                            {"value", tensor.key},
                            {"op", row.op},
                            {"node", row.node},
                            {"kernel", row.kernel},
                            {"l2_a", tensor.statistics_a.l2},
                            {"l2_b", tensor.statistics_b.l2},
                            {"not_finite_a", not_finite_json(tensor.statistics_a)},
                            {"not_finite_b", not_finite_json(tensor.statistics_b)},
                            {"error", tensor.relative},
                            {"limit", optional_json(tensor.limit)},
                            {"error_a", optional_json(tensor.error_a)},
                            {"error_b", optional_json(tensor.error_b)},
                            {"verdict", name_of(tensor.verdict)}});
  json.set("cosine", tensor.cosine);
  if (const auto& elements = tensor.elements) {
    json.set("largest_difference", elements->largest);
    json.set("ulp_median", elements->ulp_median);
    json.set("ulp_90", elements->ulp_90);
    json.set("ulp_99", elements->ulp_99);
    json.set("ulp_most", elements->ulp_most);
    json.set("sign_flips", elements->sign_flips);
  }
  if (tensor.kink_flips) json.set("kink_flips", *tensor.kink_flips);
  return json;
}

std::string bad_text(const profiler::TensorStatistics& s) {
  return fmt::format("{} NaN, {} +inf, {} -inf", s.nan, s.positive_infinite, s.negative_infinite);
}

std::string error_text(const ComparedTensor& tensor, const Trace& a, const TracePair& pair) {
  const TraceRow& row = a.rows()[tensor.row_a];
  const TraceRow& other = pair.other.rows()[tensor.row_b];
  switch (tensor.verdict) {
    case profiler::TensorVerdict::kShape:
      return fmt::format("{} elements in A, {} in {}", row.shape, other.shape, pair.name);
    case profiler::TensorVerdict::kSpecial:
      return fmt::format("A has {}; {} has {}", bad_text(tensor.statistics_a), pair.name,
                         bad_text(tensor.statistics_b));
    default:
      return fmt::format("error {:.2e}, limit {:.2e}", tensor.relative, tensor.limit.value());
  }
}

std::string first_text(const Trace& a, const TracePair& pair) {
  const TensorComparison& both = pair.both;
  if (!both.first) return "no tensor is beyond its limit\n";
  const ComparedTensor& tensor = both.tensors[*both.first];
  const TraceRow& row = a.rows()[tensor.row_a];
  const std::string made =
      row.op.empty() ? "" : fmt::format(" of {} '{}'", row.op, printable(row.node));
  std::string text =
      fmt::format("first beyond its limit: step {}, {}, {}{}: {}\n", row.step, name_of(row.phase),
                  printable(tensor.key), made, error_text(tensor, a, pair));
  if (tensor.error_a && tensor.error_b) {
    text += fmt::format("  from the truth in f64: A {:.2e}, {} {:.2e}\n", *tensor.error_a,
                        pair.name, *tensor.error_b);
  }
  return text;
}

std::string producer_text(const Trace& trace) {
  const profiler::TraceHeader& header = trace.header();
  return fmt::format("{} {} ({})", printable(header.producer), printable(header.version),
                     printable(header.mode));
}

Json trace_pair_json(const Trace& a, const TracePair& pair) {
  const TensorComparison& both = pair.both;
  Json tensors = Json::array();
  for (const ComparedTensor& tensor : both.tensors) {
    tensors.push_back(tensor_json(tensor, a));
  }
  Json facts = Json::object({{"steps", Json::list(both.steps)},
                             {"paired", both.tensors.size()},
                             {"faults", both.faults()},
                             {"measured", both.measured},
                             {"only_a", Json::list(both.only_a)},
                             {"only_b", Json::list(both.only_b)},
                             {"accounted", both.accounted}});
  facts.set("limits", limits_json(pair.limits));
  facts.set("first", both.first ? tensor_json(both.tensors[*both.first], a) : Json());
  facts.set("tensors", std::move(tensors));
  return facts;
}

std::string trace_pair_text(const Trace& a, const TracePair& pair) {
  const TensorComparison& both = pair.both;
  std::vector<std::string> steps;
  for (const std::int64_t step : both.steps) steps.push_back(std::to_string(step));
  std::string text = fmt::format(
      "and {}, {}: steps {}: {} in both, {} in A alone, {} in {} alone, of which {} have a fate\n",
      pair.name, producer_text(pair.other), join(steps, ", "), both.tensors.size(),
      both.only_a.size(), both.only_b.size(), pair.name, both.accounted);
  if (!both.measured) {
    text += "neither trace has an oracle: limits are of the noise that f32 usually has\n";
  }
  return text + limits_text(pair.limits) + first_text(a, pair);
}

}  // namespace

Outcome compare_numerics(const std::vector<TracedSide>& sides, const Invocation& invocation) {
  const Trace& a = sides.front().trace;
  const Settings& settings = invocation.settings();
  std::vector<TracePair> pairs;
  for (std::size_t i = 1; i < sides.size(); ++i) {
    const TracedSide& other = sides[i];
    TensorComparison both =
        profiler::compare_tensors(a, other.trace, 0, {.a = sides.front().name, .b = other.name});
    std::vector<StepLimits> limits = settings.on("replay")
                                         ? judge_by_replay(invocation, sides.front(), other, both)
                                         : limits_by_count(both);
    pairs.push_back({.name = other.name,
                     .other = other.trace,
                     .both = std::move(both),
                     .limits = std::move(limits)});
  }
  Outcome outcome{.facts = trace_pair_json(a, pairs.front())};
  if (pairs.size() > 1) outcome.facts.set("c", trace_pair_json(a, pairs[1]));
  outcome.text = fmt::format("tensors of A, {}\n", producer_text(a));
  for (const TracePair& pair : pairs) {
    outcome.text += trace_pair_text(a, pair);
    if (pair.both.first) outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  }
  outcome.text += tensor_table(a, pairs, static_cast<std::size_t>(settings.integer("top")));
  return outcome;
}

}  // namespace trainscope
