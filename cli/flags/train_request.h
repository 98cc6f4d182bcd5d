// A call of `train` as a request to the engine.
#pragma once

#include "cli/flags/invocation.h"
#include "engine/run/train_request.h"

namespace trainscope {

// Reads the model, settles sizes and options; the data are opened when the model is compiled.
// Throws kUsage, kBadInput and kIo.
TrainRequest train_request(const Invocation& invocation);

}  // namespace trainscope
