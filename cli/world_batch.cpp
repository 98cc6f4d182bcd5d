// Searches of the largest batch: where memory is a line over the batch, two points nearly say it.
#include "cli/world_batch.h"

#include <algorithm>

#include "engine/core/error.h"

namespace trainscope {
namespace {

constexpr std::int64_t kMostBatch = 1 << 20;
constexpr std::size_t kMostNodes = 400'000;  // of compiled steps that are kept

// The largest batch within the budget of a size that rises with it.
template <typename BytesOf>
std::int64_t largest_within(std::int64_t budget, const BytesOf& bytes_of) {
  const std::int64_t one = bytes_of(1);
  if (one > budget) return 0;
  const std::int64_t two = bytes_of(2);
  if (two > budget) return 1;
  const std::int64_t each = std::max<std::int64_t>(1, two - one);
  std::int64_t good = 2;
  std::int64_t bad = kMostBatch + 1;
  std::int64_t guess = std::clamp<std::int64_t>(1 + (budget - one) / each, 3, kMostBatch);
  std::int64_t stride = 1;
  while (bad - good > 1) {
    guess = std::clamp(guess, good + 1, bad - 1);
    if (bytes_of(guess) <= budget) {
      good = guess;
      guess += stride;
    } else {
      bad = guess;
      guess -= stride;
    }
    stride *= 2;
    if (bad <= kMostBatch && stride > bad - good) guess = good + (bad - good) / 2;
  }
  return good;
}

// With recomputation it either works or not: doubled from the batch that needs none, then bisected.
template <typename Fits>
std::int64_t largest_that(std::int64_t good, const Fits& fits) {
  std::int64_t bad = std::max<std::int64_t>(1, 2 * good);
  while (bad <= kMostBatch && fits(bad)) {
    good = bad;
    bad *= 2;
  }
  while (bad - good > std::max<std::int64_t>(1, good / 64)) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

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

LargestBatches largest_batches(StepsByBatch& steps, const WorldOptions& options, bool recompute) {
  const std::int64_t budget = *options.budget_bytes;
  WorldOptions plain = options;
  plain.budget_bytes.reset();
  struct Peaks {
    std::int64_t planned = 0;
    std::int64_t eager = 0;
  };
  std::map<std::int64_t, Peaks> known;
  const auto peaks = [&](std::int64_t batch) -> const Peaks& {
    auto found = known.find(batch);
    if (found == known.end()) {
      const WorldPlan plan = plan_world(steps.at(batch).compiled->program, op_table(), plain);
      const Peaks both{.planned = plan.device().peak_bytes, .eager = plan.eager_bytes()};
      found = known.emplace(batch, both).first;
    }
    return found->second;
  };
  LargestBatches batches;
  batches.plain = largest_within(budget, [&](std::int64_t b) { return peaks(b).planned; });
  batches.eager = largest_within(budget, [&](std::int64_t b) { return peaks(b).eager; });
  const std::size_t nodes = steps.at(0).compiled->program.graph.node_count();
  if (!recompute || nodes > kMostSearchedNodes) return batches;
  batches.most = largest_that(batches.plain, [&](std::int64_t batch) {
    try {
      plan_world(steps.at(batch).compiled->program, op_table(), options);
      return true;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) throw;
      return false;
    }
  });
  return batches;
}

}  // namespace trainscope
