// Matmul kernels against three nested loops, over shapes, transposes, broadcasts, threads.
#include "kernels/cpu/gemm/matmul.h"

#include <doctest/doctest.h>

#include <string_view>
#include <vector>

#include "kernels/cpu/gemm/multi_matmul.h"
#include "kernels/cpu/support/processor.h"
#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

KernelTable matmul_table() {
  KernelTable table;
  add_matmul(table);
  return table;
}

// One stored operand [batch.., rows, columns] and where its element (matrix, i, j) lies.
struct Operand {
  const Host<double>& host;
  bool transposed;

  double at(std::int64_t matrix, std::int64_t i, std::int64_t j) const {
    const int rank = host.shape.rank;
    const std::int64_t rows = host.shape[rank - 2];
    const std::int64_t columns = host.shape[rank - 1];
    const std::int64_t offset = transposed ? j * columns + i : i * columns + j;
    return host.values[static_cast<std::size_t>(matrix * rows * columns + offset)];
  }
};

std::int64_t batch_of(const Shape& shape) { return shape.rank < 3 ? 1 : shape[0]; }

// Matmuls of [a_batch, ..] and [b_batch, ..] where a batch of 1 serves all.
std::vector<double> naive_matmul(const MatMulParams& params, const Host<double>& a,
                                 const Host<double>& b, const Shape& output) {
  const std::int64_t n = output[output.rank - 1];
  const std::int64_t mn = output[output.rank - 2] * n;
  const std::int64_t k = a.shape[params.transpose_a ? a.shape.rank - 2 : a.shape.rank - 1];
  const Operand left{a, params.transpose_a};
  const Operand right{b, params.transpose_b};
  std::vector<double> result;
  for (std::int64_t index = 0; index < output.elements(); ++index) {
    const std::int64_t batch = index / mn;
    double sum = 0.0;
    for (std::int64_t p = 0; p < k; ++p) {
      sum += left.at(batch_of(a.shape) == 1 ? 0 : batch, index % mn / n, p) *
             right.at(batch_of(b.shape) == 1 ? 0 : batch, p, index % n);
    }
    result.push_back(params.alpha * sum);
  }
  return result;
}

template <typename T>
Host<T> cast(const Host<double>& host) {
  return {.shape = host.shape, .values = std::vector<T>(host.values.begin(), host.values.end())};
}

struct Sweep {
  Shape a, b, output;
  bool transpose_a = false;
  bool transpose_b = false;
};

const std::vector<Sweep> kSweep = {
    {{1, 1}, {1, 1}, {1, 1}},
    {{6, 16}, {16, 16}, {6, 16}},
    {{7, 5}, {5, 17}, {7, 17}},
    {{5, 7}, {5, 17}, {7, 17}, true, false},
    {{7, 5}, {17, 5}, {7, 17}, false, true},
    {{5, 7}, {17, 5}, {7, 17}, true, true},
    {{101, 300}, {300, 67}, {101, 67}},
    {{300, 101}, {67, 300}, {101, 67}, true, true},
    {{200, 600}, {600, 1100}, {200, 1100}},
    {{12, 64, 32}, {12, 64, 32}, {12, 64, 64}, false, true},
    {{12, 64, 64}, {12, 64, 32}, {12, 64, 32}, true, false},
    {{3, 50, 20}, {20, 30}, {3, 50, 30}},
    {{3, 20, 50}, {20, 30}, {3, 50, 30}, true, false},
    {{50, 20}, {3, 20, 30}, {3, 50, 30}},
    {{4, 0, 5}, {4, 5, 3}, {4, 0, 3}},
    {{4, 2, 0}, {4, 0, 3}, {4, 2, 3}},
    {{1, 9000}, {9000, 3}, {1, 3}},
};

