// The step that `advise` is asked about, and the same with other flags.
#pragma once

#include <cstdint>
#include <memory>

#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "cli/source.h"
#include "engine/run/timed_steps.h"
#include "engine/session.h"

namespace trainscope {

struct AdvisedStep {
  OnnxModel model;
  CompileOptions options;
  Sizes sizes;

  std::int64_t micro_batches() const { return options.training.micro_batches; }
  std::int64_t examples() const { return sizes.batch * micro_batches(); }
};

// `settled` has a run's options where it has none of its own. Throws what train's flags throw.
AdvisedStep advised_step(const Source& source, const Invocation& settled);
// The first batch of --data for the step's program, whose stages tell what its integers may be.
Batch batch_of(const AdvisedStep& step, const Compiled& compiled, const Invocation& settled);
// The step, compiled, with that batch.
TimedSteps timed_steps(const AdvisedStep& step, const Invocation& settled);

}  // namespace trainscope
