// What a profile is made of: spans of time on a thread, and values of counters.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>

namespace trainscope::profiler {

// Numbers are in files: they stay. Spans on one thread nest or follow each other.
enum class EventKind : std::uint16_t {
  kStep = 1,  // id: the step, from 1
  // The calls of a part of the step, one after the other; id: 0 a micro-step: forward and backward
  // of a micro-batch, 1 the update.
  kStepPart = 2,
  kBatchWait = 3,    // id: the micro-batch, from 0
  kBind = 4,         // a copy into the program's memory; id: the value
  kInitial = 5,      // the same of a first content; id: the value
  kRead = 6,         // a copy out of it; id: the value
  kCall = 7,         // id: the call
  kBodyCall = 8,     // a call of a program that a call runs; id: within that program
  kSection = 9,      // a tiled section, as the calling thread sees it; id: the section
  kWork = 11,        // a thread at its part of a region, a loop that threads share; id: the thread
  kEvaluation = 12,  // id: the step before it
  kCheckpoint = 13,  // id: the step before it
  kStart = 14,       // thread 0 wakes others for a region; id of this and the next: the thread
  kJoin = 15,        // a thread's part of a region is done, others' are not: it waits
  kIdle = 16,        // nobody has given the thread work
  kLibrary = 17,     // a library has the thread for loops of its own
  kProbe = 18,       // how fast the machine is; id: the step after it, or the last one
  kDeviceWork = 19,  // a kernel, copy or set of a device, within its call; id: the call
  // Inputs are looked up and bound; id of this and the next two: the micro-batch, or before and
  // behind all of them 0 and their number.
  kInputs = 20,
  kResults = 21,   // the loss and others are read
  kRankWait = 22,  // other ranks are waited for, and the results of all exchanged

  kLoss = 256,  // id of this and all that follow up to kBranchMisses: the step
  kLearningRate = 257,
  kResidentBytes = 258,  // memory of the process (RSS)
  kTaskClock = 259,      // processor time of all threads in the step, nanoseconds
  kMinorFaults = 260,    // in the step, as all that follow
  kMajorFaults = 261,
  kVoluntarySwitches = 262,  // of threads that waited
  kForcedSwitches = 263,     // of threads that others took the processor from
  kCycles = 264,             // of the calling thread, as all that follow
  kInstructions = 265,
  kCacheMisses = 266,
  kBranchMisses = 267,
  kCountedRows = 268,  // that the call computed, the others being masked; id: the call
  kClockSpeed = 269,   // of MachineSpeed, as the next; id as kProbe has it
  kExchangeSpeed = 270,
  kBoundBytes = 271,  // of the arena, in the profile's first step; id: a time of the plan
  // Of a device whose own library records its work, once, behind the last step; id: that step.
  kTraceLevel = 272,
  kTiedWork = 273,        // kernels, copies and sets of calls
  kOutsideWork = 274,     // ... of none: inputs, results, evaluations
  kUntiedWork = 275,      // ... of which the call is not known
  kUntimedWork = 276,     // ... without times: left out
  kDroppedRecords = 277,  // that the library had no memory for
  kTraceOverhead = 278,   // nanoseconds that the recording took, as the library tells of it
  // Nanoseconds of all processors that a hypervisor gave to others, since this was counted last or
  // a tick of the system before the step; id: the step.
  kStolenTime = 279,
  // Once behind the last step, as those from kTraceLevel on.
  kUnreadBytes = 280,      // of records that could not be read
  kRuntimeCallTime = 281,  // nanoseconds in those calls of the runtime's API that were recorded
  kDriverCallTime = 282,   // ... of the driver's, also within calls of the runtime's
  kDeviceWaitTime = 283,   // nanoseconds in which the host waited for the device
  kAllocations = 284,      // of memory of the device, or of the host's that it may read
};

constexpr bool is_counter(EventKind kind) { return static_cast<std::uint16_t>(kind) >= 256; }
// A counter that is read once after a step, whose number is its id.
constexpr bool is_of_step(EventKind kind) {
  return (is_counter(kind) && kind <= EventKind::kBranchMisses) || kind == EventKind::kStolenTime;
}
// A counter of what a device's own library recorded.
constexpr bool is_of_trace(EventKind kind) {
  return (kind >= EventKind::kTraceLevel && kind <= EventKind::kTraceOverhead) ||
         (kind >= EventKind::kUnreadBytes && kind <= EventKind::kAllocations);
}
// "step", "batch wait", "minor faults"; "unknown" for a kind that a later version has.
std::string_view name_of(EventKind kind);

// Nanoseconds are from the profile's beginning.
struct Event {
  std::int64_t begin_ns = 0;
  std::uint64_t value = 0;  // of a span its nanoseconds, of a counter the bits of a double
  std::uint32_t id = 0;
  EventKind kind = EventKind::kStep;
  std::uint16_t thread = 0;  // 0: the one that drives the steps

  std::int64_t end_ns() const {
    // A damaged file may have any value: unsigned sums are defined.
    const std::uint64_t end = static_cast<std::uint64_t>(begin_ns) + value;
    return is_counter(kind) ? begin_ns : static_cast<std::int64_t>(end);
  }
  double number() const { return std::bit_cast<double>(value); }
  bool operator==(const Event&) const = default;
};
static_assert(sizeof(Event) == 24);

}  // namespace trainscope::profiler
