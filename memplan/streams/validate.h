// Checks a placement for several streams; shares no code with the placer, and knows no clocks.
#pragma once

#include <vector>

#include "memplan/streams/problem.h"
#include "memplan/validate.h"

namespace trainscope::memplan {

// Empty when the placement is valid. Goes through the operations in an order that the dependencies
// allow and keeps for every byte the buffer that had it last; a buffer that takes the byte over
// must come after every use of that one, which is looked up by going back along the dependencies.
// What had the byte before then is earlier still, so neighbours are all that has to be compared.
[[nodiscard]] std::vector<Violation> validate_streams(const StreamProblem& problem,
                                                      const Solution& solution);

}  // namespace trainscope::memplan
