// Random numbers as functions of a counter: the same for any number of threads, and again when a
// step is run again.
#include <cstdint>
#include <variant>

#include "kernels/api/kernel.h"
#include "kernels/api/random.h"
#include "kernels/cpu/support/parallel.h"

namespace trainscope::cpu {
namespace {

constexpr std::int64_t kDrawGrain = 2048;  // numbers worth a thread of their own

// Each step of a stream has a key of its own, as a dropout's mask has.
struct Stream {
  std::uint64_t key;
  std::uint64_t number;

  explicit Stream(const RunArgs& run) {
    const auto& params = std::get<DropoutParams>(run.params);
    const auto step = static_cast<std::uint64_t>(*run.inputs[0].as<const std::int64_t>());
    key = random_u64(params.seed, params.stream, step);
    number = params.stream;
  }
};

// step [] -> y, from [0, 1): multiples of 2^-24, so that they are below 1 in f32 too.
template <typename T>
void uniform(const RunArgs& run) {
  const Stream stream(run);
  T* y = run.outputs[0].as<T>();
  parallel_for(run.threads, run.outputs[0].elements(), kDrawGrain,
               [=](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   y[i] = static_cast<T>(
                       random_uniform(stream.key, stream.number, static_cast<std::uint64_t>(i)));
                 }
               });
}

// step [] -> y of mean 0 and variance 1
template <typename T>
void normal(const RunArgs& run) {
  const Stream stream(run);
  T* y = run.outputs[0].as<T>();
  const std::int64_t n = run.outputs[0].elements();
  parallel_for(run.threads, (n + 1) / 2, kDrawGrain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t pair = begin; pair < end; ++pair) {
      const auto both =
          random_normal_pair(stream.key, stream.number, static_cast<std::uint64_t>(pair));
      y[2 * pair] = static_cast<T>(both[0]);
      if (2 * pair + 1 < n) y[2 * pair + 1] = static_cast<T>(both[1]);
    }
  });
}

template <typename T>
void add_for(KernelTable& table) {
  table.add("UniformNumbers", kDTypeOf<T>, {.name = "uniform_numbers", .run = uniform<T>});
  table.add("NormalNumbers", kDTypeOf<T>, {.name = "normal_numbers", .run = normal<T>});
}

}  // namespace

void add_random_numbers(KernelTable& table) {
  add_for<float>(table);
  add_for<double>(table);
}

}  // namespace trainscope::cpu
