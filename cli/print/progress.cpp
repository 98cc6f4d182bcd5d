// Drawing of progress.
#include "cli/print/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/flags/invocation.h"
#include "engine/core/byte_count.h"

namespace trainscope {
namespace {

constexpr auto kBarInterval = std::chrono::milliseconds(100);
constexpr auto kLineInterval = std::chrono::seconds(5);
constexpr std::size_t kDefaultColumns = 120;
constexpr std::size_t kLeastCells = 8;
constexpr std::size_t kMostCells = 24;
constexpr std::size_t kBarEnds = 3;  // "[", "]" and a space
constexpr double kNewShare = 0.1;    // of a new step in the mean

std::size_t terminal_columns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

void write_error(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string rate_text(double per_second) {
  if (per_second >= 10000.0) return fmt::format("{:.0f}k", per_second / 1000.0);
  return fmt::format("{:.{}f}", per_second, per_second < 10.0 ? 1 : 0);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// As many cells as there is room for before the line; nothing when there is hardly any.
std::string bar_text(const StepRecord& step, std::int64_t total_steps, std::size_t room) {
  if (room < kLeastCells + kBarEnds) return {};
  const std::size_t cells = std::min(room - kBarEnds, kMostCells);
  const double share =
      static_cast<double>(step.step) / static_cast<double>(std::max<std::int64_t>(total_steps, 1));
  const auto done = std::min(cells, static_cast<std::size_t>(share * static_cast<double>(cells)));
  return fmt::format("[{}{}] ", std::string(done, '#'), std::string(cells - done, '.'));
}

struct Fact {
  std::string text;
  int gives_way;  // where there is no room for all, the facts with the largest number go first
};

// In the order of the line; rates and ETA once there is a mean step.
std::vector<Fact> progress_facts(const StepRecord& step, const ProgressFacts& facts) {
  std::vector<Fact> line{
      {fmt::format("step {}/{}  loss {:.4f}", step.step, facts.total_steps, step.loss), 0},
      {fmt::format("  lr {:.2e}", step.learning_rate), 4}};
  const bool has_mean = facts.mean_step_ms > 0.0;
  const auto rate = [&facts](std::int64_t count) {
    return rate_text(static_cast<double>(count) * 1000.0 / facts.mean_step_ms);
  };
  if (has_mean) line.push_back({fmt::format("  {} samples/s", rate(step.samples)), 3});
  if (has_mean && step.tokens > 0) {
    line.push_back({fmt::format("  {} tokens/s", rate(step.tokens)), 5});
  }
  line.push_back({fmt::format("  arena {} of {}", bytes_text(facts.used_bytes),
                              bytes_text(facts.planned_bytes)),
                  2});
  if (has_mean) {
    const auto left = static_cast<double>(facts.total_steps - step.step);
    line.push_back({fmt::format("  ETA {}", duration_text(left * facts.mean_step_ms / 1000.0)), 1});
  }
  return line;
}

}  // namespace

ProgressStyle progress_style(const Settings& settings) {
  const std::string& wanted = settings.text("progress");
  const LogOptions log = log_options(settings);
  if (wanted == "none" || log.level > LogLevel::kInfo) return ProgressStyle::kNone;
  if (log.format == LogFormat::kJson) return ProgressStyle::kJson;
  const bool bar = wanted == "auto" && isatty(STDERR_FILENO) != 0;
  return bar ? ProgressStyle::kBar : ProgressStyle::kPlain;
}

void StepTimes::add(double milliseconds) {
  if (!warm_) {
    warm_ = true;
    return;
  }
  mean_ms_ = mean_ms_ == 0.0 ? milliseconds : mean_ms_ + kNewShare * (milliseconds - mean_ms_);
}

std::string progress_line(const StepRecord& step, const ProgressFacts& facts, std::size_t columns) {
  std::vector<Fact> line = progress_facts(step, facts);
  std::size_t size = 0;
  for (const Fact& fact : line) size += fact.text.size();
  while (size > columns && line.size() > 1) {
    const auto least = std::ranges::max_element(line, {}, &Fact::gives_way);
    size -= least->text.size();
    line.erase(least);
  }
  std::string text;
  for (const Fact& fact : line) text += fact.text;
  return text;
}

ProgressPrinter::~ProgressPrinter() { leave_bar(); }

void ProgressPrinter::session_begin(const SessionFacts& facts) {
  total_steps_ = facts.total_steps;
  planned_bytes_ = facts.arena_bytes;
}

bool ProgressPrinter::is_due(const StepRecord& step) const {
  if (!has_shown_ || step.step == total_steps_) return true;
  const auto since = Clock::now() - shown_;
  return style_ == ProgressStyle::kBar ? since >= kBarInterval : since >= kLineInterval;
}

void ProgressPrinter::step_end(const StepRecord& step, std::int64_t used_bytes) {
  times_.add(step.step_ms);
  if (style_ == ProgressStyle::kNone || !is_due(step)) return;
  shown_ = Clock::now();
  has_shown_ = true;
  const ProgressFacts facts = {.total_steps = total_steps_,
                               .planned_bytes = planned_bytes_,
                               .used_bytes = used_bytes,
                               .mean_step_ms = times_.mean_ms()};
  if (style_ == ProgressStyle::kBar) return draw_bar(step, facts);
  const std::string line = progress_line(step, facts);
  if (style_ == ProgressStyle::kJson) {
    Logger({.format = LogFormat::kJson}).info("{}", line);
  } else {
    write_error(line + "\n");
  }
}

void ProgressPrinter::draw_bar(const StepRecord& step, const ProgressFacts& facts) {
  const std::size_t columns = terminal_columns() - 1;
  const std::size_t least = kLeastCells + kBarEnds;
  const std::string line = progress_line(step, facts, columns - std::min(columns, least));
  const std::size_t room = columns - std::min(columns, line.size());
  std::string text = bar_text(step, total_steps_, room) + line;
  text.resize(std::min(text.size(), columns));
  write_error(fmt::format("\r{}\033[K", text));
  bar_is_up_ = true;
}

// The bar stays where it is, and what follows begins on a line of its own.
void ProgressPrinter::leave_bar() {
  if (bar_is_up_) write_error("\n");
  bar_is_up_ = false;
}

void ProgressPrinter::steps_end() { leave_bar(); }
void ProgressPrinter::session_failed(const Error& /*error*/) { leave_bar(); }

// A line takes the bar's place; the next step draws it again.
void ProgressPrinter::log(LogLevel level, std::string_view message) {
  if (!log_.enabled(level)) return;
  if (bar_is_up_) write_error("\r\033[K");
  bar_is_up_ = false;
  log_.write(level, message);
}

}  // namespace trainscope
