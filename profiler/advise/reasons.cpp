// Sentences from the plan's record and the times of its calls.
#include "profiler/advise/reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/core/byte_count.h"
#include "engine/core/numbers.h"
#include "engine/core/text.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::profiler {
namespace {

// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += i + 1 == parts.size() ? " and " : ", ";
    text += parts[i];
  }
  return text;
}

// Those at least so large a part of the peak, and no more than that many.
constexpr double kLeastShare = 0.005;
constexpr std::size_t kNamedBuffers = 3;
constexpr std::size_t kNamedOps = 3;

std::string plural_of(BufferClass holds) {
  switch (holds) {
    case BufferClass::kParameter:
      return "parameters";
    case BufferClass::kState:
      return "states of the optimizer and model";
    case BufferClass::kConstant:
      return "constants";
    case BufferClass::kInput:
      return "inputs";
    case BufferClass::kGradient:
      return "gradients";
    case BufferClass::kActivation:
      return "activations of the forward phase";
    case BufferClass::kUpdate:
      return "results of the update";
    case BufferClass::kWorkspace:
      return "the call's workspace";
    case BufferClass::kHeld:
      return "what other micro-batches hold";
  }
  return "others";
}

std::string moment_sentence(const PlanView& plan, const MemoryPeak& peak) {
  std::string text =
      fmt::format("The most bytes are alive at time {} of {}", peak.time, plan.facts().times);
  if (peak.call != kNoRow) {
    const PlanCall& call = plan.calls[peak.call];
    text += fmt::format(", when {} '{}' of the {} phase runs", plan.op_of(call),
                        printable(plan.name_of(call)), name_of(call.phase));
  }
  return text + fmt::format(": {} of an arena of {}, whose lower bound is {}.",
                            bytes_text(peak.live_bytes), bytes_text(plan.arena().bytes),
                            bytes_text(plan.arena().lower_bound_bytes));
}

std::string classes_sentence(const MemoryPeak& peak) {
  std::vector<std::pair<std::int64_t, BufferClass>> classes;
  for (std::size_t i = 0; i < kBufferClasses; ++i) {
    classes.emplace_back(peak.bytes_of[i], static_cast<BufferClass>(i));
  }
  std::ranges::stable_sort(classes, std::ranges::greater{},
                           &std::pair<std::int64_t, BufferClass>::first);
  std::vector<std::string> parts;
  for (const auto& [bytes, holds] : classes) {
    if (peak.share(bytes) < kLeastShare) continue;
    parts.push_back(fmt::format("{:.1f} % {} ({})", 100.0 * peak.share(bytes), plural_of(holds),
                                bytes_text(bytes)));
  }
  return fmt::format("Of these bytes are {}.", listed(parts));
}

std::string buffers_sentence(const PlanView& plan, const MemoryPeak& peak) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kNamedBuffers, peak.alive.size()); ++i) {
    const PlanBuffer& buffer = plan.buffers[peak.alive[i]];
    parts.push_back(fmt::format("'{}' ({}, {}, alive from time {} to {})",
                                printable(plan.text(buffer.label)), name_of(buffer.holds),
                                bytes_text(buffer.bytes), buffer.begin, buffer.end));
  }
  return fmt::format("The largest of the {} buffers are {}.", peak.alive.size(), listed(parts));
}

std::string phases_sentence(const Breakdown& table) {
  std::vector<std::string> parts;
  for (const BreakdownRow& row : table.rows) {
    if (table.share(row) < kLeastShare) continue;
    parts.push_back(fmt::format("{:.1f} % {}", 100.0 * table.share(row),
                                row.is_call ? "in the " + row.name + " phase" : row.name));
  }
  return fmt::format("A step takes {:.3f} ms (median of {}): {}.", median(table.step_ns) / 1e6,
                     table.steps, listed(parts));
}

std::string roof_text(const BreakdownRow& row) {
  return row.roof() == 0.0 ? "" : fmt::format(" at {:.0f} % of its roof", 100.0 * row.roof());
}

std::string ops_sentence(const Breakdown& table) {
  std::vector<std::string> parts;
  for (const BreakdownRow& row : table.rows) {
    if (!row.is_call || parts.size() == kNamedOps) continue;
    parts.push_back(fmt::format("{} {:.1f} % in {:.0f} calls{}", row.name, 100.0 * table.share(row),
                                column_of(table, row, "count"), roof_text(row)));
  }
  return fmt::format("Of the ops {} take the most.", listed(parts));
}

// The call that takes longest in all steps; kNoRow: none ran.
std::uint32_t longest_call(const StepTimes& times) {
  std::uint32_t longest = kNoRow;
  std::int64_t most = 0;
  for (std::uint32_t i = 0; i < times.calls.size(); ++i) {
    const std::int64_t ns = times.calls[i].sum();
    if (ns > most) longest = i;
    most = std::max(most, ns);
  }
  return longest;
}

std::string call_sentence(const StepTimes& times, const PlanView& plan, const Machine* machine) {
  const std::uint32_t id = longest_call(times);
  if (id == kNoRow) return "No call was recorded.";
  const PlanCall& call = plan.calls[id];
  const CallTime& time = times.calls[id];
  const double seconds = 1e-9 * static_cast<double>(time.sum()) / static_cast<double>(time.runs);
  std::string text = fmt::format(
      "The call that takes longest is {} of the node '{}' ({} phase, kernel {}), {:.4f} ms",
      plan.op_of(call).empty() ? name_of(call.kind) : plan.op_of(call),
      printable(onnx_node_of(plan, call)), name_of(call.phase), kernel_of(plan, call),
      1e3 * seconds);
  if (machine == nullptr) {
    return text +
           "; how far that is from what the machine reaches is not known until `trainscope doctor "
           "--roofs --out FILE` has measured it for --machine FILE.";
  }
  const RoofReason reason = roof_reason(*machine, plan, call, seconds);
  text += fmt::format(": {:.0f} % of its roof, which is {}", 100.0 * reason.share, reason.bound);
  return text + (reason.reason.empty() ? "." : ", because " + reason.reason + ".");
}

}  // namespace

std::vector<std::string> peak_sentences(const PlanView& plan, const MemoryPeak& peak) {
  return {moment_sentence(plan, peak), classes_sentence(peak), buffers_sentence(plan, peak)};
}

std::vector<std::string> time_sentences(const StepTimes& times, const PlanView& plan,
                                        const Machine* machine) {
  Breakdown phases = breakdown(times, plan, GroupBy::kPhase);
  Breakdown ops = breakdown(times, plan, GroupBy::kOp, {.machine = machine});
  sort_rows(phases, "ms");
  sort_rows(ops, "ms");
  return {phases_sentence(phases), ops_sentence(ops), call_sentence(times, plan, machine)};
}

}  // namespace trainscope::profiler
