// Dropout whose mask is a function of a counter, so that backward replays it.
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/cuda/attention/dropout_mask.h"
#include "kernels/cuda/support/pack.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

constexpr int kWords = 4;  // random words, and so elements, of one Philox block

// x -> y, which may be x: a thread draws the words of four elements, which it moves at once where
// x and y allow it. Bytes: x read and y written once, and by each thread the 8 of the step read.
// FLOPs: 1 an element.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    drop_elements(const T* x, T* y, std::int64_t elements, bool packs, const DropoutMask mask) {
  using C = Computed<T>;
  using Four = Pack<T, kWords>;
  const std::uint64_t key = mask.key();
  const C factor = static_cast<C>(mask.scale);
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t block = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       block * kWords < elements; block += threads) {
    const auto words = random_block(key, mask.stream, static_cast<std::uint64_t>(block));
    const auto kept = [&](T value, int k) {
      const C scaled = static_cast<C>(value) * factor;
      return static_cast<T>(mask.keeps(words[static_cast<std::size_t>(k)]) ? scaled : C{0});
    };
    const std::int64_t first = block * kWords;
    if (packs && first + kWords <= elements) {
      Four four = *reinterpret_cast<const Four*>(x + first);
#pragma unroll
      for (int k = 0; k < kWords; ++k) four.values[k] = kept(four.values[k], k);
      *reinterpret_cast<Four*>(y + first) = four;
      continue;
    }
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (first + k < elements) y[first + k] = kept(x[first + k], k);
    }
  }
}

// x, step [] -> y
template <typename T>
void random_dropout(const RunArgs& args) {
  const std::int64_t elements = args.outputs[0].elements();
  const DropoutMask mask =
      dropout_mask(std::get<DropoutParams>(args.params), args.inputs[1].as<const std::int64_t>());
  const T* x = args.inputs[0].as<const T>();
  T* y = args.outputs[0].as<T>();
  launch(args.call,
         {.blocks = team_blocks(elements, kWords * kTeamThreads), .threads = dim3(kTeamThreads)},
         drop_elements<T>, x, y, elements, takes_packs(x) && takes_packs(y), mask);
}

template <typename T>
void add_dropout_for(KernelTable& table) {
  table.add("RandomDropout", kDTypeOf<T>,
            {.name = "random_dropout.cuda", .run = random_dropout<T>});
}

}  // namespace

void add_random(KernelTable& table) {
  add_dropout_for<float>(table);
  add_dropout_for<BFloat16>(table);
  add_dropout_for<Float16>(table);
}

}  // namespace trainscope::cuda
