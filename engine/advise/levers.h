// What can be done about the memory and the time of a step, and what each of it costs in bits or
// accuracy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/advise/step_change.h"

namespace trainscope {

struct Lever {
  std::string name;
  StepChange change;
  std::string cost;          // in bits or accuracy: a phrase
  bool same_bits = false;    // the losses are the same numbers
  std::string why_not = {};  // it does nothing here; empty: it may
};

// What the levers are chosen by.
struct LeverFacts {
  std::int64_t batch = 0;
  std::int64_t micro_batches = 1;
  std::int64_t arena_bytes = 0;
  std::int64_t persistent_bytes = 0;
  std::optional<std::int64_t> memory_bytes = {};  // that the step is to fit in
  std::optional<double> labels_that_count = {};   // a fraction; none: not known
  int threads = 1;
  int cores = 1;
};

// A limit of memory that is not asked for: half of what a step needs besides what it always keeps.
std::int64_t budget_of(const LeverFacts& facts);
// `options` are those of the step as it is.
std::vector<Lever> levers(const CompileOptions& options, const LeverFacts& facts);

}  // namespace trainscope
