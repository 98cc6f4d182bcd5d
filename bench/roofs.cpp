// What this machine can do at most: fused multiply-adds in registers and L1, and traffic to memory.
// One JSON line: {"threads","gflops","gbps"}. Usage: roofs_bench [THREADS]
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "bench/measuring.h"
#include "kernels/cpu/gemm/gemm_tile.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr int kRounds = 15;

template <class F>
double best_seconds(F f) {
  bench::Rounds taken;
  for (int round = 0; round < kRounds; ++round) taken.times.push_back(bench::milliseconds(f));
  return taken.least() * 1e-3;
}

template <class F>
void on_each_thread(int threads, F f) {
  parallel_for(threads, threads, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t thread = begin; thread < end; ++thread) f(thread);
  });
}

// The tile of our own GEMM on panels that stay in L1.
double gflops(int threads) {
  constexpr std::int64_t kDepth = 128;
  constexpr int kTimes = 20000;
  const GemmTile<float>& tile = gemm_tiles<float>().front();
  const auto elements = static_cast<std::size_t>((tile.rows + tile.columns) * (kDepth + 64));
  std::vector<std::vector<float>> a(static_cast<std::size_t>(threads));
  std::vector<std::vector<float>> b = a;
  std::vector<std::vector<float>> c = a;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (auto* each : {&a[i], &b[i], &c[i]}) each->assign(elements, 0.5F);
  }
  const double seconds = best_seconds([&] {
    on_each_thread(threads, [&](std::int64_t thread) {
      const auto i = static_cast<std::size_t>(thread);
      const TileOperands<float> operands{.depth = kDepth,
                                         .a = a[i].data(),
                                         .a_line = 1,
                                         .a_step = tile.rows,
                                         .b = b[i].data(),
                                         .c = c[i].data(),
                                         .c_row = tile.columns};
      for (int time = 0; time < kTimes; ++time) tile.lines_together(operands);
    });
  });
  const auto flops = static_cast<double>(2 * tile.rows * tile.columns * kDepth) * kTimes;
  return flops * threads / seconds * 1e-9;
}

// a = b + c of arrays that no cache holds (McCalpin's STREAM counts them so, without the read that
// a write causes).
double gbps(int threads) {
  const std::size_t elements = std::size_t{32} << 20;
  std::vector<float> a(elements);
  std::vector<float> b(elements, 1.0F);
  std::vector<float> c(elements, 2.0F);
  const double seconds = best_seconds([&] {
    parallel_for(threads, static_cast<std::int64_t>(elements), 1,
                 [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
                   for (std::int64_t i = begin; i < end; ++i) {
                     const auto at = static_cast<std::size_t>(i);
                     a[at] = b[at] + c[at];
                   }
                 });
  });
  return 3.0 * static_cast<double>(elements * sizeof(float)) / seconds * 1e-9;
}

}  // namespace
}  // namespace trainscope::cpu

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::max(1, std::atoi(arguments[1])) : 2;
  fmt::print("{{\"threads\":{},\"gflops\":{:.1f},\"gbps\":{:.1f}}}\n", threads,
             trainscope::cpu::gflops(threads), trainscope::cpu::gbps(threads));
  return 0;
}
