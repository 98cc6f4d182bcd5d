// Sums by call first, then by what calls belong to.
#include "profiler/analysis/range_times.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trainscope::profiler {
namespace {

bool is_copy_or_wait(EventKind kind) {
  return kind == EventKind::kBind || kind == EventKind::kInitial || kind == EventKind::kRead ||
         kind == EventKind::kBatchWait || kind == EventKind::kRankWait;
}

}  // namespace

RangeSum::RangeSum(const PlanView& plan, const DeviceTime& device, std::int64_t begin_ns,
                   std::int64_t end_ns)
    : plan_(plan),
      device_(device),
      begin_ns_(begin_ns),
      end_ns_(std::max(begin_ns, end_ns)),
      calls_(plan.calls.size()) {
  device_.each(begin_ns_, end_ns_, [this](std::uint32_t call, std::int64_t ns) {
    if (call < calls_.size()) calls_[call].ns += ns;
  });
}

void RangeSum::add(const Event& event) {
  const bool is_call = event.kind == EventKind::kCall && event.id < calls_.size();
  if (!is_call && !is_copy_or_wait(event.kind)) return;
  if (begin_ns_ == end_ns_ || event.begin_ns >= end_ns_ || event.end_ns() <= begin_ns_) return;
  Sum& sum = is_call ? calls_[event.id] : others_[event.kind];
  ++sum.spans;
  const bool is_of_device = is_call && event.thread != 0;
  if (is_of_device) return;  // its time is the device's
  const std::int64_t from = std::max(event.begin_ns, begin_ns_);
  const std::int64_t to = std::min(event.end_ns(), end_ns_);
  sum.ns += to - from - device_.within(from, to);
}

void RangeSum::add_step(std::uint32_t step, std::int64_t begin_ns, std::int64_t end_ns) {
  if (last_step_ && last_step_->step + std::uint64_t{1} != step) {
    const std::int64_t gap_begin = std::max(begin_ns_, last_step_->end_ns);
    not_profiled_ns_ += std::max<std::int64_t>(0, std::min(end_ns_, begin_ns) - gap_begin);
  }
  last_step_ = {.step = step, .end_ns = end_ns};
}

RangeTimes RangeSum::by(GroupBy by) const {
  RangeTimes times{.range_ns = end_ns_ - begin_ns_ - not_profiled_ns_,
                   .is_of_device = !device_.is_empty()};
  std::unordered_map<std::string, std::size_t> row_of;
  for (std::uint32_t id = 0; id < calls_.size(); ++id) {
    if (calls_[id].spans == 0) continue;
    const std::string name = group_name(plan_, id, by);
    const auto [entry, is_new] = row_of.try_emplace(name, times.rows.size());
    if (is_new) times.rows.push_back({.name = name});
    times.rows[entry->second].ns += calls_[id].ns;
    times.rows[entry->second].spans += calls_[id].spans;
  }
  for (const auto& [kind, sum] : others_) {
    times.rows.push_back(
        {.name = std::string(name_of(kind)), .is_call = false, .ns = sum.ns, .spans = sum.spans});
  }
  for (const RangeRow& row : times.rows) times.spans_ns += row.ns;
  std::ranges::stable_sort(times.rows, [](const RangeRow& a, const RangeRow& b) {
    return a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
  });
  return times;
}

RangeTimes range_times(const EventView& events, const PlanView& plan, std::int64_t begin_ns,
                       std::int64_t end_ns, GroupBy by) {
  const DeviceTime device(events);
  RangeSum sum(plan, device, begin_ns, end_ns);
  std::vector<Event> steps;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (!sum.takes(chunk.thread[i]) || is_counter(chunk.kind[i])) continue;
      sum.add(chunk.event(i));
      if (chunk.kind[i] == EventKind::kStep) steps.push_back(chunk.event(i));
    }
  }
  std::ranges::sort(steps, {}, &Event::begin_ns);
  for (const Event& step : steps) sum.add_step(step.id, step.begin_ns, step.end_ns());
  return sum.by(by);
}

}  // namespace trainscope::profiler
