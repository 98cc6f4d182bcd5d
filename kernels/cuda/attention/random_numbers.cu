// Random numbers as functions of a counter: the same again when a step is run again.
#include <cmath>
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/random.h"
#include "kernels/cuda/support/teams.h"

namespace trainscope::cuda {
namespace {

// Each step of a stream has a key of its own, as a dropout's mask has.
struct RandomStream {
  std::uint64_t seed;
  std::uint64_t number;
  const std::int64_t* step;

  __device__ std::uint64_t key() const {
    return random_u64(seed, number, static_cast<std::uint64_t>(*step));
  }
};

RandomStream random_stream(const RunArgs& args) {
  const auto& params = std::get<DropoutParams>(args.params);
  return {.seed = params.seed,
          .number = params.stream,
          .step = args.inputs[0].as<const std::int64_t>()};
}

constexpr std::int64_t kUniforms = 4;  // of one Philox block

// From [0, 1): multiples of 2^-24. A thread draws four. Bytes: y written once.
template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    draw_uniform(T* y, std::int64_t elements, const RandomStream stream) {
  const std::uint64_t key = stream.key();
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t block = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
       block * kUniforms < elements; block += threads) {
    const auto words = random_block(key, stream.number, static_cast<std::uint64_t>(block));
    for (int k = 0; k < kUniforms; ++k) {
      const std::int64_t i = block * kUniforms + k;
      if (i >= elements) return;
      y[i] = static_cast<T>(unit_float(words[static_cast<std::size_t>(k)]));
    }
  }
}

// Two standard normals of a block, in double: as random_normal_pair.
struct NormalPair {
  double first;
  double second;
};
__device__ NormalPair normal_pair(std::uint64_t key, std::uint64_t stream, std::uint64_t pair) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  // In (0,1], so that the logarithm is finite.
  const double radius_draw = 1.0 - random_uniform_f64(key, stream, 2 * pair);
  const double angle = kTwoPi * random_uniform_f64(key, stream, 2 * pair + 1);
  const double radius = std::sqrt(-2.0 * std::log(radius_draw));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

template <typename T>
__global__ void __launch_bounds__(kTeamThreads)
    draw_normal(T* y, std::int64_t elements, const RandomStream stream) {
  const std::uint64_t key = stream.key();
  const std::int64_t threads = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t pair = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; 2 * pair < elements;
       pair += threads) {
    const NormalPair both = normal_pair(key, stream.number, static_cast<std::uint64_t>(pair));
    y[2 * pair] = static_cast<T>(both.first);
    if (2 * pair + 1 < elements) y[2 * pair + 1] = static_cast<T>(both.second);
  }
}

// step [] -> y
template <typename T>
void uniform_numbers(const RunArgs& args) {
  const std::int64_t elements = args.outputs[0].elements();
  launch(args.call,
         {.blocks = team_blocks(elements, kUniforms * kTeamThreads), .threads = dim3(kTeamThreads)},
         draw_uniform<T>, args.outputs[0].as<T>(), elements, random_stream(args));
}

// step [] -> y of mean 0 and variance 1
template <typename T>
void normal_numbers(const RunArgs& args) {
  const std::int64_t elements = args.outputs[0].elements();
  launch(args.call,
         {.blocks = team_blocks(elements, 2 * kTeamThreads), .threads = dim3(kTeamThreads)},
         draw_normal<T>, args.outputs[0].as<T>(), elements, random_stream(args));
}

}  // namespace

void add_random_numbers(KernelTable& table) {
  table.add("UniformNumbers", DType::kF32,
            {.name = "uniform_numbers.cuda", .run = uniform_numbers<float>});
  table.add("NormalNumbers", DType::kF32,
            {.name = "normal_numbers.cuda", .run = normal_numbers<float>});
}

}  // namespace trainscope::cuda
