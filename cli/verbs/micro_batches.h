// The size of micro-batches as something to plan: how to split the examples of a step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "cli/command.h"
#include "engine/compile.h"

namespace trainscope {

// Examples of a step, as a number of micro-batches of so many each.
struct BatchSplit {
  std::int64_t batch = 0;
  std::int64_t micro_batches = 0;

  std::int64_t examples() const { return batch * micro_batches; }
};

// Compiles the step of a split. Fails with NoPlanFits when no plan is within the budget.
using CompileSplit = std::function<std::unique_ptr<Compiled>(const BatchSplit&)>;

// Every split of the examples of `asked` into equal micro-batches: its arena and its time, by the
// model of the machine, and the quickest of those that fit. Fails with kOutOfMemory when none does.
Outcome plan_micro_batches(const CompileSplit& compile_split, const BatchSplit& asked,
                           const Machine& machine);

}  // namespace trainscope
