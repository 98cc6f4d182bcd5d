// What weights that lie packed for matmuls would save. The matmuls of linear layers in one step, Y
// = X W' forward and dX = dY W: our own, oneDNN's, and oneDNN's with weights that lie in the layout
// it chooses before the clock starts. One JSON line for each: {"x","w","matmul","threads","gflop",
// "own_ms","onednn_ms","onednn_packed_ms","pack_ms"}, the least of rounds in turn; pack_ms is
// oneDNN's reorder of the weights. Usage: matmuls_bench [THREADS] [ROUNDS]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "bench/measuring.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/support/onednn.h"
#include "kernels/cpu/support/processor.h"

namespace trainscope::cpu {
namespace {

using Memory = dnnl::memory;

using bench::Buffer;

Buffer numbers(std::int64_t n) {
  Buffer buffer(static_cast<std::size_t>(n) * sizeof(float));
  for (std::int64_t i = 0; i < n; ++i) buffer.floats()[i] = static_cast<float>(i % 7) - 3;
  return buffer;
}

// C [m, n] = A [m, k] B; B [k, n] is stored as its transpose when `transposed`.
struct Matmul {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transposed = false;

  std::int64_t b_row() const { return transposed ? 1 : n; }
  std::int64_t b_column() const { return transposed ? k : 1; }
  GemmSize size() const { return {.m = m, .n = n, .k = k}; }
};

class OwnMatmul {
 public:
  OwnMatmul(const Matmul& matmul, int threads, Buffer& a, Buffer& b, Buffer& c)
      : threads_(threads),
        plan_(plan_gemm<float>(matmul.size(), threads)),
        workspace_(plan_.workspace_bytes()),
        operands_{.a = a.floats(),
                  .a_row = matmul.k,
                  .a_column = 1,
                  .b = b.floats(),
                  .b_row = matmul.b_row(),
                  .b_column = matmul.b_column(),
                  .c = c.floats(),
                  .c_row = matmul.n} {}

  void run() {
    run_gemm(plan_, workspace_.bytes(), threads_, [&](std::int64_t) { return operands_; });
  }

 private:
  int threads_;
  GemmPlan<float> plan_;
  Buffer workspace_;
  GemmOperands<float> operands_;
};

class OneDnnMatmul {
 public:
  OneDnnMatmul(const Matmul& matmul, Buffer& a, Buffer& b, Buffer& c)
      : stored_({matmul.k, matmul.n}, Memory::data_type::f32, {matmul.b_row(), matmul.b_column()}),
        plain_(described(matmul, stored_)),
        chosen_(described(matmul, any_desc({matmul.k, matmul.n}))),
        weights_(stored_, engine_, b.floats()),
        packed_(chosen_.weights_desc(), engine_),
        reorder_(weights_, packed_),
        matmul_(plain_),
        matmul_packed_(chosen_),
        a_(plain_.src_desc(), engine_, a.floats()),
        c_(plain_.dst_desc(), engine_, c.floats()) {
    pack();
  }

  void run() { run(matmul_, weights_); }
  void run_packed() { run(matmul_packed_, packed_); }
  void pack() {
    reorder_.execute(stream_, weights_, packed_);
    stream_.wait();
  }
  bool has_own_layout() const { return chosen_.weights_desc() != stored_; }

 private:
  dnnl::matmul::primitive_desc described(const Matmul& p, const Memory::desc& weights) const {
    return {{plain_desc({p.m, p.k}), weights, plain_desc({p.m, p.n})}, engine_};
  }
  void run(dnnl::matmul& matmul, Memory& weights) {
    matmul.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, c_}});
    stream_.wait();
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  Memory::desc stored_;
  dnnl::matmul::primitive_desc plain_;
  dnnl::matmul::primitive_desc chosen_;
  Memory weights_;
  Memory packed_;
  dnnl::reorder reorder_;
  dnnl::matmul matmul_;
  dnnl::matmul matmul_packed_;
  Memory a_;
  Memory c_;
};

void measure(const Matmul& matmul, std::string_view name, int threads, int rounds) {
  const ThreadScope scope(threads);
  Buffer a = numbers(matmul.m * matmul.k);
  Buffer b = numbers(matmul.k * matmul.n);
  Buffer c = numbers(matmul.m * matmul.n);
  OwnMatmul own(matmul, threads, a, b, c);
  OneDnnMatmul onednn(matmul, a, b, c);
  std::array<bench::Rounds, 4> taken;
  for (int round = 0; round < rounds; ++round) {
    taken[0].times.push_back(bench::milliseconds([&] { own.run(); }));
    taken[1].times.push_back(bench::milliseconds([&] { onednn.run(); }));
    taken[2].times.push_back(bench::milliseconds([&] { onednn.run_packed(); }));
    taken[3].times.push_back(bench::milliseconds([&] { onednn.pack(); }));
  }
  const auto if_chosen = [&](const bench::Rounds& rounds_taken) {
    return onednn.has_own_layout() ? fmt::format("{:.3f}", rounds_taken.least()) : "null";
  };
  fmt::print(
      "{{\"x\":[{},{}],\"w\":[{},{}],\"matmul\":\"{}\",\"threads\":{},\"gflop\":{:.3f},"
      "\"own_ms\":{:.3f},\"onednn_ms\":{:.3f},\"onednn_packed_ms\":{},\"pack_ms\":{}}}\n",
      matmul.m, matmul.k, matmul.k, matmul.n, name, threads,
      2e-9 * static_cast<double>(matmul.m * matmul.n * matmul.k), taken[0].least(),
      taken[1].least(), if_chosen(taken[2]), if_chosen(taken[3]));
}

}  // namespace
}  // namespace trainscope::cpu

int main(int count, char** arguments) {
  using namespace trainscope::cpu;
  limit_onednn();
  const int threads = count > 1 ? std::max(1, std::atoi(arguments[1])) : 1;
  const int rounds = count > 2 ? std::max(1, std::atoi(arguments[2])) : 30;
  // Rows of X, what a row of it has, what a row of Y has: w1, w4 with 256 tokens, w3.
  constexpr std::array<std::array<std::int64_t, 3>, 6> kLayers{{{128, 784, 512},
                                                                {128, 512, 512},
                                                                {256, 768, 768},
                                                                {256, 768, 3072},
                                                                {256, 3072, 768},
                                                                {3072, 384, 1536}}};
  for (const auto& [rows, in, out] : kLayers) {
    measure({.m = rows, .n = out, .k = in, .transposed = true}, "forward", threads, rounds);
    measure({.m = rows, .n = in, .k = out, .transposed = false}, "gradient", threads, rounds);
  }
}
