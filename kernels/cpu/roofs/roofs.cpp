// Loops over arrays of the caches' sizes, tiles of GEMM, empty calls.
#include "kernels/cpu/roofs/roofs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <new>
#include <string>
#include <vector>

#include "kernels/api/kernel.h"
#include "kernels/cpu/gemm/gemm_tile.h"
#include "kernels/cpu/roofs/cache_sizes.h"
#include "kernels/cpu/roofs/memory_loops.h"
#include "kernels/cpu/support/pages.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/processor.h"
#include "kernels/cpu/support/rounding.h"

namespace trainscope::cpu {
namespace {

constexpr int kFewestRounds = 5;
constexpr std::int64_t kMostTimes = std::int64_t{1} << 40;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// When each thread of a round began and ended its own work: threads that start late, because others
// run, are no part of it.
class Round {
 public:
  explicit Round(int threads) : times_(static_cast<std::size_t>(threads)) {}

  template <class F>
  void run(F f) {
    const auto threads = static_cast<std::int64_t>(times_.size());
    parallel_for(static_cast<int>(threads), threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t thread = begin; thread < end; ++thread) {
        Times& own = times_[static_cast<std::size_t>(thread)];
        own.begin = seconds_now();
        f(thread);
        own.end = seconds_now();
      }
    });
  }
  double longest() const {
    double longest = 0.0;
    for (const Times& own : times_) longest = std::max(longest, own.end - own.begin);
    return longest;
  }
  // From the first beginning to the last end.
  double whole() const {
    const auto first = std::ranges::min_element(times_, {}, &Times::begin);
    const auto last = std::ranges::max_element(times_, {}, &Times::end);
    return last->end - first->begin;
  }

 private:
  struct Times {
    double begin = 0.0;
    double end = 0.0;
  };
  std::vector<Times> times_;
};

// The least time of one of the rounds in which each thread does f(thread, times), the same thing so
// many times, divided by these. A round takes a tenth of `seconds` or more, all of them about twice
// that.
template <class F>
double least_seconds(int threads, double seconds, F f) {
  Round round(threads);
  std::int64_t times = 1;
  const double start = seconds_now();
  const auto run = [&] {
    round.run([&](std::int64_t thread) { f(thread, times); });
    return round.whole();
  };
  double least = run();
  while (round.longest() < seconds / 10 && times < kMostTimes) {
    times *= 2;
    least = run();
  }
  for (int more = 1; more < kFewestRounds || seconds_now() - start < 2 * seconds; ++more) {
    least = std::min(least, run());
  }
  return std::max(least, 1e-9) / static_cast<double>(times);
}

// --- Bytes ---------------------------------------------------------------------------------------

// Lines of each thread, touched by it first, in pages as programs' arenas have them.
class Lines {
 public:
  Lines(int threads, std::int64_t of_thread)
      : of_thread_(round_up(of_thread, kLinesTogether)),
        bytes_(static_cast<std::size_t>(threads) * static_cast<std::size_t>(of_thread_) *
               sizeof(Line)),
        memory_(map_pages(bytes_)) {
    if (memory_ == nullptr) throw std::bad_alloc();
    parallel_for(threads, threads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t thread = begin; thread < end; ++thread) {
        write_lines(lines(thread), of_thread_, 1.0F);
      }
    });
  }
  ~Lines() { unmap_pages(memory_, bytes_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  Line* lines(std::int64_t thread) {
    return reinterpret_cast<Line*>(memory_) + thread * of_thread_;
  }

 private:
  std::int64_t of_thread_;
  std::size_t bytes_;
  std::byte* memory_;
};

struct Traffic {
  double read = 0.0;
  double write = 0.0;
  double copy = 0.0;
  double update = 0.0;
};

// Of passes over `bytes` bytes of each thread; a copy goes from one half of them to the other.
Traffic traffic(int threads, std::int64_t bytes, double seconds) {
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Line));
  const std::int64_t lines = std::max<std::int64_t>(2 * kLinesTogether, bytes / kBytes);
  const std::int64_t half = lines / 2 / kLinesTogether * kLinesTogether;
  Lines memory(threads, 2 * half);
  const auto per_second = [&](auto pass) {
    const double taken =
        least_seconds(threads, seconds, [&](std::int64_t thread, std::int64_t times) {
          for (std::int64_t i = 0; i < times; ++i) pass(memory.lines(thread));
        });
    return static_cast<double>(threads) * static_cast<double>(2 * half * kBytes) / taken;
  };
  // All of the bytes are read and written.
  const double updated_once = per_second([=](Line* line) { update_lines(line, 2 * half); });
  return {.read = per_second([=](const Line* line) { read_lines(line, 2 * half); }),
          .write = per_second([=](Line* line) { write_lines(line, 2 * half, 2.0F); }),
          .copy = per_second([=](Line* line) { copy_lines(line, half, line + half); }),
          .update = 2.0 * updated_once};
}

