// Variables of the environment that change what a back end computes, and that runs record.
#pragma once

namespace trainscope {

// A file in which the fastest of cuBLASLt's algorithms is kept for each matmul (docs/cuda.md). Not
// set: cuBLASLt's first offer is used.
inline constexpr const char* kMatmulChoicesVariable = "TRAINSCOPE_MATMUL_CHOICES";

}  // namespace trainscope
