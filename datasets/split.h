// A dataset that trains on one source and validates on another.
#pragma once

#include <memory>

#include "engine/train/data.h"

namespace trainscope {

// The training split of `training` and the validation split of `validation`. Throws kBadInput when
// their examples differ in name, type or shape.
std::unique_ptr<Dataset> with_validation(std::shared_ptr<const Dataset> training,
                                         std::shared_ptr<const Dataset> validation);

}  // namespace trainscope
