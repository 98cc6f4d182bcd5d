// What non-temporal stores would save: passes as a step has them, with both kinds of stores.
// One JSON line for each: {"pass","mib","threads","ordinary_ms","nontemporal_ms"}, medians of runs
// in turn. Usage: stores_bench [THREADS]
#include <fmt/format.h>
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "bench/measuring.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr int kRounds = 21;
constexpr std::int64_t kLanes = 4;  // of SSE, which every processor has

template <bool kNonTemporal>
void store(float* to, __m128 value) {
  if constexpr (kNonTemporal) {
    _mm_stream_ps(to, value);
  } else {
    _mm_store_ps(to, value);
  }
}

// Zeroed arrays that begin at a cache line.
struct Arrays {
  bench::Buffer memory;
  std::array<float*, 4> at{};
  std::int64_t elements;

  explicit Arrays(std::int64_t n)
      : memory(sizeof(float) * static_cast<std::size_t>(4 * n)), elements(n) {
    float* next = memory.floats();
    for (float*& each : at) each = std::exchange(next, next + n);
  }
};

template <class F>
void over(const Arrays& arrays, int threads, F f) {
  parallel_for(threads, arrays.elements / kLanes, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * kLanes; i < end * kLanes; i += kLanes) f(i);
    _mm_sfence();
  });
}

// y = x * x + x, then another op reads y: an activation between two matmuls.
template <bool kNonTemporal>
void map_and_read(const Arrays& arrays, int threads) {
  const auto [x, y, z, unused] = arrays.at;
  over(arrays, threads, [&, x = x, y = y](std::int64_t i) {
    const __m128 v = _mm_load_ps(x + i);
    store<kNonTemporal>(y + i, _mm_add_ps(_mm_mul_ps(v, v), v));
  });
  over(arrays, threads, [&, x = x, y = y](std::int64_t i) {
    _mm_store_ps(x + i, _mm_add_ps(_mm_load_ps(y + i), _mm_load_ps(x + i)));
  });
}

// An op whose result is read much later: a gradient by a weight before the update.
template <bool kNonTemporal>
void map_alone(const Arrays& arrays, int threads) {
  const auto [x, y, z, unused] = arrays.at;
  over(arrays, threads, [&, x = x, y = y](std::int64_t i) {
    const __m128 v = _mm_load_ps(x + i);
    store<kNonTemporal>(y + i, _mm_add_ps(_mm_mul_ps(v, v), v));
  });
}

// Four arrays are read, three of them written: AdamW's update.
template <bool kNonTemporal>
void update(const Arrays& arrays, int threads) {
  const auto [p, m, v, g] = arrays.at;
  over(arrays, threads, [&, p = p, m = m, v = v, g = g](std::int64_t i) {
    const __m128 slope = _mm_load_ps(g + i);
    const __m128 first = _mm_add_ps(_mm_load_ps(m + i), slope);
    const __m128 second = _mm_add_ps(_mm_load_ps(v + i), _mm_mul_ps(slope, slope));
    store<kNonTemporal>(m + i, first);
    store<kNonTemporal>(v + i, second);
    store<kNonTemporal>(p + i, _mm_sub_ps(_mm_load_ps(p + i), first));
  });
}

using Run = void (*)(const Arrays&, int threads);

void compare(std::string_view pass, std::int64_t mib, int threads, Run ordinary, Run nontemporal) {
  const Arrays arrays((mib << 20) / static_cast<std::int64_t>(sizeof(float)));
  std::array<bench::Rounds, 2> taken;
  for (int round = 0; round < kRounds; ++round) {
    taken[0].times.push_back(bench::milliseconds([&] { ordinary(arrays, threads); }));
    taken[1].times.push_back(bench::milliseconds([&] { nontemporal(arrays, threads); }));
  }
  fmt::print(
      "{{\"pass\":\"{}\",\"mib\":{},\"threads\":{},\"ordinary_ms\":{:.3f},"
      "\"nontemporal_ms\":{:.3f}}}\n",
      pass, mib, threads, taken[0].median(), taken[1].median());
}

}  // namespace
}  // namespace trainscope::cpu

int main(int count, char** arguments) {
  using namespace trainscope::cpu;
  const int threads = count > 1 ? std::max(1, std::atoi(arguments[1])) : 2;
  for (const std::int64_t mib : {1, 4, 18, 72}) {
    compare("map, then read", mib, threads, map_and_read<false>, map_and_read<true>);
    compare("map", mib, threads, map_alone<false>, map_alone<true>);
    compare("update", mib, threads, update<false>, update<true>);
  }
  return 0;
}
