// Gradients by the weights of ResNet-18's convolutions of 3 x 3 (images of 32 x 32, batch 32), by
// the kernel that --kernels direct chooses, by oneDNN's direct one and by Winograd's form, in turn.
// One JSON line for each: its sizes and of "own", "onednn" and "winograd"
// {"kernel","gflops","best_gflops","bytes"}: median and best of the rounds (FLOPs of the direct
// form), bytes of workspace; null where none takes the case. Usage: conv_bench [THREADS [ROUNDS]]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/measuring.h"
#include "kernels/api/kernel.h"
#include "kernels/cpu/cpu_kernels.h"

namespace trainscope::cpu {
namespace {

// A convolution with windows of 3 x 3 and as much padding as keeps the size at stride 1.
struct Convolution {
  std::int64_t in_channels;
  std::int64_t out_channels;
  std::int64_t size;  // of the input's sides
  std::int64_t stride;

  std::int64_t out_size() const { return size / stride; }
};

constexpr std::int64_t kBatch = 32;
constexpr std::array<Convolution, 7> kConvolutions = {{{64, 64, 32, 1},
                                                       {64, 128, 32, 2},
                                                       {128, 128, 16, 1},
                                                       {128, 256, 16, 2},
                                                       {256, 256, 8, 1},
                                                       {256, 512, 8, 2},
                                                       {512, 512, 4, 1}}};

// A case and its memory, filled with numbers of both signs.
struct Case {
  Params params;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  std::vector<std::vector<float>> memory;

  explicit Case(const Convolution& c) {
    params = ConvParams{{.rank = 2,
                         .kernel = {3, 3, 1},
                         .stride = {c.stride, c.stride, 1},
                         .pad_begin = {1, 1, 0},
                         .pad_end = {1, 1, 0}}};
    inputs = {view({kBatch, c.in_channels, c.size, c.size}),
              view({kBatch, c.out_channels, c.out_size(), c.out_size()})};
    outputs = {view({c.out_channels, c.in_channels, 3, 3})};
  }
  TensorView view(const Shape& shape) {
    std::vector<float>& values = memory.emplace_back(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i * 2654435761U % 1024) / 512.0F - 1.0F;
    }
    return {.type = {.dtype = DType::kF32, .shape = shape}, .data = values.data()};
  }
};

// A kernel on a case.
struct Candidate {
  const Kernel* kernel;
  Prepared prepared;
  bench::Buffer workspace;
  bench::Rounds taken;

  void time(const Case& of, int threads) {
    taken.times.push_back(bench::milliseconds([&] {
      kernel->run({.params = of.params,
                   .inputs = of.inputs,
                   .outputs = of.outputs,
                   .workspace = workspace.bytes(),
                   .state = prepared.state.get(),
                   .threads = threads});
    }));
  }
};

// The preferred kernel of those that `wanted` says yes to, if one takes the case.
std::optional<Candidate> candidate(const KernelTable& table, const Case& of, int threads,
                                   bool (*wanted)(const Kernel&)) {
  const PrepareArgs args{
      .params = of.params, .inputs = of.inputs, .outputs = of.outputs, .threads = threads};
  for (const Kernel* kernel : table.find("ConvGradWeight", DType::kF32)) {
    if (!wanted(*kernel)) continue;
    if (kernel->supports != nullptr && !kernel->supports(args)) continue;
    Prepared prepared = kernel->prepare != nullptr ? kernel->prepare(args) : Prepared{};
    bench::Buffer workspace(prepared.workspace_bytes);
    return Candidate{kernel, std::move(prepared), std::move(workspace), {}};
  }
  return std::nullopt;
}

void compare(const KernelTable& table, const Convolution& c, int threads, int rounds) {
  const Case of(c);
  const auto direct = [](const Kernel& kernel) { return !kernel.transforms; };
  const auto onednn = [](const Kernel& kernel) { return kernel.name.ends_with("onednn"); };
  const auto winograd = [](const Kernel& kernel) { return kernel.transforms; };
  std::array<std::optional<Candidate>, 3> all = {candidate(table, of, threads, direct),
                                                 candidate(table, of, threads, onednn),
                                                 candidate(table, of, threads, winograd)};
  for (int round = 0; round < rounds; ++round) {
    for (std::optional<Candidate>& each : all) {
      if (each) each->time(of, threads);
    }
  }
  const double flops = 18e-6 * static_cast<double>(kBatch * c.out_size() * c.out_size() *
                                                   c.in_channels * c.out_channels);
  const auto text = [&](const std::optional<Candidate>& each) -> std::string {
    if (!each) return "null";
    return fmt::format(
        "{{\"kernel\":\"{}\",\"gflops\":{:.1f},\"best_gflops\":{:.1f},\"bytes\":{}}}",
        each->kernel->name, flops / each->taken.median(), flops / each->taken.least(),
        each->prepared.workspace_bytes);
  };
  fmt::print(
      "{{\"in_channels\":{},\"out_channels\":{},\"size\":{},\"stride\":{},\"threads\":{},\"own\":{}"
      ","
      "\"onednn\":{},\"winograd\":{}}}\n",
      c.in_channels, c.out_channels, c.size, c.stride, threads, text(all[0]), text(all[1]),
      text(all[2]));
}

}  // namespace
}  // namespace trainscope::cpu

int main(int count, char** arguments) {
  using namespace trainscope::cpu;
  const int threads = count > 1 ? std::max(1, std::atoi(arguments[1])) : 2;
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 21;
  const trainscope::KernelTable table = cpu_kernels();
  for (const Convolution& each : kConvolutions) compare(table, each, threads, rounds);
  return 0;
}
