// Work waits until it is asked for, because its correlation may be in a later buffer.
#include "profiler/cupti/activity_join.h"

#include <algorithm>

namespace trainscope::profiler {
namespace {

// 0 where there was no memory for the times.
template <typename Record>
std::int64_t nanoseconds_of(const Record& record) {
  return record.end > record.begin ? static_cast<std::int64_t>(record.end - record.begin) : 0;
}

}  // namespace

void ActivityJoin::note_graph_node(std::uint64_t node, std::uint32_t call) {
  if (call == kOutsideCalls) {
    calls_of_nodes_.try_emplace(node, call);
  } else {
    calls_of_nodes_[node] = call;
  }
}

void ActivityJoin::note_graph_clone(std::uint64_t original, std::uint64_t clone) {
  const auto found = calls_of_nodes_.find(original);
  if (found == calls_of_nodes_.end()) return;
  const std::uint32_t call = found->second;  // adding may move what `found` points to
  calls_of_nodes_[clone] = call;
}

void ActivityJoin::add(DeviceActivity work, std::uint64_t begin, std::uint64_t end) {
  if (begin == 0 || end < begin) {
    ++losses_.untimed;
    return;
  }
  work.begin_ns = static_cast<std::int64_t>(begin) + offset_ns_;
  work.end_ns = static_cast<std::int64_t>(end) + offset_ns_;
  waiting_.push_back(std::move(work));
}

void ActivityJoin::kernel(const KernelRecord& record) {
  add({.kind = DeviceActivityKind::kKernel,
       .device = record.device,
       .stream = record.stream,
       .correlation = record.correlation,
       .graph_node = record.graph_node,
       .name = record.name == nullptr ? "" : record.name},
      record.begin, record.end);
}

void ActivityJoin::copy(const CopyRecord& record) {
  add({.kind = DeviceActivityKind::kCopy,
       .device = record.device,
       .stream = record.stream,
       .correlation = record.correlation,
       .graph_node = record.graph_node,
       .bytes = static_cast<std::int64_t>(record.bytes)},
      record.begin, record.end);
}

void ActivityJoin::set(const SetRecord& record) {
  add({.kind = DeviceActivityKind::kSet,
       .device = record.device,
       .stream = record.stream,
       .correlation = record.correlation,
       .graph_node = record.graph_node,
       .bytes = static_cast<std::int64_t>(record.bytes)},
      record.begin, record.end);
}

void ActivityJoin::graph(const GraphRecord& record) {
  add({.kind = DeviceActivityKind::kGraph,
       .device = record.device,
       .stream = record.stream,
       .correlation = record.correlation},
      record.begin, record.end);
}

void ActivityJoin::external_correlation(const ExternalCorrelationRecord& record) {
  has_correlations_ = true;
  if (record.external_kind != external_kind_ || record.external >= kNoCall) return;
  calls_[record.correlation] = static_cast<std::uint32_t>(record.external);
}

void ActivityJoin::overhead(const OverheadRecord& record) {
  overhead_ns_ += nanoseconds_of(record);
}

void ActivityJoin::api_call(const ApiRecord& record) {
  const bool is_driver = record.kind == ActivityKind::kDriverCall;
  (is_driver ? host_.driver_ns : host_.runtime_ns) += nanoseconds_of(record);
}

void ActivityJoin::synchronization(const SynchronizationRecord& record) {
  if (record.type != kStreamWaitsForEvent) host_.wait_ns += nanoseconds_of(record);
}

void ActivityJoin::memory(const MemoryRecord& record) {
  if (record.operation == kAllocation) ++host_.allocations;
}

std::uint32_t ActivityJoin::call_of(const DeviceActivity& work) const {
  if (work.graph_node != 0) {
    const auto found = calls_of_nodes_.find(work.graph_node);
    return found == calls_of_nodes_.end() ? kNoCall : found->second;
  }
  for (const auto* calls : {&calls_, &earlier_calls_}) {
    const auto found = calls->find(work.correlation);
    if (found != calls->end()) return found->second;
  }
  return launches_are_tied_ ? kNoCall : kOutsideCalls;
}

std::vector<DeviceActivity> ActivityJoin::take() {
  std::vector<DeviceActivity> all = std::exchange(waiting_, {});
  for (DeviceActivity& work : all) {
    work.call = call_of(work);
    const bool is_whole_graph = work.kind == DeviceActivityKind::kGraph;
    if (is_whole_graph) continue;
    ++(work.call == kNoCall ? losses_.untied : work.call == kOutsideCalls ? outside_ : tied_);
  }
  // The driver gives no correlation twice.
  earlier_calls_ = std::exchange(calls_, {});
  std::ranges::stable_sort(all, {}, &DeviceActivity::begin_ns);
  return all;
}

}  // namespace trainscope::profiler
