// A thread a row: 16 bytes of it are read and written, or 12.
#include <cmath>

#include "kernels/cuda/attention/row_statistics.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

__global__ void __launch_bounds__(kTeamThreads)
    keep_statistics(const float* largest, const float* sums, float* statistics, std::int64_t rows) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  statistics[2 * i] = largest[i];
  statistics[2 * i + 1] = 1.0F / sums[i];
}

__global__ void __launch_bounds__(kTeamThreads)
    log_sums_of_rows(const float* statistics, float* log_sums, std::int64_t rows) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  log_sums[i] = statistics[2 * i] - std::log(statistics[2 * i + 1]);
}

Grid grid_of(std::int64_t rows) {
  return {.blocks = team_blocks(rows, kTeamThreads), .threads = dim3(kTeamThreads)};
}

}  // namespace

void keep_row_statistics(const float* largest, const float* sums, float* statistics,
                         std::int64_t rows, const CallContext& call) {
  launch(call, grid_of(rows), keep_statistics, largest, sums, statistics, rows);
}

void row_log_sums(const float* statistics, float* log_sums, std::int64_t rows,
                  const CallContext& call) {
  launch(call, grid_of(rows), log_sums_of_rows, statistics, log_sums, rows);
}

}  // namespace trainscope::cuda