MemoryLevel level_of(const std::string& name, std::int64_t bytes, std::int64_t of_thread,
                     const MeasureOptions& options) {
  const Traffic one = traffic(1, of_thread, options.seconds);
  const Traffic all =
      options.threads == 1 ? one : traffic(options.threads, of_thread, options.seconds);
  return {.name = name,
          .bytes = bytes,
          .read = {.one = one.read, .all = all.read},
          .write = {.one = one.write, .all = all.write},
          .copy = {.one = one.copy, .all = all.copy},
          .update = Rate{.one = one.update, .all = all.update}};
}

// Caches are passed over by halves, the last one, which cores share, by all threads together;
// memory by four times the last cache.
std::vector<MemoryLevel> levels_of(const MeasureOptions& options) {
  const auto most = static_cast<std::int64_t>(options.most_bytes);
  const std::vector<CacheLevel> caches = cache_sizes();
  std::vector<MemoryLevel> levels;
  for (const CacheLevel& cache : caches) {
    const std::int64_t sharing = cache.level > 2 ? options.threads : 1;
    const std::int64_t of_thread =
        std::min(cache.bytes / 2 / sharing, most / std::max(1, options.threads));
    levels.push_back(level_of("L" + std::to_string(cache.level), cache.bytes, of_thread, options));
  }
  constexpr std::int64_t kLeast = std::int64_t{256} << 20;
  const std::int64_t all = std::min(most, std::max(kLeast, 4 * caches.back().bytes));
  levels.push_back(level_of("memory", std::max(memory_bytes(), caches.back().bytes),
                            all / std::max(1, options.threads), options));
  return levels;
}

// --- FLOPs ---------------------------------------------------------------------------------------

// Of the tile on panels of A and B that stay in L1.
template <typename T>
double flops_per_second(const GemmTile<T>& tile, int threads, double seconds) {
  constexpr std::int64_t kDepth = 128;  // packed elements
  const std::int64_t elements =
      (kDepth + 1) * (tile.rows + tile.columns) + tile.rows * tile.columns;
  constexpr auto kOfLine = static_cast<std::int64_t>(sizeof(Line) / sizeof(Computed<T>));
  static_assert(sizeof(Packed<T>) <= sizeof(Computed<T>));
  Lines memory(threads, divide_up(elements, kOfLine) + 3);
  const std::int64_t lines_of_a = divide_up(kDepth * tile.rows, kOfLine) + 1;
  const std::int64_t lines_of_b = divide_up(kDepth * tile.columns, kOfLine) + 1;
  const double taken =
      least_seconds(threads, seconds, [&](std::int64_t thread, std::int64_t times) {
        Line* panels = memory.lines(thread);
        const TileOperands<T> operands{
            .depth = kDepth,
            .a = reinterpret_cast<const Packed<T>*>(panels),
            .a_line = 1,
            .a_step = tile.rows,
            .b = reinterpret_cast<const Packed<T>*>(panels + lines_of_a),
            .c = reinterpret_cast<Computed<T>*>(panels + lines_of_a + lines_of_b),
            .c_row = tile.columns};
        for (std::int64_t i = 0; i < times; ++i) tile.lines_together(operands);
      });
  return static_cast<double>(2 * tile.rows * tile.columns * kDepth * kElementsPacked<T>) *
         static_cast<double>(threads) / taken;
}

