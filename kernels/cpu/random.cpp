// Dropout whose mask is a function of a counter, so that backward replays it.
#include "kernels/api/random.h"

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/stored.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kWords = 4;   // random words, and so elements, of one Philox block
constexpr std::int64_t kTile = 256;  // elements whose words are drawn before they are used

// A word of 24 random bits keeps its element when it is at least this: uniform >= ratio without
// leaving the integers, so that every dtype has the same mask.
std::int32_t threshold_of(double ratio) {
  return static_cast<std::int32_t>(std::ceil(ratio * 0x1p24));
}

// Each step of a stream has a key of its own, drawn from that stream: masks of different steps
// are as independent as those of different seeds.
std::uint64_t step_key(const DropoutParams& params, std::int64_t step) {
  return random_u64(params.seed, params.stream, static_cast<std::uint64_t>(step));
}

// The elements of random_block(key, stream, first + 0..3): philox() for four blocks at once, one to
// a 64-bit lane. What a lane's upper half holds does not matter: products do not read it.
void draw_four_blocks(std::uint64_t key, std::uint64_t stream, std::uint64_t first,
                      std::int32_t* elements) {
  const auto lanes = [](std::uint64_t value) {
    return _mm256_set1_epi64x(static_cast<long long>(value));
  };
  const __m256i block = _mm256_add_epi64(lanes(first), _mm256_setr_epi64x(0, 1, 2, 3));
  __m256i w[kWords] = {block, _mm256_srli_epi64(block, 32), lanes(stream), lanes(stream >> 32)};
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m256i product0 = _mm256_mul_epu32(w[0], lanes(0xD2511F53));
    const __m256i product2 = _mm256_mul_epu32(w[2], lanes(0xCD9E8D57));
    w[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product2, 32), w[1]), lanes(low));
    w[1] = product2;
    w[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), w[3]), lanes(high));
    w[3] = product0;
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  // Lane b of pair01 holds words 0 and 1 of block b.
  const __m256i pair01 = _mm256_blend_epi32(w[0], _mm256_slli_epi64(w[1], 32), 0xAA);
  const __m256i pair23 = _mm256_blend_epi32(w[2], _mm256_slli_epi64(w[3], 32), 0xAA);
  const __m256i blocks02 = _mm256_unpacklo_epi64(pair01, pair23);
  const __m256i blocks13 = _mm256_unpackhi_epi64(pair01, pair23);
  auto* out = reinterpret_cast<__m256i*>(elements);
  _mm256_store_si256(out, _mm256_permute2x128_si256(blocks02, blocks13, 0x20));
  _mm256_store_si256(out + 1, _mm256_permute2x128_si256(blocks02, blocks13, 0x31));
}

// x, step [] -> y; y may be x.
template <typename T>
struct Dropout {
  const T* x;
  T* y;
  std::uint64_t key;
  std::uint64_t stream;
  std::int32_t threshold;
  Computed<T> scale;

  // Every element is read and scaled, so that there is no branch to mispredict.
  void apply(const std::int32_t* words, const T* from, T* to, std::int64_t count) const {
    const std::int32_t limit = threshold;
    const Computed<T> factor = scale;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t draw = (words[i] >> 8) & 0xFFFFFF;
      const Computed<T> scaled = computed(from[i]) * factor;
      store(to[i], draw >= limit ? scaled : Computed<T>{0});
    }
  }

  // Elements [begin, end); `begin` is a multiple of the tile.
  void run(std::int64_t begin, std::int64_t end) const {
    alignas(32) std::int32_t words[kTile];
    for (std::int64_t tile = begin; tile < end; tile += kTile) {
      for (std::int64_t i = 0; i < kTile; i += 4 * kWords) {
        draw_four_blocks(key, stream, static_cast<std::uint64_t>((tile + i) / kWords), words + i);
      }
      const std::int64_t count = std::min(kTile, end - tile);
      apply(words, x + tile, y + tile, count);
    }
  }
};

template <typename T>
void random_dropout(const RunArgs& a) {
  const auto& params = std::get<DropoutParams>(a.params);
  const Dropout<T> dropout{.x = a.inputs[0].as<const T>(),
                           .y = a.outputs[0].as<T>(),
                           .key = step_key(params, *a.inputs[1].as<const std::int64_t>()),
                           .stream = params.stream,
                           .threshold = threshold_of(params.ratio),
                           .scale = static_cast<Computed<T>>(1.0 / (1.0 - params.ratio))};
  const std::int64_t n = a.outputs[0].elements();
  const std::int64_t tiles = (n + kTile - 1) / kTile;
  parallel_for(a.threads, tiles, kElementGrain / kTile / 8,
               [&](std::int64_t begin, std::int64_t end) {
                 dropout.run(begin * kTile, std::min(n, end * kTile));
               });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("RandomDropout", kDTypeOf<T>,
            {.name = "random_dropout.reference", .run = random_dropout<T>});
}

}  // namespace

void add_random(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
  add_for<BFloat16>(table);
  add_for<Float16>(table);
}

}  // namespace trainscope::cpu
