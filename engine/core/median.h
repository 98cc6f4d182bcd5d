// The middle of measurements.
#pragma once

#include <vector>

namespace trainscope {

// The middle one; of an even number the mean of both. 0 of none.
double median(std::vector<double> values);

}  // namespace trainscope
