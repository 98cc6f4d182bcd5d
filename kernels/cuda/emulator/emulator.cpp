// The emulator's scheduler: fibers, barriers, meetings of lanes, shared memory.
#include "kernels/cuda/emulator/emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/random_order.h"
#include "kernels/cuda/emulator/sanitizers.h"
#include "kernels/cuda/emulator/stacks.h"

thread_local uint3 threadIdx;
thread_local uint3 blockIdx;
thread_local dim3 blockDim;
thread_local dim3 gridDim;

// Saves what a call must keep on the running stack, leaves its end in *save and goes on with `to`.
extern "C" void trainscope_switch_stack(void** save, void* to);
asm(R"(
.text
.globl trainscope_switch_stack
.type trainscope_switch_stack, @function
trainscope_switch_stack:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size trainscope_switch_stack, . - trainscope_switch_stack
)");

namespace trainscope::cuda::emulator {
namespace {

// What a GPU of compute capability 9.0 has.
constexpr unsigned kMaxThreads = 1024;
constexpr std::size_t kMaxSharedBytes = 227 * 1024;
constexpr unsigned kLanes = 32;

using Runner = std::function<void(const GridOfThreads&)>;
constexpr std::size_t kZoneBytes = 64;  // between arrays in shared memory
constexpr std::size_t kMaxArrays = 64;

// Points in time of a block, for the thread sanitizer.
struct BlockPoints {
  char barrier[2] = {};  // by turns: whoever leaves one may be overtaken on the way to the next
  char warps[kMaxThreads / kLanes] = {};
};

enum class Wait : std::uint8_t { kNone, kBlock, kWarp, kEnded };

struct Fiber {
  void* stack_pointer = nullptr;
  std::byte* stack = nullptr;
  SanitizerStack sanitizer;
  uint3 thread;
  unsigned lane = 0;
  Wait wait = Wait::kNone;
  Place place;             // where it waits
  bool vote = false;       // given at a barrier
  int votes = 0;           // got there
  unsigned mask = 0;       // of a meeting of lanes
  std::uint64_t word = 0;  // given there
  LaneWords words;         // got there
  unsigned barriers = 0;   // passed so far
};

struct SharedArray {
  const void* key = nullptr;
  std::byte* data = nullptr;
};

// Runs the grids of one thread of the host.
class Machine {
 public:
  void set_seed(std::uint64_t seed) { seed_ = seed; }
  std::int64_t grids_run() const { return grids_run_; }
  std::vector<Place> take_barriers() { return std::exchange(barriers_, {}); }
  void skip_barrier(std::optional<Place> place) { skipped_ = place; }
  void run_grids_by(Runner runner) { runner_ = std::move(runner); }

  void run(const GridOfThreads& grid);

  // --- Called on fibers --------------------------------------------------------------------------
  Fiber& current() { return *current_; }
  const Fiber* first_fiber() const { return fibers_.data(); }
  BlockPoints& points() { return *points_.back(); }
  void pause(Wait wait);
  // Whether to wait at this barrier, which is noted.
  bool comes_to(const Place& place) {
    if (std::ranges::find(barriers_, place) == barriers_.end()) barriers_.push_back(place);
    return skipped_ != place;
  }
  void* shared_array(const void* key, std::size_t bytes);
  void* dynamic_shared_memory() { return shared_.get() + kZoneBytes; }
  [[noreturn]] static void run_fiber();

 private:
  void check(const GridOfThreads& grid) const;
  void start_block(std::uint64_t block);
  void start_fiber(unsigned i);
  void run_block();
  void resume(Fiber& fiber);
  bool pass_barrier();
  bool let_lanes_meet(unsigned warp);
  void exchange(std::span<Fiber> lanes, unsigned mask);

