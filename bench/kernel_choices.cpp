// How well the thresholds of kernel choice hold on shapes that they were not chosen on: of each
// case the kernel that is chosen, and those that a threshold alone leaves out or that come after
// it, in turn. One JSON line {"rows":[{"threshold","case","chosen","chosen_ms","best","best_ms"}]}.
// Usage: kernel_choices_bench [THREADS [SECONDS]], seconds of each kernel and case.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/measuring.h"
#include "kernels/api/kernel.h"
#include "kernels/api/low_precision.h"
#include "kernels/cpu/cpu_kernels.h"

namespace trainscope::cpu {
namespace {

struct Options {
  int threads = 2;
  double seconds = 0.05;
};

// A call and its memory, filled with numbers of both signs.
struct Case {
  std::string_view threshold;  // that it is about
  std::string name;
  std::string_view op;
  DType dtype = DType::kF32;
  Params params;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  std::vector<bench::Buffer> memory;

  TensorView view(const Shape& shape) {
    const TensorType type{.dtype = dtype, .shape = shape};
    bench::Buffer& buffer = memory.emplace_back(type.bytes());
    for (std::int64_t i = 0; i < type.shape.elements(); ++i) {
      const float number = static_cast<float>(i * 2654435761 % 1024) / 512.0F - 1.0F;
      if (dtype == DType::kF32) {
        buffer.floats()[i] = number;
      } else {
        reinterpret_cast<BFloat16*>(buffer.bytes())[i].bits = bf16_bits(number);
      }
    }
    return {.type = type, .data = buffer.bytes()};
  }
  PrepareArgs prepare_args(int threads) const {
    return {.params = params, .inputs = inputs, .outputs = outputs, .threads = threads};
  }
};

// Refusals that are a threshold: the kernel can do the case, and should be slower.
bool is_threshold(std::string_view why_not) {
  constexpr std::array<std::string_view, 8> kThresholds = {
      "our own GEMM is quicker",
      "packing does not repay",
      "Winograd's form pays from",
      "Winograd's form of a gradient by weights pays",
      "the channels leave a quarter of its tiles empty",
      "more than 16 in and out channels",
      "a plane leaves a fifth of its registers empty",
      "the copies of a part of the batch"};
  return std::ranges::any_of(kThresholds,
                             [&](std::string_view each) { return why_not.starts_with(each); });
}

// The plain loops, and what serves --deterministic strict alone.
bool is_no_alternative(std::string_view name) {
  return name.ends_with("_parts") || name == "conv.own" || name == "conv_grad_input.own" ||
         name == "conv_grad_weight.own";
}

struct Candidate {
  const Kernel* kernel;
  bool taken = false;  // else a threshold leaves it out
  Prepared prepared = {};
  bench::Buffer workspace = bench::Buffer(0);
  bench::Rounds rounds = {};