// One case on one, two and three threads; our own kernel gives the same bits on all of them.
template <typename T>
void check_case(const Sweep& sweep, std::string_view kernel, double limit) {
  const KernelTable table = matmul_table();
  const MatMulParams params{
      .transpose_a = sweep.transpose_a, .transpose_b = sweep.transpose_b, .alpha = 0.5};
  const auto a = Host<double>::random(sweep.a, 1);
  const auto b = Host<double>::random(sweep.b, 2);
  const std::vector<double> expected = naive_matmul(params, a, b, sweep.output);
  std::vector<std::vector<T>> first;
  for (int threads : {1, 2, 3}) {
    KernelRun<T> run(table, "BatchMatMul", kernel,
                     {.params = params,
                      .inputs = {cast<T>(a), cast<T>(b)},
                      .outputs = {sweep.output},
                      .threads = threads});
    if (!run.supported()) continue;
    const auto result = run.run();
    CAPTURE(threads);
    CHECK(relative_error(result[0], expected) < limit);
    CHECK(same_bits(run.run(), result));
    if (first.empty()) first = result;
    if (kernel == "own") CHECK(same_bits(result, first));
  }
}

template <typename T>
void check_sweep(std::string_view kernel, double limit) {
  for (const Sweep& sweep : kSweep) {
    CAPTURE(sweep.output[0]);
    check_case<T>(sweep, kernel, limit);
  }
}

TEST_CASE("matmul: our f32 kernel equals nested loops, on any number of threads") {
  check_sweep<float>("own", 2e-6);
}
TEST_CASE("matmul: our f64 kernel equals nested loops, on any number of threads") {
  check_sweep<double>("own", 1e-14);
}
TEST_CASE("matmul: oneDNN's kernel equals nested loops") { check_sweep<float>("onednn", 5e-6); }

// The one matmul of oneDNN whose memory is planned needs AVX-512.
TEST_CASE("matmul: oneDNN takes plain, transposed and batched matrices") {
  if (!has_avx512()) return;
  const KernelTable table = matmul_table();
  for (const Sweep& sweep : {kSweep[6], kSweep[7], kSweep[9], kSweep[10], kSweep[11]}) {
    const MatMulParams params{.transpose_a = sweep.transpose_a, .transpose_b = sweep.transpose_b};
    CHECK(KernelRun<float>(
              table, "BatchMatMul", "onednn",
              {.params = params,
               .inputs = {Host<float>::random(sweep.a, 1), Host<float>::random(sweep.b, 2)},
               .outputs = {sweep.output}})
              .supported());
  }
}

TEST_CASE("matmul: Gemm adds beta * C under every broadcast of C") {
  const KernelTable table = matmul_table();
  const Host<double> a{.shape = {2, 1}, .values = {1, 2}};
  const Host<double> b{.shape = {1, 3}, .values = {1, 10, 100}};
  const auto gemm = [&](const Host<double>& c) {
    KernelRun<double> run(table, "Gemm", "own",
                          {.params = MatMulParams{.alpha = 2.0, .beta = 0.5},
                           .inputs = {a, b, c},
                           .outputs = {{2, 3}}});
    return run.run()[0];
  };
  using Row = std::vector<double>;
  CHECK(gemm(Host<double>::absent()) == Row{2, 20, 200, 4, 40, 400});
  CHECK(gemm({.shape = {3}, .values = {2, 4, 6}}) == Row{3, 22, 203, 5, 42, 403});
  CHECK(gemm({.shape = {1, 3}, .values = {2, 4, 6}}) == Row{3, 22, 203, 5, 42, 403});
  CHECK(gemm({.shape = {2, 1}, .values = {2, 4}}) == Row{3, 21, 201, 6, 42, 402});
  CHECK(gemm({.shape = {}, .values = {2}}) == Row{3, 21, 201, 5, 41, 401});
  CHECK(gemm({.shape = {2, 3}, .values = {0, 2, 4, 6, 8, 10}}) == Row{2, 21, 202, 7, 44, 405});
}

TEST_CASE("matmul: oneDNN's Gemm adds a bias per column like ours") {
  if (!has_avx512()) return;
  const KernelTable table = matmul_table();
  const KernelCase<float> one{
      .params = MatMulParams{.transpose_b = true},
      .inputs = {Host<float>::random({33, 70}, 1), Host<float>::random({45, 70}, 2),
                 Host<float>::random({45}, 3)},
      .outputs = {{33, 45}},
      .threads = 2};
  KernelRun<float> own(table, "Gemm", "own", one);
  KernelRun<float> onednn(table, "Gemm", "onednn", one);
  CHECK(relative_error(onednn.run()[0], own.run()[0]) < 1e-6);
}

