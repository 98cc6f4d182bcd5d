// The emulator runs threads, barriers and shuffles as a GPU does, and ends what a GPU would not do.
#include "kernels/cuda/emulator/emulator.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#undef TRAINSCOPE_SHARED  // the folder of that name, which no case here reads
#include "kernels/cuda/support/launch.h"
#include "tests/support/ended.h"

namespace trainscope::test {
namespace {

using cuda::kWholeWarp;
using cuda::launch;

const CallContext kCall;

// Every thread writes the sum over its block, through shuffles and shared memory.
__global__ void block_sums(const int* x, int* y) {
  TRAINSCOPE_SHARED(int, partial, 32);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = x[i];
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, other);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += partial[warp];
  y[i] = sum;
}

__global__ void write_places(unsigned* y) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  y[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 1000 + thread;
}

// What a block finds in shared memory, and then leaves there.
__global__ void read_shared(float* found) {
  TRAINSCOPE_SHARED(float, fixed, 4);
  TRAINSCOPE_SHARED_DYNAMIC(float, asked);
  found[2 * blockIdx.x] = fixed[3];
  found[2 * blockIdx.x + 1] = asked[7];
  fixed[3] = 1.0F;
  asked[7] = 1.0F;
}

__global__ void missed_barrier() {
  if (threadIdx.x < 40) __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

__global__ void missed_lane(int* y) {
  if (threadIdx.x == 5) return;
  y[threadIdx.x] = __shfl_xor_sync(kWholeWarp, 1, 1);
}

__global__ void two_intrinsics(int* y) {
  if (threadIdx.x < 16) {
    y[threadIdx.x] = __shfl_xor_sync(kWholeWarp, 1, 1);
  } else {
    y[threadIdx.x] = __any_sync(kWholeWarp, 1);
  }
}

__global__ void lane_of_no_value(int* y) {
  if (threadIdx.x < 8) y[threadIdx.x] = __shfl_sync(0xFFU, 1, 9);
}

__global__ void order_of_threads(int* next, int* places) {
  places[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1);
}

__global__ void votes(unsigned* y) {
  const bool odd = threadIdx.x % 2 == 1;
  y[threadIdx.x] = __ballot_sync(kWholeWarp, odd);
  y[32 + threadIdx.x] = static_cast<unsigned>(__syncthreads_count(odd));
  y[64 + threadIdx.x] = __shfl_up_sync(kWholeWarp, threadIdx.x, 3) * 100 +
                        __shfl_down_sync(kWholeWarp, threadIdx.x, 3);
}

// Lanes of one mask go on while the others wait for all of them.
__global__ void part_of_a_warp(unsigned* y) {
  const unsigned mask = 0x0000FFFFU;
  if (threadIdx.x < 16) y[threadIdx.x] = __ballot_sync(mask, threadIdx.x < 3);
  __syncwarp();
  y[threadIdx.x] += __shfl_sync(kWholeWarp, threadIdx.x, 31);
}

std::vector<int> places_by(std::uint64_t seed) {
  int next = 0;
  std::vector<int> places(2 * 64);
  cuda::emulator::set_seed(seed);
  launch(kCall, {.blocks = 2, .threads = 64}, order_of_threads, &next, places.data());
  cuda::emulator::set_seed(0);
  return places;
}

template <class F>
void check_death(F action, std::string_view why) {
  const Ended end = ended(action);
  CHECK(end.by == Ended::By::kAbort);
  CHECK_MESSAGE(end.text.find(why) != std::string::npos, end.text);
}

}  // namespace

TEST_CASE("cuda emulator: threads of a block share sums in any order") {
  constexpr std::size_t kThreads = 96;
  std::vector<int> x(3 * kThreads);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<int> y(x.size());
    cuda::emulator::set_seed(seed);
    launch(kCall, {.blocks = 3, .threads = kThreads}, block_sums, x.data(), y.data());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const int first = static_cast<int>(i / kThreads * kThreads);
      CHECK(y[i] == 96 * first + 95 * 96 / 2);
    }
  }
  cuda::emulator::set_seed(0);
}

TEST_CASE("cuda emulator: every thread of every block runs once") {
  std::vector<unsigned> y(2 * 3 * 4 * 5 * 6 * 2);
  launch(kCall, {.blocks = dim3(2, 3, 4), .threads = dim3(5, 6, 2)}, write_places, y.data());
  for (unsigned i = 0; i < y.size(); ++i) CHECK(y[i] == i / 60 * 1000 + i % 60);
}

TEST_CASE("cuda emulator: without blocks nothing runs") {
  const std::int64_t before = cuda::emulator::grids_run();
  launch(kCall, {.blocks = 0, .threads = 32}, missed_barrier);
  CHECK(cuda::emulator::grids_run() == before);
}

TEST_CASE("cuda emulator: shared memory is NaN when a block begins") {
  std::vector<float> found(6);
  launch(kCall, {.blocks = 3, .threads = 1, .shared_bytes = 32}, read_shared, found.data());
  for (const float x : found) CHECK(std::isnan(x));
}

TEST_CASE("cuda emulator: the seed orders threads and blocks") {
  const std::vector<int> plain = places_by(0);
  for (std::size_t i = 0; i < plain.size(); ++i) CHECK(plain[i] == static_cast<int>(i));
  CHECK(places_by(1) != plain);
  CHECK(places_by(1) == places_by(1));
  CHECK(places_by(2) != places_by(1));
}

TEST_CASE("cuda emulator: votes and shifts go by lanes") {
  std::vector<unsigned> y(96);
  launch(kCall, {.blocks = 1, .threads = 32}, votes, y.data());
  for (unsigned i = 0; i < 32; ++i) {
    CHECK(y[i] == 0xAAAAAAAAU);
    CHECK(y[32 + i] == 16);
    CHECK(y[64 + i] == (i < 3 ? i : i - 3) * 100 + (i + 3 < 32 ? i + 3 : i));
  }
}

TEST_CASE("cuda emulator: some lanes of a warp meet while the others wait") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<unsigned> y(32);
    cuda::emulator::set_seed(seed);
    launch(kCall, {.blocks = 1, .threads = 32}, part_of_a_warp, y.data());
    for (unsigned i = 0; i < 32; ++i) CHECK(y[i] == (i < 16 ? 7U : 0U) + 31U);
  }
  cuda::emulator::set_seed(0);
}

TEST_CASE("cuda emulator: what a GPU does not define ends the program") {
  std::vector<int> y(64);
  check_death([] { launch(kCall, {.blocks = 1, .threads = 64}, missed_barrier); },
              "a barrier is not reached by every thread");
  check_death([] { launch(kCall, {.blocks = 1, .threads = 64}, two_barriers); },
              "different barriers");
  check_death([&] { launch(kCall, {.blocks = 1, .threads = 32}, missed_lane, y.data()); },
              "lanes wait for others that do not come");
  check_death([&] { launch(kCall, {.blocks = 1, .threads = 32}, two_intrinsics, y.data()); },
              "different intrinsics");
  check_death([&] { launch(kCall, {.blocks = 1, .threads = 32}, lane_of_no_value, y.data()); },
              "a lane that its mask leaves out");
  check_death([] { launch(kCall, {.blocks = 1, .threads = 1025}, missed_barrier); },
              "wrong size of a block");
  check_death(
      [] { launch(kCall, {.blocks = 1, .threads = 32, .shared_bytes = 300000}, missed_barrier); },
      "more shared memory than a block can have");
}

}  // namespace trainscope::test
