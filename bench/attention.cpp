// How long attention and its gradient take on heads like those of the standard workloads.
// One JSON line for each: {"shape","phase","threads","least_ms","median_ms","gflops"}; the last are
// those of the matmuls over the weights that are not masked, by the least time. Usage:
// attention_bench [THREADS [ROUNDS]]
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "bench/measuring.h"
#include "kernels/api/random.h"
#include "kernels/cpu/cpu_kernels.h"

namespace trainscope::cpu {
namespace {

struct Heads {
  std::string_view name;
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t tokens = 0;
  std::int64_t width = 0;
  bool gpt = false;  // causal, with q, k and v side by side; else a mask and weights that drop out

  Shape rows(std::int64_t of = 1) const { return {batch, tokens, of * heads, width}; }
  std::int64_t weights() const {
    return batch * heads * (gpt ? tokens * (tokens + 1) / 2 : tokens * tokens);
  }
};

constexpr Heads kShapes[] = {
    {.name = "w3", .batch = 12, .heads = 6, .tokens = 256, .width = 64, .gpt = true},
    {.name = "w4", .batch = 4, .heads = 12, .tokens = 256, .width = 64, .gpt = true},
    {.name = "w4-64", .batch = 4, .heads = 12, .tokens = 64, .width = 64, .gpt = true},
    {.name = "w5", .batch = 8, .heads = 12, .tokens = 128, .width = 64}};

// A tensor of standard normal numbers.
struct Numbers {
  Numbers(const Shape& of, std::uint64_t seed)
      : shape(of), values(static_cast<std::size_t>(of.elements())) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(random_normal(seed, 1, i));
    }
  }
  TensorView view() {
    return {.type = {.dtype = DType::kF32, .shape = shape}, .data = values.data()};
  }

  Shape shape;
  std::vector<float> values;
};

TensorView absent() { return {.type = {}, .data = nullptr, .present = false}; }

// Runs the op's first kernel `rounds` times and prints what it took.
void measure(std::string_view op, std::string_view phase, const Heads& heads, double matmuls,
             const Params& params, const std::vector<TensorView>& inputs,
             const std::vector<TensorView>& outputs, int threads, int rounds) {
  const KernelTable table = cpu_kernels();
  const Kernel& kernel = *table.find(op, DType::kF32).front();
  const Prepared prepared =
      kernel.prepare({.params = params, .inputs = inputs, .outputs = outputs, .threads = threads});
  bench::Buffer workspace(prepared.workspace_bytes);
  bench::Rounds taken;
  for (int round = 0; round < rounds; ++round) {
    taken.times.push_back(bench::milliseconds([&] {
      kernel.run({.params = params,
                  .inputs = inputs,
                  .outputs = outputs,
                  .workspace = workspace.bytes(),
                  .state = prepared.state.get(),
                  .threads = threads});
    }));
  }
  const double flops = matmuls * 2.0 * static_cast<double>(heads.width * heads.weights());
  fmt::print(
      "{{\"shape\":\"{}\",\"phase\":\"{}\",\"threads\":{},\"least_ms\":{:.3f},\"median_ms\":{:.3f},"
      "\"gflops\":{:.1f}}}\n",
      heads.name, phase, threads, taken.least(), taken.median(), flops / taken.least() * 1e-6);
}

void measure_both(const Heads& heads, int threads, int rounds) {
  const Shape rows = heads.rows(heads.gpt ? 3 : 1);
  Numbers q(rows, 1);  // or all three
  Numbers k(rows, 2);
  Numbers v(rows, 3);
  Numbers dy(heads.rows(), 4);
  Numbers y(heads.rows(), 5);
  Numbers bias({heads.batch, 1, 1, heads.tokens}, 6);
  Numbers statistics({heads.batch, heads.heads, heads.tokens, 2}, 7);
  Numbers dq(rows, 8);
  Numbers dk(rows, 9);
  Numbers dv(rows, 10);
  std::int64_t step = 1;
  const Params params =
      AttentionParams{.heads = heads.heads,
                      .kv_heads = heads.heads,
                      .scale = 0.125,
                      .causal = heads.gpt,
                      .packed = heads.gpt,
                      .dropout = {.ratio = heads.gpt ? 0.0 : 0.1, .seed = 1, .stream = 1}};
  std::vector<TensorView> inputs{q.view(),
                                 k.view(),
                                 v.view(),
                                 bias.view(),
                                 {.type = {.dtype = DType::kI64, .shape = {}}, .data = &step}};
  std::vector<TensorView> gradients{dq.view(), dk.view(), dv.view()};
  if (heads.gpt) {
    for (std::size_t i = 1; i < inputs.size(); ++i) inputs[i] = absent();
    gradients.resize(1);
  }
  measure("Attention", "forward", heads, 2, params, inputs, {y.view(), statistics.view()}, threads,
          rounds);
  std::vector<TensorView> all{dy.view(), y.view(), statistics.view()};
  all.insert(all.end(), inputs.begin(), inputs.end());
  measure("AttentionGrad", "backward", heads, 5, params, all, gradients, threads, rounds);
}

}  // namespace
}  // namespace trainscope::cpu

int main(int count, char** arguments) {
  using namespace trainscope::cpu;
  const int threads = count > 1 ? std::max(1, std::atoi(arguments[1])) : 1;
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 50;
  for (const Heads& heads : kShapes) measure_both(heads, threads, rounds);
  return 0;
}
