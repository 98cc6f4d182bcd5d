// One forward, one backward, event by event.
#include "engine/world/pipeline_schedule.h"

#include <algorithm>
#include <vector>

namespace trainscope {
namespace {

// Micro-batches beyond these go at the pace of the slowest stage: so many for each stage.
constexpr std::int64_t kFilledAfter = 4;

class Schedule {
 public:
  Schedule(std::span<const StageSeconds> stages, std::int64_t micro_batches)
      : stages_(stages), micro_batches_(micro_batches), runs_(stages.size()) {}

  double seconds() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t stage = 0; stage < runs_.size(); ++stage) {
        while (advance(stage)) any = true;
      }
    }
    double last = 0.0;
    for (const Run& run : runs_) last = std::max(last, run.now);
    return last;
  }

 private:
  struct Run {
    std::vector<double> forwards;  // when each micro-batch's was done
    std::vector<double> backwards;
    double now = 0.0;
  };

  // The stage's next micro-batch, if what it reads is there.
  bool advance(std::size_t stage) {
    Run& run = runs_[stage];
    const auto forwards = static_cast<std::int64_t>(run.forwards.size());
    const auto backwards = static_cast<std::int64_t>(run.backwards.size());
    if (backwards == micro_batches_) return false;
    const std::int64_t in_flight = micro_batches_in_flight(
        static_cast<std::int64_t>(stage), static_cast<std::int64_t>(runs_.size()), micro_batches_);
    if (forwards < micro_batches_ && forwards - backwards < in_flight) {
      const std::vector<double>* before = stage > 0 ? &runs_[stage - 1].forwards : nullptr;
      return step(run, run.forwards, before, stages_[stage].forward);
    }
    const bool last = stage + 1 == runs_.size();
    return step(run, run.backwards, last ? nullptr : &runs_[stage + 1].backwards,
                stages_[stage].backward);
  }

  static bool step(Run& run, std::vector<double>& own, const std::vector<double>* neighbour,
                   double seconds) {
    if (neighbour != nullptr) {
      if (neighbour->size() <= own.size()) return false;
      run.now = std::max(run.now, (*neighbour)[own.size()]);
    }
    run.now += seconds;
    own.push_back(run.now);
    return true;
  }

  std::span<const StageSeconds> stages_;
  std::int64_t micro_batches_;
  std::vector<Run> runs_;
};

}  // namespace

std::int64_t micro_batches_in_flight(std::int64_t stage, std::int64_t stages,
                                     std::int64_t micro_batches) {
  return std::min(stages - stage, micro_batches);
}

double pipeline_seconds(std::span<const StageSeconds> stages, std::int64_t micro_batches) {
  double slowest = 0.0;
  for (const StageSeconds& stage : stages) slowest = std::max(slowest, stage.sum());
  const std::int64_t filled = kFilledAfter * static_cast<std::int64_t>(stages.size());
  const std::int64_t simulated = std::min(micro_batches, filled);
  return Schedule(stages, simulated).seconds() +
         static_cast<double>(micro_batches - simulated) * slowest;
}

}  // namespace trainscope
