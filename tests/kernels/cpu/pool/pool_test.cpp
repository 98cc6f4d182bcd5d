// Pooling kernels against literals and each other.
#include "kernels/cpu/pool/pool.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

KernelTable pool_table() {
  KernelTable table;
  add_pool(table);
  return table;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

PoolParams pool_2d(std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  return {.window = {.rank = 2,
                     .kernel = {kernel, kernel, 1},
                     .stride = {stride, stride, 1},
                     .pad_begin = {pad, pad, 0},
                     .pad_end = {pad, pad, 0}}};
}

template <typename T>
std::vector<T> run_own(const char* op, const PoolParams& params, std::vector<Host<T>> inputs,
                       const Shape& output) {
  const KernelTable table = pool_table();
  KernelRun<T> run(table, op, "own",
                   {.params = params, .inputs = std::move(inputs), .outputs = {output}});
  return run.run()[0];
}

TEST_CASE("pool: MaxPool takes the largest inside the input and hands on NaN") {
  const float nan = std::nanf("");
  const Host<float> x{.shape = {1, 1, 3, 3}, .values = {1, 5, 2, -1, -kInfinity, 3, 4, nan, 0}};
  const auto y = run_own<float>("MaxPool", pool_2d(2, 1, 0), {x}, {1, 1, 2, 2});
  CHECK(y[0] == 5);
  CHECK(y[1] == 5);
  CHECK(std::isnan(y[2]));
  CHECK(std::isnan(y[3]));
  const Host<float> low{.shape = {1, 1, 2}, .values = {-kInfinity, -kInfinity}};
  const PoolParams row{.window = {.rank = 1, .kernel = {2, 1, 1}, .pad_begin = {1}}};
  CHECK(run_own<float>("MaxPool", row, {low}, {1, 1, 2}) ==
        std::vector<float>{-kInfinity, -kInfinity});
}

TEST_CASE("pool: MaxPoolGrad gives all to the first of equal maxima") {
  const Host<float> x{.shape = {1, 1, 2, 4}, .values = {0, 0, 2, 1, 0, 0, 1, 2}};
  const Host<float> dy{.shape = {1, 1, 1, 3}, .values = {1, 10, 100}};
  const std::vector<float> expected{1, 0, 110, 0, 0, 0, 0, 0};
  CHECK(run_own<float>("MaxPoolGrad", pool_2d(2, 1, 0), {dy, x}, {1, 1, 2, 4}) == expected);
}

TEST_CASE_TEMPLATE("pool: windows that halve both sides agree with those of any size", T, float,
                   double) {
  const KernelTable table = pool_table();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T infinity = std::numeric_limits<T>::infinity();
  // Few different numbers: many equal maxima, several NaNs in a window.
  const std::vector<T> kinds{0, 1, 1, 2, -1, -infinity, infinity, nan};
  for (const Shape& shape :
       {Shape{2, 3, 14, 14}, Shape{1, 2, 7, 37}, Shape{2, 2, 5, 6}, Shape{1, 1, 2, 2}}) {
    CAPTURE(shape[3]);
    const Shape half{shape[0], shape[1], shape[2] / 2, shape[3] / 2};
    Host<T> x{.shape = shape, .values = {}};
    Host<T> dy{.shape = half, .values = {}};
    unsigned seed = 7;
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      seed = seed * 1664525U + 1013904223U;
      x.values.push_back(kinds[(seed >> 16) % kinds.size()]);
    }
    for (std::int64_t i = 0; i < half.elements(); ++i) dy.values.push_back(static_cast<T>(i + 1));
    dy.values[0] = infinity;
    const auto run = [&](const char* op, const char* kernel, std::vector<Host<T>> inputs,
                         const Shape& output, int threads) {
      KernelRun<T> kernel_run(table, op, kernel,
                              {.params = pool_2d(2, 2, 0),
                               .inputs = std::move(inputs),
                               .outputs = {output},
                               .threads = threads});
      return kernel_run.run()[0];
    };
    for (int threads : {1, 2}) {
      const std::vector<T> y = run("MaxPool", "halves", {x}, half, threads);
      const std::vector<T> expected = run("MaxPool", "own", {x}, half, 1);
      for (std::size_t i = 0; i < y.size(); ++i) {
        CHECK((y[i] == expected[i] || (std::isnan(y[i]) && std::isnan(expected[i]))));
      }
      CHECK(run("MaxPoolGrad", "halves", {dy, x}, shape, threads) ==
            run("MaxPoolGrad", "own", {dy, x}, shape, 1));
    }
  }
}

TEST_CASE("pool: AveragePool counts padding only when asked, and never what lies beyond it") {
  const Host<float> x{.shape = {1, 1, 5}, .values = {6, 12, 24, 48, 96}};
  // Windows of 3 by steps of 2 with one zero before: [0,6,12] [12,24,48] [48,96,-] (ceil_mode).
  PoolParams params{
      .window = {.rank = 1, .kernel = {3, 1, 1}, .stride = {2, 1, 1}, .pad_begin = {1}}};
  CHECK(run_own<float>("AveragePool", params, {x}, {1, 1, 3}) == std::vector<float>{9, 28, 72});
  params.count_include_pad = true;
  CHECK(run_own<float>("AveragePool", params, {x}, {1, 1, 3}) == std::vector<float>{6, 28, 72});
  const Host<float> dy{.shape = {1, 1, 3}, .values = {3, 6, 9}};
  CHECK(run_own<float>("AveragePoolGrad", params, {dy}, {1, 1, 5}) ==
        std::vector<float>{1, 3, 2, 6.5F, 4.5F});
}

