// Which call of the plan each kernel, copy and set of a device is of.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "profiler/cupti/activity_decoder.h"

namespace trainscope::profiler {

inline constexpr std::uint32_t kNoCall = 0xFFFFFFFF;        // not known
inline constexpr std::uint32_t kOutsideCalls = 0xFFFFFFFE;  // what a program does beside its calls

enum class DeviceActivityKind : std::uint8_t { kKernel, kCopy, kSet, kGraph };

struct DeviceActivity {
  DeviceActivityKind kind = DeviceActivityKind::kKernel;
  std::uint32_t call = kNoCall;  // of the plan, or one of the two above
  std::int64_t begin_ns = 0;     // of the profile's clock
  std::int64_t end_ns = 0;
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint64_t graph_node = 0;  // 0: launched by itself
  std::int64_t bytes = 0;        // of a copy or set
  std::string name = {};         // of a kernel, mangled
};

// What of a trace is not as it should be; a report says so.
struct ActivityLosses {
  std::uint64_t dropped = 0;  // records that the library had no memory for
  std::uint64_t untimed = 0;  // work without times
  std::uint64_t untied = 0;   // work of no call that is known
  // Of a record of a kind that is not known, and of all that are behind it in its buffer.
  std::uint64_t unread_bytes = 0;
};

// What the host did for the device, as far as records of it were asked for.
struct HostActivity {
  std::int64_t runtime_ns = 0;    // in calls of the runtime's API
  std::int64_t driver_ns = 0;     // ... of the driver's, also within those
  std::int64_t wait_ns = 0;       // until the device had done what it was given
  std::uint64_t allocations = 0;  // of memory of the device, or of the host's that it may read
};

// Takes buffers in any order. An external correlation ties what one API call launches to what the
// program pushed before it, kOutsideCalls where it is at no call; of a CUDA graph all work has the
// graph's correlation, so a node is tied by its id, which the program notes as it captures the
// graph and as the driver clones it.
class ActivityJoin final : public ActivitySink {
 public:
  // `external_kind`: under which the program pushes calls. `offset_ns`: from the library's clock to
  // the profile's.
  ActivityJoin(std::uint32_t external_kind, std::int64_t offset_ns)
      : external_kind_(external_kind), offset_ns_(offset_ns) {}

  // Of records that are read from now on.
  void set_offset(std::int64_t offset_ns) { offset_ns_ = offset_ns; }
  // False: the program pushes nothing, since all its calls are in graphs: what is launched by
  // itself is outside of them.
  void set_launches_tied(bool tied) { launches_are_tied_ = tied; }
  // A node that the driver makes as it clones a graph, beside all calls, may be known already.
  void note_graph_node(std::uint64_t node, std::uint32_t call);
  void note_graph_clone(std::uint64_t original, std::uint64_t clone);
  void note_dropped(std::uint64_t records) { losses_.dropped += records; }
  void note_unread(std::uint64_t bytes) { losses_.unread_bytes += bytes; }

  void kernel(const KernelRecord& record) override;
  void copy(const CopyRecord& record) override;
  void set(const SetRecord& record) override;
  void graph(const GraphRecord& record) override;
  void api_call(const ApiRecord& record) override;
  void external_correlation(const ExternalCorrelationRecord& record) override;
  void synchronization(const SynchronizationRecord& record) override;
  void overhead(const OverheadRecord& record) override;
  void memory(const MemoryRecord& record) override;

  // All work since the last time, by begin, tied as far as it is known now: ask when the buffers of
  // a window have been flushed. Counts what is not tied.
  std::vector<DeviceActivity> take();
  const ActivityLosses& losses() const { return losses_; }
  std::uint64_t tied() const { return tied_; }                 // pieces of work with a call, so far
  std::uint64_t outside() const { return outside_; }           // of no call, as is known
  bool has_correlations() const { return has_correlations_; }  // external ones, of any kind
  std::int64_t overhead_ns() const { return overhead_ns_; }    // that the tracing itself took
  const HostActivity& host() const { return host_; }

 private:
  void add(DeviceActivity work, std::uint64_t begin, std::uint64_t end);
  std::uint32_t call_of(const DeviceActivity& work) const;

  std::uint32_t external_kind_;
  std::int64_t offset_ns_;
  bool launches_are_tied_ = true;
  bool has_correlations_ = false;
  std::vector<DeviceActivity> waiting_;
  // Of correlations since the last take, and since the one before: what still ran then comes later.
  std::unordered_map<std::uint32_t, std::uint32_t> calls_;
  std::unordered_map<std::uint32_t, std::uint32_t> earlier_calls_;
  std::unordered_map<std::uint64_t, std::uint32_t> calls_of_nodes_;
  ActivityLosses losses_;
  std::uint64_t tied_ = 0;
  std::uint64_t outside_ = 0;
  std::int64_t overhead_ns_ = 0;
  HostActivity host_;
};

}  // namespace trainscope::profiler
