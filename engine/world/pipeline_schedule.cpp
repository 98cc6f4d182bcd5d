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
      : stages_(stages), micro_batches_(micro_batches), progress_(stages.size()) {}

  double seconds() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t stage = 0; stage < progress_.size(); ++stage) {
        while (advance(stage)) any = true;
      }
    }
    double last = 0.0;
    for (const Progress& each : progress_) last = std::max(last, each.now);
    return last;
  }

 private:
  // Of one stage.
  struct Progress {
    std::vector<double> forwards;  // when each micro-batch's was done
    std::vector<double> backwards;
    double now = 0.0;
  };

  // The stage's next micro-batch, if what it reads is there.
  bool advance(std::size_t stage) {
    Progress& at = progress_[stage];
    const auto forwards = static_cast<std::int64_t>(at.forwards.size());
    const auto backwards = static_cast<std::int64_t>(at.backwards.size());
    if (backwards == micro_batches_) return false;
    const std::int64_t in_flight =
        micro_batches_in_flight(static_cast<std::int64_t>(stage),
                                static_cast<std::int64_t>(progress_.size()), micro_batches_);
    if (forwards < micro_batches_ && forwards - backwards < in_flight) {
      const std::vector<double>* before = stage > 0 ? &progress_[stage - 1].forwards : nullptr;
      return pass(at, at.forwards, before, stages_[stage].forward);
    }
    const bool last = stage + 1 == progress_.size();
    return pass(at, at.backwards, last ? nullptr : &progress_[stage + 1].backwards,
                stages_[stage].backward);
  }

  // One forward or backward of one micro-batch, if the neighbour has done its own.
  static bool pass(Progress& at, std::vector<double>& own, const std::vector<double>* neighbour,
                   double seconds) {
    if (neighbour != nullptr) {
      if (neighbour->size() <= own.size()) return false;
      at.now = std::max(at.now, (*neighbour)[own.size()]);
    }
    at.now += seconds;
    own.push_back(at.now);
    return true;
  }

  std::span<const StageSeconds> stages_;
  std::int64_t micro_batches_;
  std::vector<Progress> progress_;
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
