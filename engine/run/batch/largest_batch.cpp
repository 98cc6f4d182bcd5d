// Steps of one batch after the other, compiled with the budget, or without recomputation and
// measured against it.
#include "engine/run/batch/largest_batch.h"

#include <algorithm>
#include <memory>

#include "engine/run/batch/batch_search.h"

namespace trainscope {
namespace {

class Search {
 public:
  explicit Search(const StepOfBatch& step_of) : step_of_(step_of) {}

  LargestBatch run() {
    // The first two give what there is whatever the batch.
    const std::int64_t one = attempt_plain(1).bytes;
    search_.fixed_bytes = std::max<std::int64_t>(0, 2 * one - attempt_plain(2).bytes);
    const std::int64_t plain =
        largest_batch(search_, [this](std::int64_t batch) { return attempt_plain(batch); });
    constexpr std::int64_t kAtFirst = 4;  // times the batch that fits without recomputation
    search_.fits = plain;
    search_.first = search_.stride = kAtFirst * std::max<std::int64_t>(1, plain);
    const std::int64_t most =
        largest_batch(search_, [this](std::int64_t batch) { return attempt(batch); });
    if (most > plain) attempt(most);  // for its overhead
    return {.plain = plain, .most = most, .overhead = overhead_};
  }

 private:
  StepToCompile step(std::int64_t batch) {
    StepToCompile step = step_of_(batch);
    search_.budget_bytes = *step.options.recompute.budget_bytes;
    return step;
  }

  BatchNeed attempt_plain(std::int64_t batch) {
    StepToCompile plain = step(batch);
    plain.options.recompute = {};
    try {
      const std::int64_t bytes = compile(plain.model, plain.options)->program.arena().bytes;
      return {.fits = bytes <= search_.budget_bytes, .bytes = bytes};
    } catch (const NoPlanFits& refusal) {
      return {.fits = false, .bytes = refusal.least_bytes};
    }
  }

  BatchNeed attempt(std::int64_t batch) {
    const StepToCompile asked = step(batch);
    try {
      const std::unique_ptr<Compiled> compiled = compile(asked.model, asked.options);
      if (compiled->recompute) {
        overhead_ = compiled->recompute->seconds / compiled->recompute->plain_seconds - 1.0;
      }
      return {.fits = true};
    } catch (const NoPlanFits& refusal) {
      return {.fits = false, .bytes = refusal.least_bytes};
    }
  }

  const StepOfBatch& step_of_;
  BatchSearch search_{.first = 2};
  double overhead_ = 0.0;
};

}  // namespace

LargestBatch find_largest_batch(const StepOfBatch& step_of) { return Search(step_of).run(); }

}  // namespace trainscope