  void time(const Case& of, int threads) {
    rounds.times.push_back(bench::milliseconds([&] {
      kernel->run({.params = of.params,
                   .inputs = of.inputs,
                   .outputs = of.outputs,
                   .workspace = workspace.bytes(),
                   .state = prepared.state.get(),
                   .threads = threads});
    }));
  }
};

// The preferred one first. A library may still refuse what a threshold left out.
std::vector<Candidate> candidates(const KernelTable& table, const Case& of, int threads) {
  const PrepareArgs args = of.prepare_args(threads);
  std::vector<Candidate> found;
  for (const Kernel* kernel : table.find(of.op, of.dtype)) {
    const Support support = kernel->supports == nullptr ? Support{} : kernel->supports(args);
    if (is_no_alternative(kernel->name) || (!support && !is_threshold(support.why_not))) continue;
    Candidate candidate{.kernel = kernel, .taken = static_cast<bool>(support)};
    try {
      if (kernel->prepare != nullptr) candidate.prepared = kernel->prepare(args);
      candidate.workspace = bench::Buffer(candidate.prepared.workspace_bytes);
      candidate.time(of, threads);
    } catch (const std::exception&) {
      continue;
    }
    candidate.rounds.times.clear();  // the first call brings memory
    found.push_back(std::move(candidate));
  }
  return found;
}

// The row of a case; empty where there is nothing to choose from.
std::string row_of(const KernelTable& table, const Case& of, const Options& options) {
  std::vector<Candidate> all = candidates(table, of, options.threads);
  const auto chosen = std::ranges::find_if(all, &Candidate::taken);
  if (all.size() < 2 || chosen == all.end()) return "";
  double spent_ms = 0.0;
  const double most_ms = 1e3 * options.seconds * static_cast<double>(all.size());
  for (int round = 0; round < 3 || (spent_ms < most_ms && round < 50); ++round) {
    for (Candidate& each : all) {
      each.time(of, options.threads);
      spent_ms += each.rounds.times.back();
    }
  }
  const auto best =
      std::ranges::min_element(all, {}, [](const Candidate& each) { return each.rounds.median(); });
  const std::string names = fmt::format(R"("threshold":"{}","case":"{}")", of.threshold, of.name);
  const auto taken = [](std::string_view what, const Candidate& by) {
    return fmt::format(R"("{0}":"{1}","{0}_ms":{2:.4f})", what, by.kernel->name,
                       by.rounds.median());
  };
  return fmt::format("{{{},{},{}}}", names, taken("chosen", *chosen), taken("best", *best));
}

// --- Matmuls: where packing repays ---------------------------------------------------------------

Case matmul_case(std::int64_t m, std::int64_t n, std::int64_t k, DType dtype) {
  // In turn A B, A B' and A' B, as forward and the two gradients have them.
  const std::int64_t form = (m + n + k) / 16 % 3;
  const MatMulParams params{.transpose_a = form == 2, .transpose_b = form == 1};
  Case of{.threshold = "packing repays above 256",
          .name = fmt::format("{} x {} x {}{}{}, {}", m, n, k, form == 1 ? ", B'" : "",
                              form == 2 ? ", A'" : "", name_of(dtype)),
          .op = "BatchMatMul",
          .dtype = dtype,
          .params = params,
          .inputs = {},
          .outputs = {},
          .memory = {}};
  of.memory.reserve(3);
  of.inputs = {of.view(form == 2 ? Shape{k, m} : Shape{m, k}),
               of.view(form == 1 ? Shape{n, k} : Shape{k, n})};
  of.outputs = {of.view({m, n})};
  return of;
}

void add_matmuls(std::vector<Case>& cases) {
  for (std::int64_t m : {96, 208, 272, 336, 464, 720}) {
    for (std::int64_t n : {112, 240, 288, 400, 656}) {
      for (std::int64_t k : {96, 352, 1200}) {
        cases.push_back(matmul_case(m, n, k, DType::kF32));
        if (k == 352) cases.push_back(matmul_case(m, n, k, DType::kBF16));
      }
    }
  }
}

// --- Convolutions: Winograd's form, and our own beside oneDNN's ----------------------------------

struct Convolution {
  std::int64_t batch;
  std::int64_t in_channels;
  std::int64_t out_channels;
  std::int64_t size;
};

// x, w, y of 3 x 3 windows with as much padding as keeps the size.
Case conv_case(std::string_view threshold, std::string_view op, const Convolution& c) {
  Case of{.threshold = threshold,
          .name = fmt::format("{}, {} to {} channels, {} of {} x {}", op, c.in_channels,
                              c.out_channels, c.batch, c.size, c.size),
          .op = op,
          .dtype = DType::kF32,
          .params = ConvParams{{.rank = 2,
                                .kernel = {3, 3, 1},
                                .stride = {1, 1, 1},
                                .pad_begin = {1, 1, 0},
                                .pad_end = {1, 1, 0}}},
          .inputs = {},
          .outputs = {},
          .memory = {}};
  of.memory.reserve(3);
  const TensorView x = of.view({c.batch, c.in_channels, c.size, c.size});
  const TensorView w = of.view({c.out_channels, c.in_channels, 3, 3});
  const TensorView y = of.view({c.batch, c.out_channels, c.size, c.size});
  of.inputs = {x, w};
  of.outputs = {y};
  if (op == "ConvGradInput") {
    of.inputs = {y, w};
    of.outputs = {x};
  } else if (op == "ConvGradWeight") {
    of.inputs = {x, y};
    of.outputs = {w};
  }
  return of;
}

void add_convolutions(std::vector<Case>& cases) {
  constexpr std::array<std::string_view, 3> kOps = {"Conv", "ConvGradInput", "ConvGradWeight"};
  constexpr double kMostFlops = 3e9;
  for (std::int64_t channels : {40, 56, 72, 96, 160, 320}) {
    for (const auto& [batch, size] : {std::pair<std::int64_t, std::int64_t>{5, 6},
                                      {20, 7},
                                      {6, 14},
                                      {24, 10},
                                      {3, 28},
                                      {2, 56}}) {
      const double flops = 18.0 * static_cast<double>(batch * size * size * channels * channels);
      if (flops > kMostFlops) continue;
      for (std::string_view op : kOps) {
        cases.push_back(conv_case("Winograd's form pays", op, {batch, channels, channels, size}));
      }
    }
  }
  for (const Convolution& few :
       {Convolution{24, 2, 7, 20}, Convolution{48, 5, 12, 12}, Convolution{12, 8, 24, 24},
        Convolution{96, 4, 20, 9}, Convolution{16, 12, 40, 16}, Convolution{40, 18, 18, 11},
        Convolution{10, 24, 48, 20}, Convolution{64, 3, 16, 14}}) {
    for (std::string_view op : kOps) {
      cases.push_back(conv_case("our own convolutions beside oneDNN's", op, few));
    }
  }
}

}  // namespace

int run(const Options& options) {
  const KernelTable table = cpu_kernels();
  std::string rows;
  const auto measure = [&](std::vector<Case>& cases) {
    for (const Case& of : cases) {
      const std::string row = row_of(table, of, options);
      if (row.empty()) continue;
      rows += (rows.empty() ? "" : ",") + row;
    }
    cases.clear();
  };
  std::vector<Case> cases;
  add_matmuls(cases);
  measure(cases);
  add_convolutions(cases);
  measure(cases);
  fmt::print("{{\"threads\":{},\"rows\":[{}]}}\n", options.threads, rows);
  return 0;
}

}  // namespace trainscope::cpu

int main(int count, char** arguments) {
  trainscope::cpu::Options options;
  if (count > 1) options.threads = std::max(1, std::atoi(arguments[1]));
  if (count > 2) options.seconds = std::max(1e-4, std::atof(arguments[2]));
  return trainscope::cpu::run(options);
}
