// Sums over partials of one result, such as each batch tile makes.
#include <algorithm>
#include <cstdint>

#include "kernels/api/kernel.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

constexpr int kMostPartials = 64;  // of one launch; more are added by further ones

template <typename T>
struct PartialSums {
  const T* partials[kMostPartials];
  int count;
  T* out;  // may be the first
  std::int64_t elements;
};

// out = partials[0] + partials[1] + ..., in this order for each element. Bytes: each partial read
// and out written once. FLOPs: 1 an element of each but the first.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads) sum_in_order(const PartialSums<T> a) {
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < a.elements;
       i += threads) {
    T sum = a.partials[0][i];
    for (int k = 1; k < a.count; ++k) sum += a.partials[k][i];
    a.out[i] = sum;
  }
}

template <typename T>
void add_all(const RunArgs& args) {
  PartialSums<T> sums{};
  sums.out = args.outputs[0].as<T>();
  sums.elements = args.outputs[0].elements();
  const Grid grid{.blocks = team_blocks(sums.elements, kTeamThreads),
                  .threads = dim3(kTeamThreads)};
  sums.partials[sums.count++] = args.inputs[0].as<const T>();
  for (const TensorView& input : args.inputs.subspan(1)) {
    if (sums.count == kMostPartials) {
      launch(args.call, grid, sum_in_order<T>, sums);
      sums.partials[0] = sums.out;
      sums.count = 1;
    }
    sums.partials[sums.count++] = input.as<const T>();
  }
  launch(args.call, grid, sum_in_order<T>, sums);
}

}  // namespace

void add_partials(KernelTable& table) {
  table.add("AddPartials", DType::kF32, {.name = "add_partials.cuda", .run = add_all<float>});
}

}  // namespace trainscope::cuda
