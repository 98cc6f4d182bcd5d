// Learning-rate schedules: constant and cosine, with linear warm-up.
#include "engine/train/schedule.h"

#include <array>
#include <cmath>
#include <span>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::array kKinds = {ScheduleKind::kConstant, ScheduleKind::kCosine};
constexpr double kPi = 3.141592653589793238462643383279;

bool is_rate(double value) { return std::isfinite(value) && value >= 0.0; }

}  // namespace

std::string_view name_of(ScheduleKind kind) {
  return kind == ScheduleKind::kConstant ? "constant" : "cosine";
}

ScheduleKind parse_schedule_kind(std::string_view text) {
  std::array<std::string_view, kKinds.size()> names;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    names[i] = name_of(kKinds[i]);
    if (text == names[i]) return kKinds[i];
  }
  throw Error(ErrorCode::kUsage, fmt::format("unknown schedule '{}': expected one of {}",
                                             printable(text), join(names, ", ")))
      .hint(nearest_hint(text, names));
}

void check_schedule(const Schedule& schedule) {
  require(is_rate(schedule.learning_rate), ErrorCode::kUsage,
          "the learning rate is {}: expected a finite number of 0 or more", schedule.learning_rate);
  require(schedule.warmup_steps >= 0, ErrorCode::kUsage, "{} warm-up steps: expected 0 or more",
          schedule.warmup_steps);
  if (schedule.kind != ScheduleKind::kCosine) return;
  require(
      is_rate(schedule.min_learning_rate) && schedule.min_learning_rate <= schedule.learning_rate,
      ErrorCode::kUsage, "the minimal learning rate is {}: expected 0 to the learning rate {}",
      schedule.min_learning_rate, schedule.learning_rate);
  require(schedule.total_steps > 0 && schedule.warmup_steps <= schedule.total_steps,
          ErrorCode::kUsage, "{} warm-up steps do not fit a cosine schedule of {} steps",
          schedule.warmup_steps, schedule.total_steps);
}

double learning_rate_at(const Schedule& schedule, std::int64_t step) {
  CHECK_INVARIANT(step >= 1);
  const std::int64_t warmup = schedule.warmup_steps;
  if (step < warmup) {
    return schedule.learning_rate * static_cast<double>(step) / static_cast<double>(warmup);
  }
  if (schedule.kind == ScheduleKind::kConstant || step == warmup) return schedule.learning_rate;
  if (step >= schedule.total_steps) return schedule.min_learning_rate;
  const double done =
      static_cast<double>(step - warmup) / static_cast<double>(schedule.total_steps - warmup);
  const double factor = 0.5 * (1.0 + std::cos(kPi * done));
  return schedule.min_learning_rate +
         factor * (schedule.learning_rate - schedule.min_learning_rate);
}

Json schedule_json(const Schedule& schedule) {
  Json json = Json::object({{"kind", name_of(schedule.kind)},
                            {"learning_rate", schedule.learning_rate},
                            {"warmup_steps", schedule.warmup_steps}});
  if (schedule.kind == ScheduleKind::kCosine) {
    json.set("min_learning_rate", schedule.min_learning_rate);
    json.set("total_steps", schedule.total_steps);
  }
  return json;
}

}  // namespace trainscope
