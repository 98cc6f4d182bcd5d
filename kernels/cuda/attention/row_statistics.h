// What attention keeps of each row of scores, in the two forms that it is computed and used in.
#pragma once

#include <cstdint>

#include "kernels/api/kernel.h"

namespace trainscope::cuda {

// statistics[i] = {largest[i], 1 / sums[i]}, of the largest score of a row and its sum of
// exp(score - largest).
void keep_row_statistics(const float* largest, const float* sums, float* statistics,
                         std::int64_t rows, const CallContext& call);

// log_sums[i] = the logarithm of row i's sum of exp(score), from its statistics: one f32 for both,
// which beyond 2^28 has nothing of the sum left. A row whose keys are all masked by the least f32
// gets weights of 1 from it, not 1 / keys. Own kernels use the two statistics.
void row_log_sums(const float* statistics, float* log_sums, std::int64_t rows,
                  const CallContext& call);

}  // namespace trainscope::cuda
