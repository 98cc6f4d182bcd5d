// Where the time of the profiled steps went.
//
// The steps of the driving thread are divided: each moment belongs to one call, or to a copy, a
// wait for a batch, a wait for other threads at a tiled section, or to nothing that was recorded.
// All of them add up to the steps, to the nanosecond. Where a device's own library recorded the
// calls, a moment at which the device is at one belongs to it, whatever the driving thread is at.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/analysis/machine_difference.h"
#include "profiler/analysis/step_ns.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

// What a moment outside of calls is.
enum class OtherTime : std::uint8_t { kCopy, kBatchWait, kJoinWait, kDispatch, kUnrecorded };
inline constexpr std::size_t kOtherTimes = 5;
// "copy", "batch wait", "join wait", "dispatch" (between the calls of a part), "nothing recorded".
std::string_view name_of(OtherTime other);
// What the time of a span is that nothing inside of it has; none: of a span within a call, or of
// one that is no part of a step.
std::optional<OtherTime> own_time(EventKind kind);

struct StepTime {
  std::uint32_t step = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::array<std::int64_t, kOtherTimes> other_ns = {};

  std::int64_t ns() const { return end_ns - begin_ns; }
};

struct CallTime {
  StepNs ns;                 // by step: on the driving thread, or the device
  std::int64_t busy_ns = 0;  // in all steps, on any thread
  std::int64_t runs = 0;     // in all steps
  // The share of its rows that it computed: those that are masked were left out, as the profile
  // tells; 1 of a call that leaves none out.
  double rows = 1.0;

  std::int64_t sum() const { return ns.sum(); }
};

struct StepTimes {
  std::vector<StepTime> steps;  // whole ones, in their order
  std::vector<CallTime> calls;  // by CallId
  std::int64_t total_ns = 0;    // of all steps
  bool are_of_device = false;   // calls: the driving thread has none
  // Of several runs behind each other: how many steps each has; empty: they are of one run.
  std::vector<std::size_t> run_steps = {};
  std::vector<RunMachine> machines = {};  // of each run
};

// Throws kBadInput for spans that do not nest, for calls that the plan has not, and for so many
// steps that the times of all calls in each take more than 1 GiB.
StepTimes step_times(const EventView& events, const PlanView& plan);

// The steps of another run of the same calls behind these.
void append(StepTimes& times, const StepTimes& more);

}  // namespace trainscope::profiler
