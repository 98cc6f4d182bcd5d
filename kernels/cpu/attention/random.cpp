// Dropout whose mask is a function of a counter, so that backward replays it.
#include <algorithm>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cpu/attention/dropout_mask.h"
#include "kernels/cpu/support/parallel.h"
#include "kernels/cpu/support/stored.h"

namespace trainscope::cpu {
namespace {

// x -> y, which may be x. Every element is read and scaled, so that there is no branch to
// mispredict.
template <typename T>
void drop(const DropoutMask& mask, std::int64_t begin, std::int64_t end, const T* x, T* y) {
  const auto factor = static_cast<Computed<T>>(mask.scale());
  const std::int32_t threshold = mask.threshold();
  mask.for_each_piece(
      begin, end - begin, [=](const std::int32_t* words, std::int64_t at, std::int64_t n) {
        const T* from = x + begin + at;
        T* to = y + begin + at;
#pragma omp simd
        for (std::int64_t i = 0; i < n; ++i) {
          const Computed<T> scaled = computed(from[i]) * factor;
          store(to[i], DropoutMask::keeps(words[i], threshold) ? scaled : Computed<T>{0});
        }
      });
}

// x, step [] -> y
template <typename T>
void random_dropout(const RunArgs& a) {
  const DropoutMask mask(std::get<DropoutParams>(a.params), *a.inputs[1].as<const std::int64_t>());
  const T* x = a.inputs[0].as<const T>();
  T* y = a.outputs[0].as<T>();
  const std::int64_t n = a.outputs[0].elements();
  constexpr std::int64_t kTile = DropoutMask::kTile;
  const std::int64_t tiles = (n + kTile - 1) / kTile;
  parallel_for(a.threads, tiles, kElementGrain / kTile / 8,
               [&](std::int64_t begin, std::int64_t end) {
                 drop(mask, begin * kTile, std::min(n, end * kTile), x, y);
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
