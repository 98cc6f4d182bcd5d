// Rows whose elements are not next to each other: a thread computes one alone, so that threads next
// to each other read neighbours.
#pragma once

#include <cstdint>

#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {

struct ThreadTeam {
  __device__ static int rank() { return 0; }
  __device__ static int size() { return 1; }
  __device__ static std::int64_t first() {
    return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  }
  __device__ static std::int64_t teams() { return std::int64_t{gridDim.x} * blockDim.x; }
  template <typename T>
  __device__ static T sum(T value) {
    return value;
  }
  template <typename T>
  __device__ static T max(T value, T /*least*/) {
    return value;
  }
};

// As with_team, for rows of `width` elements that are `step` apart.
template <class Run>
void with_row_team(std::int64_t rows, std::int64_t width, std::int64_t step, Run run) {
  if (step == 1) return with_team(rows, width, run);
  run(ThreadTeam{}, Grid{.blocks = team_blocks(rows, 2 * kWarp), .threads = dim3(2 * kWarp)});
}

}  // namespace trainscope::cuda
