// The words of CUDA C++ in which kernels are written: nvcc's, or those of the emulator.
//
// What both understand: __global__, __device__, __host__, __launch_bounds__, threadIdx, blockIdx,
// blockDim, gridDim, __syncthreads(), __syncwarp(), the shuffles and votes with _sync, float2,
// float4 and the like, and the functions of emulator/device_functions.h. Shared memory is declared
// with the two macros below, and kernels are started with launch() (launch.h).
#pragma once

#ifdef TRAINSCOPE_EMULATE
#include "kernels/cuda/emulator/device_functions.h"

// An array of `count` elements that the block's threads share, aligned for vectors of 16 bytes.
#define TRAINSCOPE_SHARED(type, name, count)         \
  static const char name##_key = 0;                  \
  type(&name)[count] = *static_cast<type(*)[count]>( \
      ::trainscope::cuda::emulator::shared_array(&name##_key, sizeof(type[count])))
// All of the shared memory that the launch asked for (Grid::shared_bytes), as elements of a type.
#define TRAINSCOPE_SHARED_DYNAMIC(type, name) \
  type* const name = static_cast<type*>(::trainscope::cuda::emulator::dynamic_shared_memory())

#else
#include <cuda_runtime.h>

#define TRAINSCOPE_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define TRAINSCOPE_SHARED_DYNAMIC(type, name)                    \
  extern __shared__ __align__(16) unsigned char name##_memory[]; \
  type* const name = reinterpret_cast<type*>(name##_memory)
#endif

namespace trainscope::cuda {

inline constexpr int kWarp = 32;  // threads that run in step
inline constexpr unsigned kWholeWarp = 0xFFFFFFFFU;

}  // namespace trainscope::cuda
