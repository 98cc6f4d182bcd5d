// Records the numbers of some steps of a session: each tensor that they make goes into a trace.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/core/log.h"
#include "engine/exec/executor.h"
#include "engine/run/numerics/traced_values.h"
#include "engine/run/numerics/unfused_step.h"
#include "engine/run/numerics/wanted_rows.h"
#include "engine/run/run_events.h"
#include "engine/run/train_request.h"
#include "profiler/numerics/trace.h"

namespace trainscope {

// The steps that are recorded where none are named: 1, 2, 5, 10, 20, 50 ... and the last.
bool is_recorded_by_default(std::int64_t step, std::int64_t last);

// The run whose numbers are recorded.
struct RecordedRun {
  std::shared_ptr<Executor> executor;
  OnnxModel model;
  CompileOptions compile;  // as for training
  BatchAxes batch_axes;
  profiler::TraceHeader header;
  Folder folder;  // for the trace: there is none in it yet
  std::shared_ptr<Logger> log;
};

// Listens to the execution of the recorded steps alone; these run one call at a time. What cannot
// be written throws kIo.
class NumericsRecorder final : public RunEvents, public ExecutionEvents {
 public:
  // Throws what build_stages() throws, for requests of all values. An oracle that cannot be
  // computed is a warning.
  NumericsRecorder(NumericsRequest request, RecordedRun run);

  void session_begin(const SessionFacts& facts) override;
  void step_begin(std::int64_t step) override;
  void step_part_begin(StepPart part, const StepPlace& at) override;
  void step_part_end(StepPart part, const StepPlace& at) override;
  void step_end(const StepRecord& step, std::int64_t used_bytes) override;
  void session_end(RunStatus status) override;
  void session_failed(const Error& error) override;

  void call_end(const CallEvent& event) override;
  void copy_end(const CopyEvent& event) override;
  bool one_at_a_time() const override { return unfused_ == nullptr; }

 private:
  // A tensor that batch tiles make slice by slice.
  struct Unfinished {
    profiler::TensorSummarizer summarizer;
    std::vector<std::byte> elements = {};  // where the whole tensor is wanted
    std::int64_t done = 0;
  };
  bool wants(std::int64_t step) const;
  void record_output(CallId call, std::size_t output);
  void record_kept(ValueId value, profiler::TracePhase phase);
  void record_states();
  void read_states();
  int threads() const { return run_.compile.lower.threads; }
  bool computes_again() const { return unfused_ != nullptr || oracle_due_; }
  void compute_again();
  void record_oracle();
  void record_unfused(ValueId id, const Tensor& tensor);
  double divisor_of(const TracedAs& as) const;
  void finish_row(profiler::TraceRow row, profiler::TensorSummary summary, double divisor);
  profiler::TraceRow row_of(const Graph& graph, ValueId value, const TracedAs& as);
  void keep_elements(const profiler::TraceRow& row, const TensorType& type,
                     std::vector<std::byte> bytes, double divisor);
  void write_elements();
  void close();

  const NumericsRequest request_;
  const RecordedRun run_;
  const std::shared_ptr<Executor> executor_;
  std::unique_ptr<const UnfusedStep> unfused_;  // null but for requests of all values
  bool oracle_due_;                             // until the first recorded step
  WantedRows wanted_;
  profiler::TraceWriter writer_;
  std::optional<TracedValues> values_;
  std::int64_t last_ = 0;      // step of the session
  std::int64_t step_ = 0;      // that is recorded; 0: none
  std::int64_t recorded_ = 0;  // steps
  bool in_part_ = false;       // else calls are not the step's: it runs again to find what failed
  double loss_scale_ = 1.0;    // of the micro-step's gradients
  std::int64_t micro_batch_ = 0;
  std::int64_t order_ = 0;
  std::map<ValueId, Unfinished> unfinished_;
  std::vector<std::byte> piece_;
  // What the micro-step starts from, by name, where it is computed once more.
  std::map<std::string, Tensor> given_;
  std::map<std::string, Tensor> batch_;
  std::vector<std::pair<std::string, Tensor>> elements_;  // of the step, by key
  Subscription listens_;  // last: it ends before what rows are written to
};

}  // namespace trainscope
