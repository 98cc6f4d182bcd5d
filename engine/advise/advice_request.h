// What advice is asked about: a step, and what is known of it.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/bundle/reader.h"
#include "engine/model_sizes.h"
#include "engine/run/train_request.h"

namespace trainscope {

struct AdviceRequest {
  TrainRequest train;      // of it the step counts: model, options, data, batch and seed
  SizeRequest sizes = {};  // what was asked for when those of `train` were settled
  std::optional<std::int64_t> memory_bytes = {};  // that the step is to fit in
  // The run that has trained this very step, and may have a profile of it.
  std::optional<RunReader> run = {};
  bool shapes_only = false;  // the model has no elements, so no step of it can be run
};

}  // namespace trainscope
