// Measures how long each call of a program takes, and where the rest of a step goes.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/exec/executor.h"

namespace trainscope {

// What a node of a step took.
struct OpTime {
  std::string value;  // the first that it makes
  std::string op;
  std::string kernel;
  Phase phase = Phase::kForward;
  std::int64_t flops = 0;  // as the op's cost rule counts them
  std::int64_t bytes = 0;  // read and written, each operand once
  Cost done = {};          // by the kernel: it may transform, pad, pack and copy
  double seconds = 0.0;
};

// Seconds of one step on the calling thread; the parts are all of it.
struct StepSplit {
  double before = 0.0;  // the first call: the batch is made and copied
  double kernels = 0.0;
  double between = 0.0;
  double after = 0.0;  // the last one: what the step returns is read

  double total() const { return before + kernels + between + after; }
};

// Keeps the last kSamples times of each call of the calling thread, of batch tiles the first one's;
// measuring allocates nothing. Of a device that queues work a time is from the launch of the call
// to its end, some microseconds more than its kernels take.
class OpTimes final : public ExecutionEvents {
 public:
  explicit OpTimes(std::shared_ptr<const Program> program);

  void call_begin(const CallEvent& event) override;
  void call_end(const CallEvent& event) override;

  // Around a step.
  void begin_step();
  StepSplit end_step();

  // The median of each node's times, by NodeId; 0 for views and for what never ran.
  std::vector<double> seconds() const;
  // In the order of the calls.
  std::vector<OpTime> rows() const;
  // As a file for CompileOptions::costs.
  void write(const std::filesystem::path& path) const;

 private:
  static constexpr std::size_t kSamples = 31;
  struct Samples {
    std::array<float, kSamples> seconds = {};
    std::size_t count = 0;  // of all times measured
  };

  const std::shared_ptr<const Program> program_;
  static bool is_seen(const CallEvent& event) {
    return event.thread == 0 && event.within == kNoCall;
  }

  void wait_for_device() const;

  std::vector<Samples> samples_;                 // by CallId
  std::chrono::steady_clock::time_point start_;  // of a call
  std::chrono::steady_clock::time_point end_;    // of the one before it, or the step's beginning
  bool is_first_ = true;
  StepSplit step_;
};

// Seconds of each node, by NodeId, before there are data: each call by itself, on inputs of zeros.
std::vector<double> seconds_alone(const std::shared_ptr<const Program>& program);
// ... as a file for CompileOptions::costs.
void write_seconds_alone(const std::filesystem::path& path,
                         const std::shared_ptr<const Program>& program);

}  // namespace trainscope
