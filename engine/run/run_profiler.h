// Profiles some steps of a session: what they do goes to a recorder, and from it to events.cols.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/core/file.h"
#include "engine/core/log.h"
#include "engine/exec/executor.h"
#include "engine/run/bound_bytes.h"
#include "engine/run/device_trace.h"
#include "engine/run/run_events.h"
#include "engine/run/train_request.h"
#include "profiler/record/hardware_counters.h"
#include "profiler/record/machine_probe.h"
#include "profiler/record/recorder.h"
#include "profiler/record/system_counters.h"
#include "profiler/store/event_file.h"

namespace trainscope {

// Before and behind the steps that are profiled it listens to no execution, and there is no
// recorder; between them, where they are repeated, it does not listen either. What cannot be
// written throws kIo. Of a device that computes by itself it does not ask
// for calls, so that steps are replayed as without a profile: the device's own trace has them.
class RunProfiler final : public RunEvents, public ExecutionEvents {
 public:
  // `file` is not there yet. `may_launch_singly`: somebody else wants the calls of some steps.
  RunProfiler(const ProfileSteps& steps, std::shared_ptr<Executor> executor, FolderEntry file,
              std::shared_ptr<Logger> log,
              profiler::TickSource clock = profiler::best_tick_source(),
              bool may_launch_singly = false);

  void session_begin(const SessionFacts& facts) override;
  void step_begin(std::int64_t step) override;
  void step_end(const StepRecord& step, std::int64_t used_bytes) override;
  void batch_wait_begin(const StepPlace& at) override;
  void batch_wait_end(const StepPlace& at, double milliseconds) override;
  void inputs_begin(const StepPlace& at) override;
  void inputs_end(const StepPlace& at) override;
  void results_begin(const StepPlace& at) override;
  void results_end(const StepPlace& at) override;
  void rank_wait_begin(const StepPlace& at) override;
  void rank_wait_end(const StepPlace& at) override;
  void evaluation_begin(std::int64_t step) override;
  void evaluation_end(const EvaluationRecord& evaluation) override;
  void evaluation_stopped(std::int64_t step) override;
  void checkpoint_begin(std::int64_t step) override;
  void checkpoint_end(std::int64_t step, const std::filesystem::path& folder) override;
  void session_end(RunStatus status) override;
  void session_failed(const Error& error) override;

  void part_failed(StepPart part) override;
  void call_begin(const CallEvent& event) override;
  void call_end(const CallEvent& event) override;
  void section_begin(std::size_t section) override;
  void section_end(std::size_t section) override;
  void copy_begin(const CopyEvent& event) override;
  void copy_end(const CopyEvent& event) override;
  void thread_state(int thread, ThreadState state) override;
  bool wants_calls() const override { return !is_queued_; }
  bool wants_threads() const override { return !is_queued_; }
  void part_begin(StepPart part) override;
  void part_end(StepPart part) override;
  void memory_bound(std::int64_t time, std::span<const BufferId> buffers) override;
  void memory_freed(std::int64_t time, std::span<const BufferId> buffers) override;
  bool wants_memory() const override { return bound_.has_value(); }

 private:
  // What there is while steps are profiled.
  struct Open {
    // A lane for each thread of the host; those of a device are known when its work comes.
    Open(int lanes, Fork fork, const FolderEntry& entry, profiler::TickSource clock);

    profiler::Recorder recorder;
    AppendFile file;
    profiler::EventWriter writer;
    profiler::HardwareCounters hardware;
    profiler::MachineProbe probe;
    std::int64_t probed_ns = 0;       // when it measured last; 0: not yet
    profiler::SystemCounters system;  // as the step began
    profiler::StolenTime stolen;
    std::optional<profiler::HardwareValues> processor;
    std::int64_t written_ns = 0;  // when events were written last
    std::uint64_t events = 0;     // written
  };

  void begin(profiler::EventKind kind, std::int64_t id);
  void end();
  void open();
  void listen(std::int64_t step);
  void pause();
  void close();
  void find_counted_rows();
  void count_rows(const CallEvent& event);
  void count_bound(std::int64_t time);
  void count_step(const StepRecord& step);
  void probe_machine(std::int64_t step);
  void write();
  void write_if_many(std::size_t many);
  void write_work(std::vector<profiler::Event> work);
  std::uint64_t left_out() const;

  ProfileSteps steps_;
  std::shared_ptr<Executor> executor_;
  FolderEntry entry_;
  std::shared_ptr<Logger> log_;
  profiler::TickSource clock_;
  bool may_launch_singly_;
  bool is_queued_;  // calls are not computed by threads of the host
  bool asked_for_trace_ = false;
  std::unique_ptr<DeviceTrace> trace_;  // null: there is none
  std::int64_t session_end_ = 0;        // its last step, if it is not stopped
  std::int64_t first_ = 0;              // that it profiled; 0: none yet
  std::int64_t last_ = 0;
  std::int64_t count_ = 0;              // of the steps that it profiled
  std::vector<std::uint8_t> in_state_;  // by thread: whether a span of its state is open
  // By call: how many of its rows count; kNoValue of one that computes all.
  std::vector<ValueId> counted_rows_;
  bool reads_rows_ = false;  // a copy that is told of is this profiler's own
  static constexpr std::int64_t kNoTime = -1;
  std::optional<BoundBytes> bound_;         // in the first step that is profiled
  std::int64_t uncounted_bound_ = kNoTime;  // from when on the plan has what it counts now
  std::unique_ptr<Open> open_;
  Subscription listens_;  // last: it ends before what events are written to
};

}  // namespace trainscope
