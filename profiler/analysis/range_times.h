// Where the time of any range of a profile went: sums over the driving thread's spans in it. Where
// a device's own library recorded the calls, a moment at which the device is at one belongs to it,
// as in step_times.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiler/analysis/breakdown.h"
#include "profiler/analysis/device_time.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

struct RangeRow {
  std::string name = {};
  bool is_call = true;  // false: a copy, a wait
  std::int64_t ns = 0;  // within the range
  std::int64_t spans = 0;
};

struct RangeTimes {
  std::vector<RangeRow> rows = {};  // the longest first, those that take equally long by name
  std::int64_t range_ns = 0;  // without what lies between steps that were not profiled together
  std::int64_t spans_ns = 0;  // of all rows; the rest is dispatch, join waits, or has no span
  bool is_of_device = false;  // calls ran on a device of its own

  double share(const RangeRow& row) const {
    return range_ns == 0 ? 0.0 : static_cast<double>(row.ns) / static_cast<double>(range_ns);
  }
};

// Of nanoseconds [begin, end) of the profile's clock; has a plan of its own. `device`, which has to
// be there as long, is of the same profile.
class RangeSum {
 public:
  RangeSum(const PlanView& plan, const DeviceTime& device, std::int64_t begin_ns,
           std::int64_t end_ns);

  // Whether a thread's events are to be added: the driving thread's, and a device's.
  bool takes(std::uint16_t thread) const { return thread == 0 || !device_.is_empty(); }
  // Of these threads, in any order. Only calls, copies and waits count, which do not nest.
  void add(const Event& event);
  // Whole steps, in their order. Between two whose numbers do not follow each other nothing was
  // profiled.
  void add_step(std::uint32_t step, std::int64_t begin_ns, std::int64_t end_ns);
  RangeTimes by(GroupBy by) const;

 private:
  struct Sum {
    std::int64_t ns = 0;
    std::int64_t spans = 0;
  };

  PlanView plan_;
  const DeviceTime& device_;
  std::int64_t begin_ns_;
  std::int64_t end_ns_;
  std::vector<Sum> calls_;  // names are looked up once a call
  std::map<EventKind, Sum> others_;
  struct LastStep {
    std::uint32_t step = 0;
    std::int64_t end_ns = 0;
  };
  std::optional<LastStep> last_step_ = {};
  std::int64_t not_profiled_ns_ = 0;  // within the range
};

RangeTimes range_times(const EventView& events, const PlanView& plan, std::int64_t begin_ns,
                       std::int64_t end_ns, GroupBy by);

}  // namespace trainscope::profiler