// The addend has a matrix for each matmul of the batch.
TEST_CASE("matmul: MatMulAdd adds what is there, on every kernel") {
  const KernelTable table = matmul_table();
  for (const Sweep& sweep : kSweep) {
    const MatMulParams params{.transpose_a = sweep.transpose_a, .transpose_b = sweep.transpose_b};
    const auto a = Host<double>::random(sweep.a, 1);
    const auto b = Host<double>::random(sweep.b, 2);
    const auto sum = Host<double>::random(sweep.output, 3);
    std::vector<double> expected = naive_matmul(params, a, b, sweep.output);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += sum.values[i];
    for (std::string_view kernel : {"own", "onednn"}) {
      CAPTURE(kernel);
      CAPTURE(sweep.output[0]);
      KernelRun<float> run(table, "MatMulAdd", kernel,
                           {.params = params,
                            .inputs = {cast<float>(a), cast<float>(b), cast<float>(sum)},
                            .outputs = {sweep.output},
                            .threads = 2});
      if (run.supported()) CHECK(relative_error(run.run()[0], expected) < 5e-6);
    }
  }
}

// Matmuls of widths that no tile has, of more columns than are packed at once, with some biases.
TEST_CASE_TEMPLATE("matmul: matmuls of one input have the bits that each has alone", T, float,
                   double) {
  KernelTable table = matmul_table();
  add_multi_matmul(table);
  const std::vector<std::int64_t> widths = {37, 1, 700, 0, 900};
  for (const bool transposed : {false, true}) {
    const MatMulParams params{.transpose_b = transposed};
    const auto matrix = [transposed](std::int64_t n) {
      return transposed ? Shape{n, 1030} : Shape{1030, n};
    };
    KernelCase<T> together{
        .params = params, .inputs = {Host<T>::random({2, 70, 1030}, 1)}, .outputs = {}};
    for (std::int64_t n : widths) {
      together.inputs.push_back(
          Host<T>::random(matrix(n), static_cast<std::uint64_t>(together.inputs.size()) + 1));
      together.outputs.push_back({2, 70, n});
    }
    for (std::int64_t n : widths) {
      const bool biased = n != 700;
      together.inputs.push_back(biased ? Host<T>::random({n}, 99) : Host<T>::absent());
    }
    for (int threads : {1, 3}) {
      CAPTURE(threads);
      together.threads = threads;
      const auto all = KernelRun<T>(table, "MultiMatMul", "own", together).run();
      for (std::size_t i = 0; i < widths.size(); ++i) {
        CAPTURE(widths[i]);
        KernelRun<T> alone(table, "BatchMatMul", "own",
                           {.params = params,
                            .inputs = {together.inputs[0], together.inputs[1 + i],
                                       together.inputs[1 + widths.size() + i]},
                            .outputs = {together.outputs[i]},
                            .threads = threads});
        CHECK(same_bits(alone.run(), {all[i]}));
      }
    }
  }
}

TEST_CASE("matmul: oneDNN's matmuls of one input, one after the other, are like ours") {
  KernelTable table = matmul_table();
  add_multi_matmul(table);
  const KernelCase<float> two{
      .params = MatMulParams{.transpose_b = true},
      .inputs = {Host<float>::random({33, 70}, 1), Host<float>::random({45, 70}, 2),
                 Host<float>::random({20, 70}, 3), Host<float>::random({45}, 4),
                 Host<float>::random({20}, 5)},
      .outputs = {{33, 45}, {33, 20}},
      .threads = 2};
  KernelRun<float> own(table, "MultiMatMul", "own", two);
  KernelRun<float> onednn(table, "MultiMatMul", "onednn", two);
  CHECK(onednn.supported() == has_avx512());
  if (!onednn.supported()) return;
  for (std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    CHECK(relative_error(onednn.run()[i], own.run()[i]) < 1e-6);
  }
}

}  // namespace
}  // namespace trainscope::cpu
