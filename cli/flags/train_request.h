// A call of `train` as a request to the engine.
#pragma once

#include "cli/flags/invocation.h"
#include "cli/flags/sizes.h"
#include "engine/run/train_request.h"

namespace trainscope {

// The step of a call of any verb that has `train`'s flags of data and step: model, options, batch,
// data and seed; a run of it has no length yet. `sizes` are settled. Throws kUsage, kBadInput and
// kIo.
TrainRequest step_request(OnnxModel model, const Sizes& sizes, const Invocation& invocation);

// Reads the model, settles sizes and options; the data are opened when the model is compiled.
// Throws kUsage, kBadInput and kIo.
TrainRequest train_request(const Invocation& invocation);

}  // namespace trainscope
