// A line for the first tensor that differs, a table of those most over their limits.
#include "cli/verbs/compare_numerics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/bundle/reader.h"
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

Json tensor_json(const ComparedTensor& tensor, const Trace& a, const Trace& b) {
  const TraceRow& row = a.rows()[tensor.row_a];
  Json json = Json::object({{"step", row.step},
                            {"micro_batch", row.micro_batch},
                            {"phase", name_of(row.phase)},
                            {"value", tensor.key},
                            {"op", row.op},
                            {"node", row.node},
                            {"kernel", row.kernel},
                            {"l2_a", row.statistics.l2},
                            {"l2_b", b.rows()[tensor.row_b].statistics.l2},
                            {"error", tensor.relative},
                            {"limit", tensor.limit},
                            {"error_a", optional_json(tensor.error_a)},
                            {"error_b", optional_json(tensor.error_b)},
                            {"verdict", name_of(tensor.verdict)}});
  if (const auto& elements = tensor.elements) {
    json.set("largest_difference", elements->largest);
    json.set("cosine", elements->cosine);
    json.set("ulp_median", elements->ulp_median);
    json.set("ulp_99", elements->ulp_99);
    json.set("sign_flips", elements->sign_flips);
  }
  return json;
}

std::string error_text(const ComparedTensor& tensor) {
  switch (tensor.verdict) {
    case profiler::TensorVerdict::kShape:
      return "another number of elements";
    case profiler::TensorVerdict::kSpecial:
      return "NaN or infinities in one alone";
    default:
      return fmt::format("error {:.2e}, limit {:.2e}", tensor.relative, tensor.limit);
  }
}

std::string first_text(const TensorComparison& both, const Trace& a) {
  if (!both.first) return "no tensor is beyond its limit\n";
  const ComparedTensor& tensor = both.tensors[*both.first];
  const TraceRow& row = a.rows()[tensor.row_a];
  const std::string made =
      row.op.empty() ? "" : fmt::format(" of {} '{}'", row.op, printable(row.node));
  std::string text =
      fmt::format("first beyond its limit: step {}, {}, {}{}: {}\n", row.step, name_of(row.phase),
                  printable(tensor.key), made, error_text(tensor));
  if (tensor.error_a && tensor.error_b) {
    text += fmt::format("  from the truth in f64: A {:.2e}, B {:.2e}\n", *tensor.error_a,
                        *tensor.error_b);
  }
  return text;
}

double rank(const ComparedTensor& tensor) {
  const double over = tensor.over_limit();
  const bool has_number = tensor.limit > 0.0 && std::isfinite(over);
  return profiler::is_fault(tensor.verdict) && !has_number ? 1e300 : over;
}

std::string table_text(const TensorComparison& both, const Trace& a, std::size_t top) {
  std::vector<const ComparedTensor*> rows;
  for (const ComparedTensor& tensor : both.tensors) rows.push_back(&tensor);
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const ComparedTensor* tensor) { return rank(*tensor); });
  rows.resize(std::min(top, rows.size()));
  std::string text = fmt::format("{:>6} {:<9} {:>10} {:>10} {:>10}  {:<8} {}\n", "step", "phase",
                                 "error", "limit", "over", "verdict", "value");
  for (const ComparedTensor* tensor : rows) {
    const TraceRow& row = a.rows()[tensor->row_a];
    text += fmt::format("{:>6} {:<9} {:>10.2e} {:>10.2e} {:>10.3g}  {:<8} {}\n", row.step,
                        name_of(row.phase), tensor->relative, tensor->limit, tensor->over_limit(),
                        name_of(tensor->verdict), printable(tensor->key));
  }
  return text;
}

std::string producer_text(const Trace& trace) {
  const profiler::TraceHeader& header = trace.header();
  return fmt::format("{} {} ({})", printable(header.producer), printable(header.version),
                     printable(header.mode));
}

}  // namespace

std::optional<Trace> find_trace(const std::string& path) {
  const Folder folder = Folder::open(path);
  if (folder.has_file(profiler::kTraceHeaderFile)) return Trace::open(folder);
  if (!folder.has_file(kRunManifestFile)) {  // another engine's recorder made it
    if (!folder.has_folder(kRunNumericsFolder)) return std::nullopt;
    return Trace::open(folder.enter(kRunNumericsFolder));
  }
  const RunReader run = RunReader::open(folder);
  const std::optional<Folder> trace = run.numerics(std::ssize(run.manifest().sessions));
  if (!trace || !trace->has_file(profiler::kTraceHeaderFile)) return std::nullopt;
  return Trace::open(*trace);
}

Outcome compare_numerics(const Trace& a, const Trace& b, std::size_t top) {
  const TensorComparison both = compare_tensors(a, b);
  Json tensors = Json::array();
  for (const ComparedTensor& tensor : both.tensors) tensors.push_back(tensor_json(tensor, a, b));
  Json facts = Json::object({{"steps", Json::list(both.steps)},
                             {"paired", both.tensors.size()},
                             {"faults", both.faults()},
                             {"measured", both.measured},
                             {"only_a", Json::list(both.only_a)},
                             {"only_b", Json::list(both.only_b)},
                             {"accounted", both.accounted}});
  facts.set("first", both.first ? tensor_json(both.tensors[*both.first], a, b) : Json());
  facts.set("tensors", std::move(tensors));
  std::vector<std::string> steps;
  for (const std::int64_t step : both.steps) steps.push_back(std::to_string(step));
  std::string text = fmt::format(
      "tensors of A, {}, and B, {}\nsteps {}: {} tensors in both, {} in A alone, {} in B alone, of "
      "which {} have a fate\n",
      producer_text(a), producer_text(b), join(steps, ", "), both.tensors.size(),
      both.only_a.size(), both.only_b.size(), both.accounted);
  if (!both.measured) {
    text += "neither trace has an oracle: limits are of the noise that f32 usually has\n";
  }
  text += first_text(both, a) + table_text(both, a, top);
  const int exit_code = both.first ? static_cast<int>(ErrorCode::kMismatch) : 0;
  return {.facts = std::move(facts), .text = std::move(text), .exit_code = exit_code};
}

}  // namespace trainscope