  Stacks stacks_{kTurns * kMaxThreads};
  std::vector<Fiber> fibers_;
  unsigned threads_ = 0;  // of a block
  std::vector<unsigned> order_;
  std::uint64_t random_ = 0;
  std::uint64_t seed_ = 0;
  std::int64_t grids_run_ = 0;
  std::vector<Place> barriers_;
  std::optional<Place> skipped_;
  Runner runner_;
  const GridOfThreads* grid_ = nullptr;
  Fiber* current_ = nullptr;
  void* host_stack_ = nullptr;
  SanitizerStack host_sanitizer_;
  SanitizerThreads sanitizer_threads_;

  static constexpr std::size_t kSharedBlock = kMaxSharedBytes + (kMaxArrays + 2) * kZoneBytes;
  char start_ = 0;  // points in time: of the grid
  char end_ = 0;
  std::vector<std::unique_ptr<BlockPoints>> points_;  // of its blocks
  std::vector<std::unique_ptr<std::byte[]>> old_shared_;

  // Of the block that runs: [zone][dynamic][zone]([array][zone])...
  std::unique_ptr<std::byte[]> shared_ = std::make_unique<std::byte[]>(kSharedBlock);
  std::size_t shared_end_ = 0;    // where the next array begins
  std::size_t shared_bytes_ = 0;  // that the block asked for
  std::vector<SharedArray> arrays_;
};

Machine& machine() {
  thread_local Machine machine;
  return machine;
}

void Machine::check(const GridOfThreads& grid) const {
  const auto threads = std::uint64_t{grid.threads.x} * grid.threads.y * grid.threads.z;
  if (current_ != nullptr) die("a kernel is launched by a kernel");
  if (threads == 0 || threads > kMaxThreads || grid.threads.z > 64) die("wrong size of a block");
  if (grid.blocks.x > 0x7FFFFFFFU || grid.blocks.y > 65535 || grid.blocks.z > 65535) {
    die("wrong size of a grid");
  }
  if (grid.shared_bytes > kMaxSharedBytes) die("more shared memory than a block can have");
}

void Machine::run(const GridOfThreads& grid) {
  check(grid);
  ++grids_run_;
  if (runner_) return runner_(grid);
  grid_ = &grid;
  gridDim = grid.blocks;
  blockDim = grid.threads;
  threads_ = grid.threads.x * grid.threads.y * grid.threads.z;
  if (fibers_.size() < threads_) fibers_.resize(threads_);
  random_ = seed_;
  std::vector<unsigned> blocks(std::size_t{grid.blocks.x} * grid.blocks.y * grid.blocks.z);
  std::iota(blocks.begin(), blocks.end(), 0U);
  order_.resize(threads_);
  std::iota(order_.begin(), order_.end(), 0U);
  if (seed_ != 0) shuffle_order(blocks, random_);
  use_host_thread(host_sanitizer_);
  order_before(&start_);
  for (const unsigned block : blocks) {
    start_block(block);
    run_block();
  }
  order_after(&end_);
  current_ = nullptr;
  points_.clear();
  old_shared_.clear();
  unpoison(shared_.get(), kSharedBlock);
}

void Machine::start_block(std::uint64_t block) {
  blockIdx.x = static_cast<unsigned>(block % gridDim.x);
  blockIdx.y = static_cast<unsigned>(block / gridDim.x % gridDim.y);
  blockIdx.z = static_cast<unsigned>(block / gridDim.x / gridDim.y);
  arrays_.clear();
  if (kFindsRaces || points_.empty()) points_.push_back(std::make_unique<BlockPoints>());
  if constexpr (kFindsRaces) {
    old_shared_.push_back(
        std::exchange(shared_, std::make_unique_for_overwrite<std::byte[]>(kSharedBlock)));
  }
  poison(shared_.get(), kSharedBlock);
  unpoison(shared_.get() + kZoneBytes, grid_->shared_bytes);
  std::memset(shared_.get() + kZoneBytes, 0xFF, grid_->shared_bytes);
  shared_bytes_ = grid_->shared_bytes;
  shared_end_ = (grid_->shared_bytes + 2 * kZoneBytes + 15) / 16 * 16;
  for (unsigned i = 0; i < threads_; ++i) start_fiber(i);
  order_before(&points().barrier[0]);
}

void Machine::start_fiber(unsigned i) {
  constexpr std::size_t kSavedRegisters = 6;
  Fiber& fiber = fibers_[i];
  fiber.stack = stacks_.stack(points_.size() % kTurns * kMaxThreads + i);
  fiber.thread = {
      .x = i % blockDim.x, .y = i / blockDim.x % blockDim.y, .z = i / (blockDim.x * blockDim.y)};
  fiber.lane = i % kLanes;
  fiber.wait = Wait::kNone;
  fiber.barriers = 0;
  fiber.sanitizer.thread = sanitizer_threads_.thread(points_.size(), i);
  unpoison(fiber.stack, kStackBytes);
  // As if trainscope_switch_stack had been called where run_fiber begins.
  auto** top = reinterpret_cast<void**>(fiber.stack + kStackBytes - kZoneBytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&Machine::run_fiber);
  for (std::size_t r = 0; r < kSavedRegisters; ++r) *--top = nullptr;
  fiber.stack_pointer = top;
}

void Machine::run_fiber() {
  Machine& own = machine();
  finish_switch(nullptr, &own.host_sanitizer_);
  order_after(&own.start_);
  order_after(&own.points().barrier[0]);
  own.grid_->thread(own.grid_->context);
  order_before(&own.end_);
  own.pause(Wait::kEnded);
  std::abort();  // an ended fiber is not resumed
}

void Machine::resume(Fiber& fiber) {
  current_ = &fiber;
  threadIdx = fiber.thread;
  fiber.sanitizer.bottom = fiber.stack;
  fiber.sanitizer.bytes = kStackBytes;
  start_switch(&host_sanitizer_.fake, fiber.sanitizer);
  trainscope_switch_stack(&host_stack_, fiber.stack_pointer);
  finish_switch(host_sanitizer_.fake, nullptr);
}

void Machine::pause(Wait wait) {
  Fiber& fiber = *current_;
  fiber.wait = wait;
  start_switch(wait == Wait::kEnded ? nullptr : &fiber.sanitizer.fake, host_sanitizer_);
  trainscope_switch_stack(&fiber.stack_pointer, host_stack_);
  finish_switch(fiber.sanitizer.fake, &host_sanitizer_);
}

void Machine::run_block() {
  const std::span<Fiber> fibers(fibers_.data(), threads_);
  while (true) {
    bool ran = false;
    if (seed_ != 0) shuffle_order(order_, random_);
    for (const unsigned i : order_) {
      if (fibers[i].wait != Wait::kNone) continue;
      resume(fibers[i]);
      ran = true;
    }
    for (unsigned warp = 0; warp * kLanes < threads_; ++warp) ran |= let_lanes_meet(warp);
    if (std::ranges::all_of(fibers, [](const Fiber& f) { return f.wait == Wait::kEnded; })) return;
    if (!ran && !pass_barrier()) {
      current_ =
          &*std::ranges::find_if(fibers, [](const Fiber& f) { return f.wait != Wait::kEnded; });
      die(current_->wait == Wait::kBlock ? "a barrier is not reached by every thread of the block"
                                         : "lanes wait for others that do not come");
    }
  }
}

// True when all threads of the block are at the same barrier.
bool Machine::pass_barrier() {
  const std::span<Fiber> fibers(fibers_.data(), threads_);
  int votes = 0;
  for (Fiber& fiber : fibers) {
    if (fiber.wait != Wait::kBlock) return false;
    current_ = &fiber;
    if (fiber.place != fibers[0].place) die("threads of a block meet at different barriers");
    votes += fiber.vote ? 1 : 0;
  }
  for (Fiber& fiber : fibers) {
    fiber.votes = votes;
    fiber.wait = Wait::kNone;
  }
  return true;
}

bool Machine::let_lanes_meet(unsigned warp) {
  const unsigned first = warp * kLanes;
  const std::span<Fiber> lanes(fibers_.data() + first, std::min(kLanes, threads_ - first));
  unsigned waiting = 0;
  for (const Fiber& fiber : lanes) {
    if (fiber.wait == Wait::kWarp) waiting |= 1U << fiber.lane;
  }
  bool met = false;
  for (const Fiber& fiber : lanes) {
    if (fiber.wait != Wait::kWarp || (waiting & fiber.mask) != fiber.mask) continue;
    exchange(lanes, fiber.mask);
    waiting &= ~fiber.mask;
    met = true;
  }
  return met;
}

// All lanes of the mask are there.
void Machine::exchange(std::span<Fiber> lanes, unsigned mask) {
  LaneWords words{.mask = mask};
  const Place place = lanes[static_cast<std::size_t>(__builtin_ctz(mask))].place;
  for (Fiber& fiber : lanes) {
    if ((mask >> fiber.lane & 1U) == 0) continue;
    current_ = &fiber;
    if (fiber.mask != mask || fiber.place != place) die("lanes meet at different intrinsics");
    words.words[fiber.lane] = fiber.word;
  }
  for (Fiber& fiber : lanes) {
    if ((mask >> fiber.lane & 1U) == 0) continue;
    fiber.words = words;
    fiber.wait = Wait::kNone;
  }
}

void* Machine::shared_array(const void* key, std::size_t bytes) {
  const auto found = std::ranges::find(arrays_, key, &SharedArray::key);
  if (found != arrays_.end()) return found->data;
  shared_bytes_ += bytes;
  if (arrays_.size() == kMaxArrays) die("more shared arrays than the emulator keeps");
  if (shared_bytes_ > kMaxSharedBytes) die("more shared memory than a block can have");
  std::byte* data = shared_.get() + shared_end_;
  unpoison(data, bytes);
  fill_unseen(data, 0xFF, bytes);  // by no thread of the block
  arrays_.push_back({.key = key, .data = data});
  shared_end_ = (shared_end_ + bytes + kZoneBytes + 15) / 16 * 16;
  return data;
}

}  // namespace

void die(const char* what) {
  std::fprintf(stderr, "emulator: %s (block %u,%u,%u, thread %u,%u,%u)\n", what, blockIdx.x,
               blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

void run_grid(const GridOfThreads& grid) { machine().run(grid); }
void set_seed(std::uint64_t seed) { machine().set_seed(seed); }
std::int64_t grids_run() { return machine().grids_run(); }
std::vector<Place> take_barriers() { return machine().take_barriers(); }
void skip_barrier(std::optional<Place> place) { machine().skip_barrier(place); }
void run_grids_by(Runner runner) { machine().run_grids_by(std::move(runner)); }

void* shared_array(const void* key, std::size_t bytes) {
  return machine().shared_array(key, bytes);
}
void* dynamic_shared_memory() { return machine().dynamic_shared_memory(); }
unsigned lane() { return machine().current().lane; }

int meet_block(const Place& place, bool vote) {
  Fiber& fiber = machine().current();
  if (!machine().comes_to(place)) return vote ? 1 : 0;
  fiber.place = place;
  fiber.vote = vote;
  char* point = &machine().points().barrier[++fiber.barriers % 2];
  order_before(point);
  machine().pause(Wait::kBlock);
  order_after(point);
  return fiber.votes;
}

const LaneWords& meet_warp(const Place& place, unsigned mask, std::uint64_t word) {
  Fiber& fiber = machine().current();
  if ((mask >> fiber.lane & 1U) == 0) die("a lane calls an intrinsic whose mask leaves it out");
  fiber.place = place;
  fiber.mask = mask;
  fiber.word = word;
  // Shuffles and votes order no memory.
  const bool orders = place.intrinsic == Intrinsic::kWarpBarrier;
  if (orders && !machine().comes_to(place)) return fiber.words;
  const auto warp = static_cast<std::size_t>(&fiber - machine().first_fiber()) / kLanes;
  char* point = &machine().points().warps[warp];
  if (orders) order_before(point);
  machine().pause(Wait::kWarp);
  if (orders) order_after(point);
  return fiber.words;
}

}  // namespace trainscope::cuda::emulator
