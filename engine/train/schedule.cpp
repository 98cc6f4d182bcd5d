// Learning-rate schedules with linear warm-up, and one-cycle.
#include "engine/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr double kPi = 3.141592653589793238462643383279;

bool is_rate(double value) { return std::isfinite(value) && value >= 0.0; }

// From `begin` to `end` along half a cosine; `done` is 0 to 1.
double along_cosine(double begin, double end, double done) {
  return end + 0.5 * (1.0 + std::cos(kPi * done)) * (begin - end);
}

void check_step(const Schedule& schedule) {
  require(schedule.step_size >= 1, ErrorCode::kUsage,
          "the step schedule needs steps between its falls, 1 or more (--step-size N)");
  require(is_rate(schedule.gamma), ErrorCode::kUsage,
          "gamma is {}: expected a finite number of 0 or more", schedule.gamma);
}

void check_one_cycle(const Schedule& schedule) {
  require(schedule.total_steps > 0, ErrorCode::kUsage, "a one-cycle schedule of {} steps",
          schedule.total_steps);
  require(schedule.rising_share >= 0.0 && schedule.rising_share <= 1.0, ErrorCode::kUsage,
          "the rising share of a one-cycle schedule is {}: expected 0 to 1", schedule.rising_share);
  for (const double factor : {schedule.div_factor, schedule.final_div_factor}) {
    require(std::isfinite(factor) && factor > 0.0, ErrorCode::kUsage,
            "a division factor of the one-cycle schedule is {}: expected a number above 0", factor);
  }
}

void check_fall(const Schedule& schedule) {
  require(
      is_rate(schedule.min_learning_rate) && schedule.min_learning_rate <= schedule.learning_rate,
      ErrorCode::kUsage, "the minimal learning rate is {}: expected 0 to the learning rate {}",
      schedule.min_learning_rate, schedule.learning_rate);
  require(schedule.total_steps > 0 && schedule.warmup_steps <= schedule.total_steps,
          ErrorCode::kUsage, "{} warm-up steps do not fit a {} schedule of {} steps",
          schedule.warmup_steps, name_of(schedule.kind), schedule.total_steps);
  require(std::isfinite(schedule.power) && schedule.power > 0.0, ErrorCode::kUsage,
          "the power of the polynomial schedule is {}: expected a number above 0", schedule.power);
}

double one_cycle(const Schedule& schedule, std::int64_t step) {
  const double first = schedule.learning_rate / schedule.div_factor;
  const double last = first / schedule.final_div_factor;
  const auto total = static_cast<double>(schedule.total_steps);
  const auto at = static_cast<double>(step - 1);
  const double peak = schedule.rising_share * total - 1.0;
  if (step > schedule.total_steps) return last;
  if (at > peak) {
    return along_cosine(schedule.learning_rate, last, (at - peak) / (total - 1.0 - peak));
  }
  return peak > 0.0 ? along_cosine(first, schedule.learning_rate, at / peak)
                    : schedule.learning_rate;
}

// `done` is 0 at the end of the warm-up and 1 at the last step.
double falling(const Schedule& schedule, double done) {
  const double top = schedule.learning_rate;
  const double bottom = schedule.min_learning_rate;
  if (schedule.kind == ScheduleKind::kCosine) return along_cosine(top, bottom, done);
  const double power = schedule.kind == ScheduleKind::kPolynomial ? schedule.power : 1.0;
  return bottom + (top - bottom) * std::pow(1.0 - done, power);
}

}  // namespace

std::string_view name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kLinear:
      return "linear";
    case ScheduleKind::kCosine:
      return "cosine";
    case ScheduleKind::kPolynomial:
      return "polynomial";
    case ScheduleKind::kStep:
      return "step";
    case ScheduleKind::kOneCycle:
      return "one_cycle";
  }
  return "?";
}

ScheduleKind parse_schedule_kind(std::string_view text) {
  std::vector<std::string_view> names;
  for (ScheduleKind kind : kScheduleKinds) {
    if (text == name_of(kind)) return kind;
    names.push_back(name_of(kind));
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
  if (schedule.kind == ScheduleKind::kStep) check_step(schedule);
  if (schedule.kind == ScheduleKind::kOneCycle) check_one_cycle(schedule);
  if (falls_to_minimum(schedule.kind)) check_fall(schedule);
}

double learning_rate_at(const Schedule& schedule, std::int64_t step) {
  CHECK_INVARIANT(step >= 1);
  if (schedule.kind == ScheduleKind::kOneCycle) return one_cycle(schedule, step);
  const std::int64_t warmup = schedule.warmup_steps;
  if (step < warmup) {
    return schedule.learning_rate * static_cast<double>(step) / static_cast<double>(warmup);
  }
  if (schedule.kind == ScheduleKind::kConstant || step == warmup) return schedule.learning_rate;
  if (schedule.kind == ScheduleKind::kStep) {
    const std::int64_t falls = (step - warmup - 1) / schedule.step_size;
    return schedule.learning_rate * std::pow(schedule.gamma, static_cast<double>(falls));
  }
  if (step >= schedule.total_steps) return schedule.min_learning_rate;
  return falling(schedule, static_cast<double>(step - warmup) /
                               static_cast<double>(schedule.total_steps - warmup));
}

Json schedule_json(const Schedule& schedule) {
  Json json =
      Json::object({{"kind", name_of(schedule.kind)}, {"learning_rate", schedule.learning_rate}});
  if (schedule.kind == ScheduleKind::kOneCycle) {
    json.set("total_steps", schedule.total_steps);
    json.set("rising_share", schedule.rising_share);
    json.set("div_factor", schedule.div_factor);
    json.set("final_div_factor", schedule.final_div_factor);
    return json;
  }
  json.set("warmup_steps", schedule.warmup_steps);
  if (schedule.kind == ScheduleKind::kStep) {
    json.set("step_size", schedule.step_size);
    json.set("gamma", schedule.gamma);
  }
  if (falls_to_minimum(schedule.kind)) {
    json.set("min_learning_rate", schedule.min_learning_rate);
    json.set("total_steps", schedule.total_steps);
  }
  if (schedule.kind == ScheduleKind::kPolynomial) json.set("power", schedule.power);
  return json;
}

}  // namespace trainscope
