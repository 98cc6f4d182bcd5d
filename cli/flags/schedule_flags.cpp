// Flags of the learning-rate schedule, and the schedule made of them.
#include "cli/flags/training_flags.h"

namespace trainscope {
namespace {

constexpr Flag kScheduleFlags[] = {
    {.name = "schedule",
     .type = FlagType::kChoice,
     .value = "constant|linear|cosine|polynomial|step|one_cycle",
     .fallback = "constant",
     .help = "Learning rate after the warm-up; linear, cosine and polynomial fall to --min-lr at "
             "the last step",
     .also = "lr-schedule|scheduler"},
    {.name = "warmup",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "0",
     .help = "Steps in which the learning rate rises linearly",
     .minimum = 0,
     .also = "warmup-steps"},
    {.name = "min-lr",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0",
     .help = "Of the schedules linear, cosine and polynomial",
     .minimum = 0},
    {.name = "power",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "1",
     .help = "Of the schedule polynomial; 1 is linear"},
    {.name = "step-size",
     .type = FlagType::kInteger,
     .value = "N",
     .help = "Of the schedule step: steps between its falls",
     .minimum = 1},
    {.name = "gamma",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0.1",
     .help = "Of the schedule step: what each fall multiplies the rate by",
     .minimum = 0},
    {.name = "rising-share",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "0.3",
     .help = "Of the schedule one_cycle: share of the steps before its peak, --lr",
     .minimum = 0,
     .maximum = 1},
    {.name = "div-factor",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "25",
     .help = "Of the schedule one_cycle: --lr over the first rate"},
    {.name = "final-div-factor",
     .type = FlagType::kNumber,
     .value = "X",
     .fallback = "1e4",
     .help = "Of the schedule one_cycle: the first rate over the last"},
};

// Which flags mean something with a schedule.
std::vector<std::string_view> flags_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return {"warmup"};
    case ScheduleKind::kLinear:
    case ScheduleKind::kCosine:
      return {"warmup", "min-lr"};
    case ScheduleKind::kPolynomial:
      return {"warmup", "min-lr", "power"};
    case ScheduleKind::kStep:
      return {"warmup", "step-size", "gamma"};
    case ScheduleKind::kOneCycle:
      return {"rising-share", "div-factor", "final-div-factor"};
  }
  return {};
}

}  // namespace

std::span<const Flag> schedule_flags() { return kScheduleFlags; }

Schedule training_schedule(const Settings& settings, std::int64_t steps) {
  const Schedule schedule{.kind = parse_schedule_kind(settings.text("schedule")),
                          .learning_rate = settings.number("lr"),
                          .min_learning_rate = settings.number("min-lr"),
                          .warmup_steps = settings.integer("warmup"),
                          .total_steps = steps,
                          .power = settings.number("power"),
                          .step_size = settings.find_integer("step-size").value_or(0),
                          .gamma = settings.number("gamma"),
                          .rising_share = settings.number("rising-share"),
                          .div_factor = settings.number("div-factor"),
                          .final_div_factor = settings.number("final-div-factor")};
  static constexpr std::string_view kAll[] = {"warmup",     "min-lr",          "power",
                                              "step-size",  "gamma",           "rising-share",
                                              "div-factor", "final-div-factor"};
  refuse_idle_flags(settings, "schedule", kAll, flags_of(schedule.kind));
  if (steps > 0) check_schedule(schedule);  // of epochs the steps are known with the data
  return schedule;
}

}  // namespace trainscope
