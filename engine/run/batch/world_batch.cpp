// Largest batches of worlds: without recomputation, as PyTorch would hold it, and with it.
#include "engine/run/batch/world_batch.h"

#include <algorithm>
#include <iterator>

#include "engine/run/batch/batch_search.h"

namespace trainscope {
namespace {

constexpr std::size_t kMostNodes = 400'000;  // of compiled steps that are kept

struct Peaks {
  std::int64_t planned = 0;
  std::int64_t eager = 0;
};

// Without recomputation, each batch planned once.
class PeaksByBatch {
 public:
  PeaksByBatch(StepsByBatch& steps, const WorldOptions& options)
      : steps_(steps), options_(options) {
    options_.budget_bytes.reset();
  }

  const Peaks& at(std::int64_t batch) {
    const auto known = known_.find(batch);
    if (known != known_.end()) return known->second;
    const WorldPlan plan = plan_world(steps_.at(batch).compiled->program, op_table(), options_);
    const Peaks peaks{.planned = plan.device().peak_bytes, .eager = plan.eager_bytes()};
    return known_.emplace(batch, peaks).first->second;
  }

 private:
  StepsByBatch& steps_;
  WorldOptions options_;
  std::map<std::int64_t, Peaks> known_;
};

}  // namespace

const SizedStep& StepsByBatch::at(std::int64_t batch) {
  const auto known = steps_.find(batch);
  if (known != steps_.end()) return known->second;
  SizedStep step = compile_(batch);
  nodes_ += step.compiled->program.graph.node_count();
  while (nodes_ > kMostNodes && steps_.size() > 1) {  // the one asked for stays: batch 0
    const auto last = std::prev(steps_.end());
    nodes_ -= last->second.compiled->program.graph.node_count();
    steps_.erase(last);
  }
  return steps_.emplace(batch, std::move(step)).first->second;
}

LargestBatches LargestBatchSearch::find(const WorldOptions& options) {
  const Layout& layout = options.machine.layout;
  // Without ZeRO bytes do not depend on how many devices have the same.
  const Key key = {layout.tensor, layout.pipeline, layout.zero,
                   layout.zero == 0 ? 1 : layout.data()};
  const auto known = found_.find(key);
  if (known != found_.end()) return known->second;
  return found_.emplace(key, search(options)).first->second;
}

LargestBatches LargestBatchSearch::search(const WorldOptions& options) {
  const std::int64_t budget = *options.budget_bytes;
  PeaksByBatch peaks(steps_, options);
  // The first two give what there is whatever the batch.
  const std::int64_t one = peaks.at(1).planned;
  const std::int64_t fixed = std::max<std::int64_t>(0, 2 * one - peaks.at(2).planned);
  const auto find = [&](auto Peaks::*of) {
    return largest_batch({.budget_bytes = budget, .fixed_bytes = fixed, .first = 2},
                         [&](std::int64_t batch) -> BatchNeed {
                           const std::int64_t bytes = peaks.at(batch).*of;
                           return {.fits = bytes <= budget, .bytes = bytes};
                         });
  };
  LargestBatches batches{
      .plain = find(&Peaks::planned), .most = std::nullopt, .eager = find(&Peaks::eager)};
  const std::size_t nodes = steps_.at(0).compiled->program.graph.node_count();
  if (recompute_ && nodes <= kMostSearchedNodes) {
    batches.most = search_recomputed(options, {.fits = batches.plain, .fixed_bytes = fixed});
  }
  return batches;
}

std::int64_t LargestBatchSearch::search_recomputed(WorldOptions options, const Known& known) {
  const std::int64_t budget = *options.budget_bytes;
  options.aim = WorldAim::kAnyPlan;
  const auto attempt = [&](std::int64_t batch) -> BatchNeed {
    try {
      plan_world(steps_.at(batch).compiled->program, op_table(), options);
      return {.fits = true};
    } catch (const NoPlanFits& refusal) {
      least_ = {.batch = batch, .bytes = refusal.least_bytes - known.fixed_bytes};
      return {.fits = false, .bytes = refusal.least_bytes};
    }
  };
  constexpr std::int64_t kAtFirst = 4;  // times the batch that fits without recomputation
  BatchSearch search{.budget_bytes = budget,
                     .fixed_bytes = known.fixed_bytes,
                     .fits = known.fits,
                     .first = kAtFirst * known.fits,
                     .stride = kAtFirst * std::max<std::int64_t>(1, known.fits)};
  if (least_.bytes > 0) {  // an example of another world needs about as many
    const double each = static_cast<double>(least_.bytes) / static_cast<double>(least_.batch);
    const double first = static_cast<double>(budget - known.fixed_bytes) / each;
    search.first = static_cast<std::int64_t>(std::clamp(first, 1.0, 1.0 * kMostBatch));
    search.stride = 1;
  }
  return largest_batch(search, attempt);
}

}  // namespace trainscope
