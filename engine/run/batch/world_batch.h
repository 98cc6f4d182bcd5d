// The largest batch a device of a world takes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "engine/compile.h"
#include "engine/world/world_plan.h"

namespace trainscope {

// A step without recomputation, compiled for a batch (0: the one asked for).
struct SizedStep {
  std::unique_ptr<const Compiled> compiled;
  std::int64_t batch = 0;     // of one micro-batch on one device
  std::int64_t sequence = 0;  // tokens; 0: the model has none
};
using CompileStep = std::function<SizedStep(std::int64_t batch)>;

// Compiled steps by batch, so that each is compiled once for all worlds; of large graphs the latest
// only.
class StepsByBatch {
 public:
  explicit StepsByBatch(CompileStep compile) : compile_(std::move(compile)) {}

  // 0: the batch that was asked for. Valid until another one is asked for.
  const SizedStep& at(std::int64_t batch);

 private:
  CompileStep compile_;
  std::map<std::int64_t, SizedStep> steps_;
  std::size_t nodes_ = 0;  // in all of them
};

// Examples of one micro-batch on one device; 0: not even one fits.
struct LargestBatches {
  std::int64_t plain = 0;            // without recomputation
  std::optional<std::int64_t> most;  // with it; none: not asked for, or too large a graph to search
  std::int64_t eager = 0;            // as eager PyTorch would hold it
};

// Worlds whose devices hold the same share an answer.
class LargestBatchSearch {
 public:
  LargestBatchSearch(StepsByBatch& steps, bool recompute) : steps_(steps), recompute_(recompute) {}

  // Throws kUsage for a model that fixes its batch.
  LargestBatches find(const WorldOptions& options);

 private:
  using Key = std::array<std::int64_t, 4>;  // what bytes depend on in a layout
  struct Known {
    std::int64_t fits = 0;         // this batch does without recomputation
    std::int64_t fixed_bytes = 0;  // whatever the batch
  };
  struct Least {
    std::int64_t batch = 0;
    std::int64_t bytes = 0;  // that it needs beyond the fixed ones; 0: not known
  };

  LargestBatches search(const WorldOptions& options);
  std::int64_t search_recomputed(WorldOptions options, const Known& known);

  StepsByBatch& steps_;
  bool recompute_;
  std::map<Key, LargestBatches> found_;
  Least least_;  // of the last refusal
};

// Graphs beyond this are not searched with recomputation: each plan takes seconds.
inline constexpr std::size_t kMostSearchedNodes = 1500;

}  // namespace trainscope