struct Sweep {
  const char* name;
  Shape x, y;
  PoolParams params;
};

const std::vector<Sweep> kSweep = {
    {"lenet", {4, 6, 28, 28}, {4, 6, 14, 14}, pool_2d(2, 2, 0)},
    {"resnet", {2, 8, 31, 31}, {2, 8, 16, 16}, pool_2d(3, 2, 1)},
    {"overlapping", {2, 3, 9, 9}, {2, 3, 9, 9}, pool_2d(3, 1, 1)},
    {"partial last window", {2, 3, 8, 8}, {2, 3, 4, 4}, pool_2d(3, 2, 0)},
    {"large step", {1, 2, 17, 17}, {1, 2, 4, 4}, pool_2d(2, 5, 0)},
    {"one dimension",
     {2, 3, 300},
     {2, 3, 298},
     {.window = {.rank = 1, .kernel = {4, 1, 1}, .pad_begin = {1}}, .count_include_pad = true}},
    {"three dimensions",
     {1, 2, 5, 6, 7},
     {1, 2, 4, 3, 7},
     {.window = {.rank = 3,
                 .kernel = {2, 2, 3},
                 .stride = {1, 2, 1},
                 .pad_begin = {0, 0, 1},
                 .pad_end = {0, 0, 1}}}},
    {"dilation",
     {1, 2, 9, 9},
     {1, 2, 5, 5},
     {.window = {.rank = 2, .kernel = {3, 3, 1}, .dilation = {2, 2, 1}}}},
    {"missed input",
     {1, 1, 1},
     {1, 1, 1},
     {.window = {.rank = 1,
                 .kernel = {2, 1, 1},
                 .dilation = {3, 1, 1},
                 .pad_begin = {1},
                 .pad_end = {2}}}},
    {"empty", {0, 2, 4, 4}, {0, 2, 2, 2}, pool_2d(2, 2, 0)},
};

// Small integers: most windows have several equal maxima, as after a Relu.
template <typename T>
Host<T> with_ties(Shape shape, std::uint64_t stream) {
  Host<T> host = Host<T>::random(shape, stream);
  for (T& value : host.values) value = std::max(T{0}, std::round(value));
  return host;
}

template <typename T>
std::vector<Host<T>> inputs_of(std::string_view op, const Sweep& sweep) {
  if (op == "MaxPoolGrad") return {Host<T>::random(sweep.y, 2), with_ties<T>(sweep.x, 1)};
  if (op == "AveragePoolGrad") return {Host<T>::random(sweep.y, 2)};
  return {Host<T>::random(sweep.x, 1)};
}

const char* const kOps[] = {"MaxPool", "MaxPoolGrad", "AveragePool", "AveragePoolGrad"};

const Shape& output_of(std::string_view op, const Sweep& sweep) {
  return op.ends_with("Grad") ? sweep.x : sweep.y;
}

void check_kernel(const char* op, const char* kernel, const Sweep& sweep,
                  const std::vector<double>& expected) {
  const KernelTable table = pool_table();
  for (int threads : {1, 2}) {
    KernelRun<float> run(table, op, kernel,
                         {.params = sweep.params,
                          .inputs = inputs_of<float>(op, sweep),
                          .outputs = {output_of(op, sweep)},
                          .threads = threads});
    if (!run.supported()) continue;
    const auto result = run.run();
    // The maximum of no element at all is -inf, which has no relative error.
    const bool infinite = !expected.empty() && std::isinf(expected[0]);
    CHECK((infinite ? result[0][0] == -kInfinity : relative_error(result[0], expected) < 1e-6));
    CHECK(same_bits(run.run(), result));
  }
}

TEST_CASE("pool: f32 kernels agree with f64 in every geometry, on any number of threads") {
  for (const Sweep& sweep : kSweep) {
    for (const char* op : kOps) {
      CAPTURE(sweep.name);
      CAPTURE(op);
      const auto expected =
          run_own<double>(op, sweep.params, inputs_of<double>(op, sweep), output_of(op, sweep));
      check_kernel(op, "own", sweep, expected);
      check_kernel(op, "onednn", sweep, expected);
    }
  }
}

TEST_CASE("pool: oneDNN takes the usual geometries") {
  const KernelTable table = pool_table();
  for (const Sweep& sweep : {kSweep[0], kSweep[1], kSweep[2]}) {
    for (const char* op : {"MaxPoolGrad", "AveragePool", "AveragePoolGrad"}) {
      CAPTURE(sweep.name);
      CAPTURE(op);
      CHECK(KernelRun<float>(table, op, "onednn",
                             {.params = sweep.params,
                              .inputs = inputs_of<float>(op, sweep),
                              .outputs = {output_of(op, sweep)}})
                .supported());
    }
  }
}

}  // namespace
}  // namespace trainscope::cpu
