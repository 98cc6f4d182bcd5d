// Progress of a run on standard error: a bar on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/flags/settings.h"
#include "engine/bundle/format.h"
#include "engine/core/log.h"
#include "engine/run/run_events.h"

namespace trainscope {

// kJson: the plain lines as messages of --log-format json.
enum class ProgressStyle : std::uint8_t { kBar, kPlain, kJson, kNone };

// --progress, the log's level and format, and whether standard error is a terminal.
ProgressStyle progress_style(const Settings& settings);

// Averages that forget slowly; the first step is left out, because it warms up.
class StepTimes {
 public:
  void add(double milliseconds);
  // 0 before the second step.
  double mean_ms() const { return mean_ms_; }

 private:
  bool warm_ = false;
  double mean_ms_ = 0.0;
};

// What a progress line says besides the step itself.
struct ProgressFacts {
  std::int64_t total_steps = 0;
  std::int64_t planned_bytes = 0;
  std::int64_t used_bytes = 0;
  double mean_step_ms = 0.0;
};
// "step 120/2000  loss 2.3412  lr 1.0e-03  96 samples/s  ..." without a bar. What does not fit into
// `columns` gives way: tokens/s first, then lr, samples/s, arena, ETA.
std::string progress_line(const StepRecord& step, const ProgressFacts& facts,
                          std::size_t columns = std::string::npos);

// A listener that shows the steps, and hands log lines to the logger.
class ProgressPrinter final : public RunEvents {
 public:
  // Only the messages of `log` are shown that its level lets through.
  ProgressPrinter(ProgressStyle style, Logger& log) : style_(style), log_(log) {}
  ~ProgressPrinter() override;
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void session_begin(const SessionFacts& facts) override;
  void step_end(const StepRecord& step, std::int64_t used_bytes) override;
  void steps_end() override;
  void session_failed(const Error& error) override;
  void log(LogLevel level, std::string_view message) override;

 private:
  bool is_due(const StepRecord& step) const;
  void draw_bar(const StepRecord& step, const ProgressFacts& facts);
  void leave_bar();

  using Clock = std::chrono::steady_clock;
  ProgressStyle style_;
  Logger& log_;
  std::int64_t total_steps_ = 0;
  std::int64_t planned_bytes_ = 0;
  StepTimes times_;
  Clock::time_point shown_;
  bool has_shown_ = false;
  bool bar_is_up_ = false;
};

}  // namespace trainscope
