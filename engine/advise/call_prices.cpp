// Signatures of calls, and the ratio between their times in a step and by themselves.
#include "engine/advise/call_prices.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/numbers.h"
#include "engine/record_plan.h"

namespace trainscope {
namespace {

// What is measured by itself finds its operands in the caches, but is never so much quicker or
// slower than in a step unless something else ran.
constexpr double kLeastRatio = 0.5;
constexpr double kMostRatio = 3.0;

void add_operands(const PlanView& plan, RowRange operands, std::string& text) {
  for (const PlanOperand& operand : rows_of(plan.operands, operands)) {
    text += '|';
    if (operand.value == kNoRow) continue;
    text += plan.text(operand.dtype);
    for (const std::int64_t dim : rows_of(plan.dims, operand.shape)) {
      text += ',' + std::to_string(dim);
    }
  }
}

std::vector<double> seconds_by_step(const profiler::CallTime& call) {
  std::vector<double> seconds = call.ns.doubles();
  for (double& each : seconds) each *= 1e-9;
  return seconds;
}

// Of batch tiles the driving thread runs the first one's, while others run the rest.
bool is_of_driver(const PlanCall& call) { return call.tile == kNoRow || call.tile == 0; }

}  // namespace

std::string signature_of(const PlanView& plan, const PlanCall& call) {
  std::string text(plan.op_of(call));
  text += call.tile == kNoRow ? "|" : "|tile|";
  text += name_of(call.kind);
  text += '|';
  text += plan.text(call.kernel);
  text += '|' + std::to_string(plan.facts().threads);
  add_operands(plan, call.inputs, text);
  text += "|>";
  add_operands(plan, call.outputs, text);
  return text;
}

std::int64_t runs_in_step(const PlanCall& call, std::int64_t micro_batches) {
  return call.phase == PlanPhase::kUpdate ? 1 : micro_batches;
}

CallPrices::CallPrices(std::shared_ptr<const Compiled> base, const PlanView& plan,
                       const profiler::StepTimes& times, std::int64_t micro_batches)
    : base_(std::move(base)) {
  CHECK_INVARIANT(plan.calls.size() == base_->program.calls.size());
  std::vector<double> steps;
  for (const profiler::StepTime& step : times.steps) {
    steps.push_back(1e-9 * static_cast<double>(step.ns()));
  }
  other_seconds_ = median(std::move(steps));
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    if (!is_of_driver(call)) continue;
    const double of_step = median(seconds_by_step(times.calls[i]));
    other_seconds_ -= of_step;
    std::string signature = signature_of(plan, call);
    Known& known = known_[signature];
    if (known.calls == 0) {
      known.example = CallId(static_cast<std::int32_t>(i));
      by_op_[std::string(plan.op_of(call))].push_back(std::move(signature));
    }
    ++known.calls;
    known.seconds += of_step / static_cast<double>(runs_in_step(call, micro_batches));
  }
  for (auto& [signature, known] : known_) known.seconds /= static_cast<double>(known.calls);
  double longest = 0.0;
  for (const auto& [op, signatures] : by_op_) {
    double seconds = 0.0;
    for (const std::string& each : signatures) {
      seconds += known_.at(each).seconds * static_cast<double>(known_.at(each).calls);
    }
    if (seconds > longest) longest_op_ = op;
    longest = std::max(longest, seconds);
  }
  other_seconds_ = std::max(0.0, other_seconds_);
}

std::optional<double> CallPrices::seconds_alone(const Program& program, const Call& call,
                                                const std::string& signature,
                                                std::int64_t compacted_rows) {
  const auto [found, is_new] =
      alone_.try_emplace(signature + '|' + std::to_string(compacted_rows), std::nullopt);
  if (!is_new || call.kernel == nullptr || !program.device) return found->second;
  try {
    found->second =
        time_alone(program, call, *call.kernel, {.compacted_rows = compacted_rows}).median_seconds;
  } catch (const Error&) {
    // A kernel that cannot do the plain numbers that it is given; its time is modelled then.
  }
  return found->second;
}

double CallPrices::ratio_of(const std::string& op) {
  const auto known = ratios_.find(op);
  if (known != ratios_.end()) return known->second;
  Ratio ratio;
  const auto signatures = by_op_.find(op);
  if (signatures != by_op_.end()) {
    for (const std::string& signature : signatures->second) {
      const Known& in_steps = known_.at(signature);
      const Program& program = base_->program;
      const auto alone = seconds_alone(program, program.call(in_steps.example), signature, -1);
      if (!alone) continue;
      ratio.in_steps += in_steps.seconds * static_cast<double>(in_steps.calls);
      ratio.alone += *alone * static_cast<double>(in_steps.calls);
    }
  }
  // An op that the steps lack is taken to be like the others: like the one that takes longest at
  // least.
  if (ratio.alone == 0.0 && op != longest_op_) ratio_of(longest_op_);
  all_.in_steps += ratio.in_steps;
  all_.alone += ratio.alone;
  const Ratio& used = ratio.alone > 0.0 ? ratio : all_;
  const double value =
      used.alone > 0.0 ? std::clamp(used.in_steps / used.alone, kLeastRatio, kMostRatio) : 1.0;
  return ratios_.emplace(op, value).first->second;
}

StepForecast CallPrices::forecast(const Compiled& variant, const CompileOptions& options,
                                  std::int64_t micro_batches, std::int64_t compacted_rows) {
  const PlanRecord record = plan_record(variant);
  const PlanView plan = view_of(record);
  // By node; what has been charged to one of its calls is not to the next.
  std::vector<double> modelled = step_seconds(variant.program, options.costs, options.machine);
  StepForecast forecast{.seconds = other_seconds_};
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    options.watch.check();
    const PlanCall& row = plan.calls[i];
    if (!is_of_driver(row)) continue;
    const auto runs = static_cast<double>(runs_in_step(row, micro_batches));
    const std::string signature = signature_of(plan, row);
    const Call& call = variant.program.calls[i];
    const bool compacts = is_compacted(variant.program, call);
    const auto known = known_.find(signature);
    if (known != known_.end() && !compacts) {
      forecast.known_seconds += runs * known->second.seconds;
      continue;
    }
    const auto alone =
        seconds_alone(variant.program, call, signature, compacts ? compacted_rows : -1);
    const double ratio = ratio_of(std::string(plan.op_of(row)));
    if (alone) {
      forecast.alone_seconds += runs * ratio * *alone;
    } else if (call.kind != CallKind::kStateCopy && call.node != kNoNode) {
      double& of_node = modelled[static_cast<std::size_t>(call.node)];
      forecast.modelled_seconds += runs * std::exchange(of_node, 0.0);
    }
  }
  forecast.seconds += forecast.known_seconds + forecast.alone_seconds + forecast.modelled_seconds;
  return forecast;
}

}  // namespace trainscope
