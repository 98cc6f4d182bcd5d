// A lever's steps beside those of the step as it is.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "engine/advise/advice.h"
#include "engine/core/error.h"
#include "engine/core/numbers.h"

namespace trainscope {
namespace {

constexpr int kTrialWarmUp = 2;
constexpr int kTrialSteps = 10;

// Both steps, in turn, so that what else runs on the machine is in both.
LeverTrial trial_of(const TrainRequest& base, const TrainRequest& lever, bool with_base) {
  TimedSteps steps = timed_steps(lever);
  std::optional<TimedSteps> as_it_is;
  if (with_base) as_it_is.emplace(timed_steps(base));
  std::vector<double> seconds;
  std::vector<double> base_seconds;
  for (int i = 0; i < kTrialWarmUp + kTrialSteps; ++i) {
    lever.compile.watch.check();
    const double of_base = as_it_is ? as_it_is->run().milliseconds / 1e3 : 0.0;
    const double of_lever = steps.run().milliseconds / 1e3;
    if (i < kTrialWarmUp) continue;
    seconds.push_back(of_lever);
    base_seconds.push_back(of_base);
  }
  return {.used_bytes = steps.executor().used_bytes(),
          .seconds = median(seconds),
          .base_seconds = median(base_seconds)};
}

}  // namespace

void try_levers(Advice& advice, AdviceRequest request, std::int64_t count,
                const std::stop_token& stop) {
  require(advice.base.times_from != TimesFrom::kMachine, ErrorCode::kUsage,
          "--try runs steps, and this one cannot be run here: {}", advice.base.note);
  request.train.compile.watch.stop = stop;
  for (std::int64_t i = 0; i < std::min(count, std::ssize(advice.levers)); ++i) {
    LeverAdvice& each = advice.levers[static_cast<std::size_t>(i)];
    const TrainRequest step = changed(request.train, request.sizes, each.lever.change);
    const std::int64_t alone = each.arena_bytes + each.host_bytes;
    each.too_large_to_try = !fits_in_memory(alone);
    if (each.too_large_to_try) continue;
    const std::int64_t both = alone + advice.base.arena_bytes();
    each.trial = trial_of(request.train, step, fits_in_memory(both));
  }
}

double time_error(const Advice& advice, const LeverAdvice& lever) {
  const LeverTrial& trial = *lever.trial;
  const double drift = trial.base_seconds > 0.0 ? trial.base_seconds / advice.base.seconds() : 1.0;
  return lever.forecast.seconds * drift / trial.seconds - 1.0;
}

}  // namespace trainscope
