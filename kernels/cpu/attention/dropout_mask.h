// The mask of dropout as a function of a counter: any run of elements can be drawn, and drawn a
// second time.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/api/params.h"
#include "kernels/api/random.h"

namespace trainscope::cpu {

// Keeps element i where random_uniform(key, stream, i) >= ratio. Each step of a stream has a key of
// its own, drawn from that stream: masks of different steps are as independent as those of
// different seeds.
class DropoutMask {
 public:
  static constexpr std::int64_t kTile = 256;  // elements whose words are drawn before they are used

  DropoutMask() = default;  // keeps everything
  DropoutMask(const DropoutParams& params, std::int64_t step)
      : key_(random_u64(params.seed, params.stream, static_cast<std::uint64_t>(step))),
        stream_(params.stream),
        threshold_(static_cast<std::int32_t>(std::ceil(params.ratio * 0x1p24))),
        scale_(1.0 / (1.0 - params.ratio)) {}

  bool keeps_all() const { return threshold_ == 0; }
  // What a kept element is multiplied with.
  double scale() const { return scale_; }

  // The number that tells, for the word of an element, whether it is kept: keeps(word,
  // threshold()). Integers, so that every dtype has the same mask.
  std::int32_t threshold() const { return threshold_; }
  static bool keeps(std::int32_t word, std::int32_t threshold) {
    return ((word >> 8) & 0xFFFFFF) >= threshold;
  }

  // f(words, begin, n) for one piece of the elements [first, first + count) after the other:
  // words[i] is that of element first + begin + i, for i in [0, n).
  template <class F>
  void for_each_piece(std::int64_t first, std::int64_t count, F f) const {
    alignas(64) std::int32_t words[kTile];
    std::int64_t before = first % kWords;  // words of the first block that nobody asks for
    for (std::int64_t begin = 0; begin < count;) {
      const std::int64_t n = std::min(kTile - before, count - begin);
      draw((first + begin) / kWords, before + n, words);
      f(words + before, begin, n);
      begin += n;
      before = 0;
    }
  }

 private:
  static constexpr std::int64_t kWords = 4;  // random words, and so elements, of one Philox block

  // The words of `count` elements or a few more, from a block on.
  void draw(std::int64_t block, std::int64_t count, std::int32_t* words) const {
    constexpr std::int64_t kBlocks = kGroups * kLanes;  // at once
    for (std::int64_t i = 0; i < count; i += kBlocks * kWords) {
      draw_blocks(key_, stream_, static_cast<std::uint64_t>(block + i / kWords), words + i);
    }
  }

  // Blocks whose words lie in lanes of 64 bits, and how many such groups are drawn together: a
  // round of one waits for the round before.
  static constexpr int kLanes = 4;
  static constexpr int kGroups = 2;

  // The elements of random_block(key, stream, first + i) for kGroups * kLanes blocks: philox() on
  // lanes. What a lane's upper half holds does not matter: multiplications do not read it.
  static void draw_blocks(std::uint64_t key, std::uint64_t stream, std::uint64_t first,
                          std::int32_t* elements) {
    const auto lanes = [](std::uint64_t value) {
      return _mm256_set1_epi64x(static_cast<long long>(value));
    };
    __m256i w[kGroups][kWords];
    for (int group = 0; group < kGroups; ++group) {
      const __m256i block =
          _mm256_add_epi64(lanes(first + static_cast<std::uint64_t>(group) * kLanes),
                           _mm256_setr_epi64x(0, 1, 2, 3));
      w[group][0] = block;
      w[group][1] = _mm256_srli_epi64(block, 32);
      w[group][2] = lanes(stream);
      w[group][3] = lanes(stream >> 32);
    }
    auto low = static_cast<std::uint32_t>(key);
    auto high = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const __m256i keys[2] = {lanes(low), lanes(high)};
#pragma GCC unroll 2
      for (__m256i(&of)[kWords] : w) next_round(keys, of);
      low += 0x9E3779B9;
      high += 0xBB67AE85;
    }
#pragma GCC unroll 2
    for (int group = 0; group < kGroups; ++group) {
      store_in_order(w[group], elements + group * kLanes * kWords);
    }
  }

  static void next_round(const __m256i (&keys)[2], __m256i (&w)[kWords]) {
    const __m256i product0 = _mm256_mul_epu32(w[0], _mm256_set1_epi64x(0xD2511F53));
    const __m256i product2 = _mm256_mul_epu32(w[2], _mm256_set1_epi64x(0xCD9E8D57));
    w[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product2, 32), w[1]), keys[0]);
    w[1] = product2;
    w[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(product0, 32), w[3]), keys[1]);
    w[3] = product0;
  }

  static void store_in_order(const __m256i (&w)[kWords], std::int32_t* elements) {
    // Lane b of pair01 holds words 0 and 1 of block b.
    const __m256i pair01 = _mm256_blend_epi32(w[0], _mm256_slli_epi64(w[1], 32), 0xAA);
    const __m256i pair23 = _mm256_blend_epi32(w[2], _mm256_slli_epi64(w[3], 32), 0xAA);
    const __m256i blocks02 = _mm256_unpacklo_epi64(pair01, pair23);
    const __m256i blocks13 = _mm256_unpackhi_epi64(pair01, pair23);
    auto* out = reinterpret_cast<__m256i*>(elements);
    _mm256_store_si256(out, _mm256_permute2x128_si256(blocks02, blocks13, 0x20));
    _mm256_store_si256(out + 1, _mm256_permute2x128_si256(blocks02, blocks13, 0x31));
  }

  std::uint64_t key_ = 0;
  std::uint64_t stream_ = 0;
  std::int32_t threshold_ = 0;
  double scale_ = 1.0;
};

}  // namespace trainscope::cpu
