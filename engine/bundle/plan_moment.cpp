// Questions about one time of a plan, each a pass over its buffers or operands.
#include "engine/bundle/plan_moment.h"

#include <algorithm>
#include <cstddef>

namespace trainscope {
namespace {

bool is_persistent(const PlanBuffer& buffer) {
  return buffer.holds == BufferClass::kParameter || buffer.holds == BufferClass::kState ||
         buffer.holds == BufferClass::kConstant;
}

}  // namespace

std::vector<std::uint32_t> alive_at(const PlanView& plan, std::uint32_t time) {
  std::vector<std::uint32_t> alive;
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    const bool is_there = buffer.begin <= time && time < buffer.end;
    if (is_there && is_in_arena(buffer)) alive.push_back(i);
  }
  std::ranges::sort(alive, {}, [&plan](std::uint32_t i) { return plan.buffers[i].offset; });
  return alive;
}

bool is_made_by_node(const PlanView& plan, const PlanBuffer& buffer) {
  return std::ranges::all_of(rows_of(plan.members, buffer.values), [&plan](std::uint32_t value) {
    return plan.values[value].kind == PlanValueKind::kNode;
  });
}

std::array<std::int64_t, kBufferClasses> bytes_by_class(const PlanView& plan,
                                                        std::span<const std::uint32_t> buffers) {
  std::array<std::int64_t, kBufferClasses> bytes = {};
  for (const std::uint32_t i : buffers) {
    bytes[static_cast<std::size_t>(plan.buffers[i].holds)] += plan.buffers[i].bytes;
  }
  return bytes;
}

MemoryPeak memory_peak(const PlanView& plan) {
  MemoryPeak peak;
  const std::vector<std::int64_t> live = live_bytes(plan);
  if (live.empty()) return peak;
  const auto highest = std::ranges::max_element(live);
  peak.time = static_cast<std::uint32_t>(highest - live.begin());
  peak.live_bytes = *highest;
  const auto call = std::ranges::find(plan.calls, peak.time, &PlanCall::time);
  if (call != plan.calls.end()) peak.call = static_cast<std::uint32_t>(call - plan.calls.begin());
  peak.alive = alive_at(plan, peak.time);
  peak.bytes_of = bytes_by_class(plan, peak.alive);
  std::ranges::sort(peak.alive);
  std::ranges::stable_sort(peak.alive, std::ranges::greater{},
                           [&plan](std::uint32_t i) { return plan.buffers[i].bytes; });
  return peak;
}

namespace {

// Ends the times of the gaps that the buffer, which is not alive at the time, has bytes of.
void bound_gaps(const PlanBuffer& buffer, std::uint32_t time, std::vector<PlanGap>& gaps) {
  const std::int64_t last_byte = buffer.offset + buffer.bytes;
  const auto first = std::ranges::partition_point(
      gaps, [&](const PlanGap& gap) { return gap.offset + gap.bytes <= buffer.offset; });
  for (auto gap = first; gap != gaps.end() && gap->offset < last_byte; ++gap) {
    if (buffer.end <= time) {
      gap->begin = std::max(gap->begin, buffer.end);
    } else {
      gap->end = std::min(gap->end, buffer.begin);
    }
  }
}

}  // namespace

std::vector<PlanGap> gaps_at(const PlanView& plan, std::uint32_t time) {
  std::vector<PlanGap> gaps;
  std::int64_t end = 0;  // of what is used so far
  const auto add_until = [&](std::int64_t offset) {
    if (offset <= end) return;
    gaps.push_back({.offset = end, .bytes = offset - end, .end = plan.facts().times});
  };
  for (const std::uint32_t i : alive_at(plan, time)) {
    const PlanBuffer& buffer = plan.buffers[i];
    add_until(buffer.offset);
    end = std::max(end, buffer.offset + buffer.bytes);
  }
  add_until(plan.arena().bytes);
  for (const PlanBuffer& buffer : plan.buffers) {
    const bool is_there = buffer.begin <= time && time < buffer.end;
    const bool takes_bytes = buffer.bytes > 0 && buffer.end > buffer.begin;
    if (!is_there && takes_bytes && is_in_arena(buffer)) bound_gaps(buffer, time, gaps);
  }
  return gaps;
}

std::vector<std::vector<std::uint32_t>> buffer_uses(const PlanView& plan) {
  std::vector<std::vector<std::uint32_t>> uses(plan.buffers.size());
  for (const PlanCall& call : plan.calls) {
    if (call.workspace != kNoRow) uses[call.workspace].push_back(call.time);
    for (const RowRange range : {call.inputs, call.outputs}) {
      for (const PlanOperand& operand : rows_of(plan.operands, range)) {
        if (operand.buffer != kNoRow) uses[operand.buffer].push_back(call.time);
      }
    }
  }
  for (std::vector<std::uint32_t>& times : uses) {
    std::ranges::sort(times);
    const auto rest = std::ranges::unique(times);
    times.erase(rest.begin(), rest.end());
  }
  return uses;
}

std::vector<IdleWait> idle_waits(const PlanView& plan) {
  std::vector<IdleWait> waits;
  const std::vector<std::vector<std::uint32_t>> uses = buffer_uses(plan);
  for (std::uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan.buffers[i];
    if (is_persistent(buffer) || !is_in_arena(buffer)) continue;
    IdleWait longest{.buffer = i, .from = 0, .to = 1};
    for (std::size_t k = 1; k < uses[i].size(); ++k) {
      const IdleWait wait{.buffer = i, .from = uses[i][k - 1], .to = uses[i][k]};
      if (wait.calls() > longest.calls()) longest = wait;
    }
    if (longest.calls() <= 0) continue;
    longest.byte_calls = buffer.bytes * longest.calls();
    waits.push_back(longest);
  }
  std::ranges::stable_sort(waits, std::ranges::greater(), &IdleWait::byte_calls);
  return waits;
}

}  // namespace trainscope
