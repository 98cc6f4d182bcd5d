// Learning rates as pure functions of the step.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/core/json.h"

namespace trainscope {

// All but kOneCycle rise linearly over the warm-up steps and go on from the learning rate.
enum class ScheduleKind : std::uint8_t {
  kConstant,
  kLinear,      // to the minimum in a straight line
  kCosine,      // to the minimum along half a cosine (torch: CosineAnnealingLR)
  kPolynomial,  // to the minimum along a power (torch: PolynomialLR)
  kStep,        // times gamma every step_size steps (torch: StepLR)
  kOneCycle,    // up and down along half cosines (torch: OneCycleLR, two phases)
};
inline constexpr ScheduleKind kScheduleKinds[] = {
    ScheduleKind::kConstant,   ScheduleKind::kLinear, ScheduleKind::kCosine,
    ScheduleKind::kPolynomial, ScheduleKind::kStep,   ScheduleKind::kOneCycle};

// "constant", "linear", "cosine", "polynomial", "step", "one_cycle".
std::string_view name_of(ScheduleKind kind);
// Throws kUsage with the nearest name.
ScheduleKind parse_schedule_kind(std::string_view text);

// Whether a kind ends at min_learning_rate, at step total_steps.
constexpr bool falls_to_minimum(ScheduleKind kind) {
  return kind == ScheduleKind::kLinear || kind == ScheduleKind::kCosine ||
         kind == ScheduleKind::kPolynomial;
}

struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double learning_rate = 1e-3;     // L; of kOneCycle the highest
  double min_learning_rate = 0.0;  // M, where the kind falls to it
  std::int64_t warmup_steps = 0;   // W
  std::int64_t total_steps = 0;    // N; not of kConstant and kStep
  double power = 1.0;              // kPolynomial
  std::int64_t step_size = 0;      // kStep
  double gamma = 0.1;              // kStep
  // kOneCycle: share of the steps that rise, L / first rate, first rate / last rate.
  double rising_share = 0.3;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
};

// Throws kUsage when a number is out of its range.
void check_schedule(const Schedule& schedule);

// The rate of step t, counted from 1. L * t / W for t <= W, and then with x = (t - W) / (N - W),
// at most 1:
//   kConstant    L
//   kLinear      M + (L - M) * (1 - x)
//   kPolynomial  M + (L - M) * (1 - x)^power
//   kCosine      M + (L - M) * (1 + cos(pi * x)) / 2
//   kStep        L * gamma^floor((t - W - 1) / step_size)
// kOneCycle, with s = t - 1 and e = rising_share * N - 1, begins at B = L / div_factor and ends at
// E = B / final_div_factor: B + (L - B) * (1 - cos(pi * s / e)) / 2 for s <= e, then
// E + (L - E) * (1 + cos(pi * (s - e) / (N - 1 - e))) / 2.
double learning_rate_at(const Schedule& schedule, std::int64_t step);

// As checkpoints keep it: the kind and what it depends on.
Json schedule_json(const Schedule& schedule);

}  // namespace trainscope
