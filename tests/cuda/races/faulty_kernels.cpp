// The races that CUDA's memory model knows: in shared memory within a block or a warp, in global
// memory between blocks.
#include "tests/cuda/races/faulty_kernels.h"

#include "kernels/cuda/support/launch.h"

namespace trainscope::test {
namespace {

using cuda::kWholeWarp;
using cuda::launch;

constexpr unsigned kThreads = 64;
constexpr unsigned kBlocks = 3;

// Each thread reads what its neighbour wrote.
template <bool kHasBarrier>
__global__ void turn_block(int* y) {
  TRAINSCOPE_SHARED(int, turned, kThreads);
  turned[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (kHasBarrier) __syncthreads();
  y[blockIdx.x * kThreads + threadIdx.x] = turned[(threadIdx.x + 1) % kThreads];
}

// Within a warp, whose lanes also meet in a shuffle, which orders no memory.
template <bool kHasBarrier>
__global__ void turn_warp(int* y) {
  TRAINSCOPE_SHARED(int, turned, kThreads);
  turned[threadIdx.x] = __shfl_xor_sync(kWholeWarp, static_cast<int>(threadIdx.x), 1);
  if (kHasBarrier) __syncwarp();
  const int sum = __shfl_xor_sync(kWholeWarp, 1, 1);
  y[blockIdx.x * kThreads + threadIdx.x] = sum + turned[threadIdx.x ^ 1U];
}

// The next round writes what the one before is still read of.
template <bool kHasBarrier>
__global__ void turn_twice(int* y) {
  TRAINSCOPE_SHARED(int, turned, kThreads);
  int sum = 0;
  for (int round = 0; round < 2; ++round) {
    turned[threadIdx.x] = round;
    __syncthreads();
    sum += turned[(threadIdx.x + 1) % kThreads];
    if (kHasBarrier) __syncthreads();
  }
  y[blockIdx.x * kThreads + threadIdx.x] = sum;
}

// Each block its own elements, or all blocks the first one's.
template <bool kApart>
__global__ void write_elements(int* y) {
  y[(kApart ? blockIdx.x * kThreads : 0) + threadIdx.x] = 1;
}

// All blocks add to the same elements.
template <bool kAtomic>
__global__ void add_elements(int* y) {
  if (kAtomic) {
    atomicAdd(&y[threadIdx.x], 1);
  } else {
    y[threadIdx.x] += 1;
  }
}

// An atomic that says that elements are written orders none of them.
template <bool kReads>
__global__ void read_of_others(int* y) {
  int* const own = y + blockIdx.x * kThreads;
  own[threadIdx.x] = 1;
  const int before = atomicAdd(y + kBlocks * kThreads, 1);
  if (kReads && before >= static_cast<int>(kThreads)) {
    own[threadIdx.x] += y[(blockIdx.x + 1) % kBlocks * kThreads + threadIdx.x];
  }
}

template <void (*kKernel)(int*)>
void run() {
  std::vector<int> y(kBlocks * kThreads + 1);
  launch(CallContext(), {.blocks = kBlocks, .threads = kThreads}, kKernel, y.data());
}

}  // namespace

std::vector<KnownKernel> known_kernels() {
  return {
      {"a barrier", false, run<turn_block<true>>},
      {"a missing barrier", true, run<turn_block<false>>},
      {"a warp's barrier", false, run<turn_warp<true>>},
      {"a warp's missing barrier", true, run<turn_warp<false>>},
      {"a barrier between rounds", false, run<turn_twice<true>>},
      {"a missing barrier between rounds", true, run<turn_twice<false>>},
      {"blocks that write elements of their own", false, run<write_elements<true>>},
      {"blocks that write the same elements", true, run<write_elements<false>>},
      {"blocks that add by atomics", false, run<add_elements<true>>},
      {"blocks that add without atomics", true, run<add_elements<false>>},
      {"blocks that count themselves by an atomic", false, run<read_of_others<false>>},
      {"blocks that read what others write, behind an atomic", true, run<read_of_others<true>>},
  };
}

}  // namespace trainscope::test
