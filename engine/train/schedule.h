// Learning rates as pure functions of the step.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/json.h"

namespace trainscope {

// Both rise linearly over the warm-up steps; then the rate stays, or falls to the minimum along
// half a cosine.
enum class ScheduleKind : std::uint8_t { kConstant, kCosine };

// "constant", "cosine".
std::string_view name_of(ScheduleKind kind);
// Throws kUsage with the nearest name.
ScheduleKind parse_schedule_kind(std::string_view text);

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 1e-3;
  double min_learning_rate = 0.0;  // of kCosine, reached at the last step
  std::int64_t warmup_steps = 0;   // W
  std::int64_t total_steps = 0;    // N; only kCosine uses it
};

// Throws kUsage when a number is out of its range.
void check_schedule(const Schedule& schedule);

// The rate of step t, counted from 1: learning_rate * t / W for t <= W, then for kCosine
// minimum + (learning_rate - minimum) * (1 + cos(pi * (t - W) / (N - W))) / 2, from N on the
// minimum.
double learning_rate_at(const Schedule& schedule, std::int64_t step);

// As checkpoints keep it.
Json schedule_json(const Schedule& schedule);

}  // namespace trainscope
