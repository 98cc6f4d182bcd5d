// What each thread did in the profiled steps, and why it had nothing to do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bundle/plan_record.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

enum class ThreadUse : std::uint8_t {
  kWork,      // at a call, or at its part of a region
  kStart,     // wakes the others
  kJoin,      // waits for the others' parts
  kIdle,      // nobody has given it work
  kLibrary,   // a library has it
  kCopy,      // of inputs and results, and what else is done for them
  kData,      // waits for the batch
  kDispatch,  // between the calls of a part: gives one after the other to its kernel or the device
  kUnnamed,   // nothing recorded
};
inline constexpr std::size_t kThreadUses = 9;
// "work", "start", "join", "idle", "library", "copy", "data", "dispatch", "unnamed".
std::string_view name_of(ThreadUse use);

struct ThreadTime {
  std::array<std::int64_t, kThreadUses> ns = {};  // in all steps; they add up to these
  std::int64_t of(ThreadUse use) const { return ns[static_cast<std::size_t>(use)]; }
};

// What the driving thread was at while others had nothing to do: an op that it computes alone, a
// copy, a wait for data.
struct IdleCause {
  std::string name;
  std::int64_t ns = 0;  // of all idle threads together
};

struct ThreadTimes {
  std::vector<ThreadTime> threads = {};
  std::vector<IdleCause> idle = {};  // the most first
  std::int64_t total_ns = 0;         // of the steps: of each thread
  std::int64_t steps = 0;

  // What all threads work, of what they would if each worked as long as the one that does most.
  double balance() const;
  double share(std::int64_t ns) const {
    return total_ns == 0 ? 0.0 : static_cast<double>(ns) / static_cast<double>(total_ns);
  }
};

// Throws kBadInput for spans that do not nest, and for calls that the plan has not.
ThreadTimes thread_times(const EventView& events, const PlanView& plan);

}  // namespace trainscope::profiler
