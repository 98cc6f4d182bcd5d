// What a device's own library records of its work: kernels, copies and sets with their times, as
// records of that library, and which call of the engine each is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/api/kernel.h"

namespace trainscope {

// How much is recorded: each level has what those before it have.
enum class TraceLevel : std::uint8_t {
  kOff,
  kWork,      // kernels, copies and sets
  kLaunches,  // calls of the API that launch them; waits; what the recording itself takes
  kAll,       // all other calls of the API, too; allocations
};

struct TraceWishes {
  TraceLevel level = TraceLevel::kWork;
  // Whether work that is launched by itself is tied to the call that launches it, at any level. Of
  // replayed lists every piece is tied without.
  bool ties_launches = false;
  // Calls of the API are recorded all, not only those that launch: where a library keeps no record
  // of single ones.
  bool has_all_api_calls = false;
};

// In place of a call: the engine is at none.
inline constexpr std::uint32_t kOutsideTracedCalls = 0xFFFFFFFE;

// Takes what a tracer has, from the thread that asks for it.
class TraceReader {
 public:
  // A piece of work was captured into a list by this call, or at none.
  virtual void captured(std::uint64_t node, std::uint32_t call) = 0;
  // A list that is replayed has a copy of each piece.
  virtual void cloned(std::uint64_t original, std::uint64_t clone) = 0;
  // Whole records one behind the other, as the library lays them out; `bytes` lie there until this
  // function has returned. Times are nanoseconds of the system's monotonic clock.
  virtual void records(std::span<const std::byte> bytes) = 0;
  // So many records were lost since the last time: there was no memory for them.
  virtual void dropped(std::uint64_t records) = 0;

 protected:
  ~TraceReader() = default;
};

// Belongs to a back end, and lives as long. Its functions are called by the thread that gives the
// device its work. A failure is a normal state: other profilers may have the library, or the
// driver refuses it; its message is the reason, in one line.
class DeviceTracer {
 public:
  DeviceTracer() = default;
  DeviceTracer(const DeviceTracer&) = delete;
  DeviceTracer& operator=(const DeviceTracer&) = delete;

  // What the device is given from now on is of this call, or kOutsideTracedCalls. Also where
  // nothing is recorded: a list may be captured before.
  virtual void at_call(std::uint32_t call) = 0;

  // Work is recorded from here on, and up to there.
  virtual DeviceStatus start(const TraceWishes& wishes) = 0;
  virtual DeviceStatus stop() = 0;

  // Gives all that is there: of work that has ended, so wait for the device before. Where the
  // library fails, what it has given until then.
  virtual DeviceStatus take(TraceReader& reader) = 0;

 protected:
  ~DeviceTracer() = default;
};

}  // namespace trainscope