template <typename T>
Rate flops_of(const GemmTile<T>& tile, const MeasureOptions& options) {
  const double one = flops_per_second(tile, 1, options.seconds);
  const double all =
      options.threads == 1 ? one : flops_per_second(tile, options.threads, options.seconds);
  return {.one = one, .all = all};
}

// --- Calls and forks -----------------------------------------------------------------------------

// Through a pointer that the compiler does not know, as kernels are called.
double seconds_of_call(double seconds) {
  float x = 1.0F;
  float y = 0.0F;
  const Params params = NoParams{};
  const TensorView input{.type = {.dtype = DType::kF32, .shape = {1}}, .data = &x};
  const TensorView output{.type = {.dtype = DType::kF32, .shape = {1}}, .data = &y};
  void (*volatile call)(const RunArgs&) = [](const RunArgs& args) {
    parallel_for(args.threads, args.outputs[0].elements(), kElementGrain,
                 [&](std::int64_t begin, std::int64_t end) {
                   const float* from = args.inputs[0].as<const float>();
                   float* to = args.outputs[0].as<float>();
                   for (std::int64_t i = begin; i < end; ++i) to[i] = from[i] + 1.0F;
                 });
  };
  return least_seconds(1, seconds, [&](std::int64_t, std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      call({.params = params, .inputs = {&input, 1}, .outputs = {&output, 1}});
    }
  });
}

// The least of many: of a fork that waits for other programs nothing is learnt.
double seconds_of_fork(const MeasureOptions& options) {
  const double start = seconds_now();
  double least = std::numeric_limits<double>::infinity();
  for (int fork = 0; fork < kFewestRounds || seconds_now() - start < options.seconds; ++fork) {
    const double begin = seconds_now();
    parallel_for(options.threads, options.threads, 1, [](std::int64_t, std::int64_t) {});
    least = std::min(least, seconds_now() - begin);
  }
  return std::max(least, 1e-9);
}

// Memory is the host's here: a transfer is a call that one thread copies bytes in. They count once,
// in the rate of a copy twice.
HostLink host_link_of(const Machine& machine) {
  return {.bytes_per_second = machine.memory().copy.one / 2,
          .seconds_per_transfer = machine.seconds_per_call};
}

}  // namespace

Machine measure_machine(const MeasureOptions& options) {
  limit_onednn();
  Machine machine;
  machine.cores = options.threads;
  machine.levels = levels_of(options);
  machine.flops_per_second[DType::kF32] = flops_of(gemm_tiles<float>().front(), options);
  machine.flops_per_second[DType::kF64] = flops_of(gemm_tiles<double>().front(), options);
  if (has_avx512_bf16()) {
    machine.flops_per_second[DType::kBF16] = flops_of(gemm_tile_avx512<BFloat16>(), options);
  } else {
    machine.without_flops[DType::kBF16] = "no AVX512_BF16 on this processor: computed in f32";
  }
  machine.without_flops[DType::kF16] = "no kernel multiplies it as it is: computed in f32";
  for (const DType integers : {DType::kI8, DType::kU8}) {
    machine.without_flops[integers] =
        "no kernel multiplies it as it is: quantized matmuls are written with f32's";
  }
  machine.seconds_per_call = seconds_of_call(options.seconds);
  machine.host_link = host_link_of(machine);
  machine.seconds_per_fork = seconds_of_fork(options);
  return machine;
}

}  // namespace trainscope::cpu
