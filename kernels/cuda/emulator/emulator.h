// Runs kernels on the host as a GPU would: every CUDA thread is a fiber with a stack of its own,
// the threads of a block meet at its barriers, and blocks run one after another.
//
// It is stricter than a GPU. Shared memory is poisoned when a block begins (NaN in every float
// format), what lies around each shared array is forbidden under the address sanitizer, threads and
// blocks run in an order that the seed shuffles, and the program is ended with a line on the
// standard error when threads miss a barrier that others wait at, when lanes meet at different
// intrinsics, or when more threads or shared memory are asked for than a GPU has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

// CUDA's own types of sizes and indices.
struct uint3 {  // NOLINT: CUDA's name
  unsigned x = 0, y = 0, z = 0;
};
struct dim3 {  // NOLINT: CUDA's name
  unsigned x = 1, y = 1, z = 1;

  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)  // NOLINT: as CUDA
      : x(x_size), y(y_size), z(z_size) {}
};

// Of the thread that runs. Kernels only read them.
extern thread_local uint3 threadIdx;  // NOLINT: CUDA's name
extern thread_local uint3 blockIdx;   // NOLINT: CUDA's name
extern thread_local dim3 blockDim;    // NOLINT: CUDA's name
extern thread_local dim3 gridDim;     // NOLINT: CUDA's name

namespace trainscope::cuda::emulator {

// What a thread waits in: an intrinsic, in a line of the source. Threads that meet must wait in the
// same one.
enum class Intrinsic : std::uint8_t { kBarrier, kWarpBarrier, kShuffle, kVote };
struct Line {
  std::string_view file;
  int number = 0;

  auto operator<=>(const Line&) const = default;
};
struct Place {
  Intrinsic intrinsic = Intrinsic::kBarrier;
  Line line;

  auto operator<=>(const Place&) const = default;
};

// What a kernel is called with, one by one in the order of its parameters.
struct KernelArgument {
  const void* value = nullptr;
  std::size_t bytes = 0;
};

// Threads to run: thread(context) on each, which calls the kernel with its arguments.
struct GridOfThreads {
  dim3 blocks;
  dim3 threads;
  std::size_t shared_bytes = 0;
  void* context = nullptr;
  void (*thread)(void* context) = nullptr;
  const void* kernel = nullptr;
  std::span<const KernelArgument> arguments = {};
};
void run_grid(const GridOfThreads& grid);

// Calls kernels of one list of parameters, with arguments that lie apart, each at the address that
// `arguments` has for it, as the CUDA runtime is given them.
struct KernelCaller {
  const char* parameters;              // what typeid calls void(Parameters...)
  std::span<const std::size_t> bytes;  // of each argument
  void (*call)(const void* kernel, void* const* arguments);
};
// One for each list of parameters that a launch() of the program has.
std::vector<KernelCaller>& kernel_callers();

// What runs grids in place of fibers from now on: another form of the same kernels. Empty: fibers
// do. Of the calling thread of the host.
void run_grids_by(std::function<void(const GridOfThreads&)> runner);

// Orders of threads and blocks; 0: as they are numbered. Of the calling thread of the host.
void set_seed(std::uint64_t seed);
// Kernels that this thread of the host has run so far.
std::int64_t grids_run();

// Barriers of blocks and warps that kernels of this thread of the host came to since this was last
// asked for, and one that is left out from now on: what it is for must show.
std::vector<Place> take_barriers();
void skip_barrier(std::optional<Place> place);

// --- What kernels call ---------------------------------------------------------------------------
// The array of this key in the block's shared memory; made, poisoned, when a thread asks first.
void* shared_array(const void* key, std::size_t bytes);
void* dynamic_shared_memory();

// All threads of the block wait for each other; gives how many of them came with `vote`.
int meet_block(const Place& place, bool vote);
// The lanes of the mask wait for each other, and each gives a word: all of them are read. Valid
// until this lane meets others again.
struct LaneWords {
  std::uint64_t words[32] = {};
  unsigned mask = 0;  // lanes that gave one
};
const LaneWords& meet_warp(const Place& place, unsigned mask, std::uint64_t word);
unsigned lane();  // of the thread in its warp
[[noreturn]] void die(const char* what);

}  // namespace trainscope::cuda::emulator
