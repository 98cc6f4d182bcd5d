// What the library of a device records of its work in the steps that are profiled, as events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/log.h"
#include "engine/exec/executor.h"
#include "kernels/api/device_tracer.h"
#include "profiler/cupti/activity_join.h"
#include "profiler/cupti/device_events.h"
#include "profiler/record/recorder.h"

namespace trainscope {

// Which call each piece of work is of is noted from the beginning, since steps are captured before
// they are profiled. What the library refuses is no error of the run: it is said once, and the
// profile goes on without the device's work.
class DeviceTrace final : private TraceReader {
 public:
  // Null, after a line that says why, where nothing records the work of the executor's device, or
  // the level is kOff. `may_launch_singly`: somebody wants the calls of some steps, which are then
  // given to the device by themselves though it replays others.
  static std::unique_ptr<DeviceTrace> make(TraceLevel level, bool may_launch_singly,
                                           std::shared_ptr<Executor> executor,
                                           std::shared_ptr<Logger> log);

  // Work is recorded from here on, and after an end() once more; what was given before is waited
  // for. Events have threads from `first_thread` on, and times of the recorder.
  void begin(std::uint16_t first_thread, const profiler::Recorder& recorder);
  // Of what was not taken yet. Waits for the device: the library keeps back what has not ended.
  std::vector<profiler::Event> take();
  // Until the device has done all that it was given: what it does is of this step, not of the next.
  // Throws what it failed with.
  void wait();
  // Waits for the device, and records no more.
  std::vector<profiler::Event> end();

  // A step of the session has taken so long, whether its work was recorded or not.
  void note_step(double milliseconds);

  std::uint64_t dropped() const { return join_.losses().dropped; }
  // The counters that is_of_trace() has.
  void count(profiler::Recorder& recorder, std::uint32_t step) const;
  // One line: how much was recorded at which level, what is missing, and what it cost.
  std::string report() const;

 private:
  DeviceTrace(const TraceWishes& wishes, DeviceTracer& tracer, std::shared_ptr<Executor> executor,
              std::shared_ptr<Logger> log);

  void captured(std::uint64_t node, std::uint32_t call) override {
    join_.note_graph_node(node, call);
  }
  void cloned(std::uint64_t original, std::uint64_t clone) override {
    join_.note_graph_clone(original, clone);
  }
  void records(std::span<const std::byte> bytes) override;
  void dropped(std::uint64_t records) override { join_.note_dropped(records); }

  void hear(const DeviceStatus& status);
  DeviceStatus drain();
  void read();
  void record_all_calls_if_needed();

  DeviceTracer& tracer_;
  std::shared_ptr<Executor> executor_;
  std::shared_ptr<Logger> log_;
  TraceWishes wishes_;
  bool is_on_ = false;
  bool is_first_step_ = true;        // of the session: it is captured
  std::vector<double> recorded_ms_;  // of the other steps
  std::vector<double> plain_ms_;
  bool has_complained_ = false;   // of the library
  bool has_told_unread_ = false;  // of records of its
  profiler::ActivityJoin join_;
  std::unique_ptr<profiler::DeviceEvents> events_;  // null: nothing was recorded yet
};

}  // namespace trainscope
