// Room for as many trips as the data ask for.
#pragma once

#include <string>

#include "cli/flags/sizes.h"
#include "engine/compile.h"

namespace trainscope {

// Without --max-trips: where loops of the model count their trips from inputs that a file of
// tensors holds, the most that a batch of it asks for, in the file's order. Batches in another
// order may ask for more, which then lie in the second arena. Other data, other models, and more
// than kMostTripsUnasked leave it as it is.
void resolve_max_trips(const OnnxModel& model, const std::string& source, const Sizes& sizes,
                       ImportOptions& import);

}  // namespace trainscope
