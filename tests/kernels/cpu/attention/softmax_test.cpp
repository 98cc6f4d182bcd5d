// Softmax kernels against the definition, over both memory layouts, and their special values.
#include "kernels/cpu/attention/softmax.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

template <typename T>
std::vector<T> run(const char* op, KernelCase<T> kernel_case) {
  KernelTable table;
  add_softmax(table);
  KernelRun<T> kernel(table, op, "own", std::move(kernel_case));
  const auto result = kernel.run();
  CHECK(same_bits(kernel.run(), result));
  return result[0];
}

// x, n elements apart by `inner`, as the definition says.
std::vector<double> naive_softmax(const Host<double>& x, int axis) {
  std::int64_t inner = 1;
  for (int a = axis + 1; a < x.shape.rank; ++a) inner *= x.shape[a];
  const std::int64_t n = x.shape[axis];
  std::vector<double> y(x.values.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t first = at - at / inner % n * inner;
    double sum = 0.0;
    for (std::int64_t k = 0; k < n; ++k) {
      sum += std::exp(x.values[static_cast<std::size_t>(first + k * inner)]);
    }
    y[i] = std::exp(x.values[i]) / sum;
  }
  return y;
}

struct Sweep {
  Shape shape;
  int axis;
};
const std::vector<Sweep> kSweep = {{{4, 7}, 1},       {{4, 7}, 0},      {{1}, 0},
                                   {{3, 1500}, 1},    {{2, 3, 5}, 1},   {{2, 900, 70}, 1},
                                   {{40, 64, 64}, 2}, {{130, 5, 66}, 0}};

TEST_CASE("softmax: f32 and f64 equal the definition, on any number of threads") {
  for (const Sweep& sweep : kSweep) {
    const auto expected = naive_softmax(Host<double>::random(sweep.shape, 1), sweep.axis);
    std::vector<double> logarithms = expected;
    for (double& value : logarithms) value = std::log(value);
    const auto check = [&]<typename T>(T limit) {
      std::vector<T> with_one_thread;
      for (int threads : {1, 3}) {
        const KernelCase<T> one{.params = AxisParams{sweep.axis},
                                .inputs = {Host<T>::random(sweep.shape, 1)},
                                .outputs = {sweep.shape},
                                .threads = threads};
        const auto y = run<T>("Softmax", one);
        CHECK(relative_error(y, expected) < limit);
        CHECK(relative_error(run<T>("LogSoftmax", one), logarithms) < limit);
        if (threads == 1) with_one_thread = y;
        CHECK(y == with_one_thread);
      }
    };
    check(3e-7F);
    check(1e-14);
  }
}

TEST_CASE("softmax: the gradients are y * (dy - sum) and dy - softmax * sum") {
  for (const Sweep& sweep : kSweep) {
    const auto gradients = [&]<typename T>(T, const char* forward, const char* backward) {
      const KernelCase<T> one{.params = AxisParams{sweep.axis},
                              .inputs = {Host<T>::random(sweep.shape, 1)},
                              .outputs = {sweep.shape},
                              .threads = 2};
      const Host<T> y{.shape = sweep.shape, .values = run<T>(forward, one)};
      KernelCase<T> two = one;
      two.inputs = {Host<T>::random(sweep.shape, 2), y};
      return run<T>(backward, two);
    };
    // Along the axis, a shift of all x changes nothing: each vector of gradients sums to 0.
    const auto exact = gradients(1.0, "Softmax", "SoftmaxGrad");
    double sum = 0.0;
    for (double value : exact) sum += value;
    CHECK(std::abs(sum) < 1e-10);
    CHECK(relative_error(gradients(1.0F, "Softmax", "SoftmaxGrad"), exact) < 2e-6);
    CHECK(relative_error(gradients(1.0F, "LogSoftmax", "LogSoftmaxGrad"),
                         gradients(1.0, "LogSoftmax", "LogSoftmaxGrad")) < 2e-6);
  }
  const Host<double> y{.shape = {2}, .values = {0.25, 0.75}};
  const Host<double> dy{.shape = {2}, .values = {4, 8}};
  const KernelCase<double> literal{.params = AxisParams{0}, .inputs = {dy, y}, .outputs = {{2}}};
  CHECK(run<double>("SoftmaxGrad", literal) == std::vector<double>{-0.75, 0.75});
}

TEST_CASE("softmax: masked elements get 0, a row that is masked altogether NaN") {
  const float low = -std::numeric_limits<float>::infinity();
  for (int axis : {0, 1}) {
    const Shape shape = axis == 1 ? Shape{2, 3} : Shape{3, 2};
    const Host<float> x{.shape = shape,
                        .values = axis == 1 ? std::vector<float>{1, low, 1, low, low, low}
                                            : std::vector<float>{1, low, low, low, 1, low}};
    const auto y =
        run<float>("Softmax", {.params = AxisParams{axis}, .inputs = {x}, .outputs = {shape}});
    const auto at = [&](int row, int i) {
      return y[static_cast<std::size_t>(axis == 1 ? row * 3 + i : i * 2 + row)];
    };
    CHECK(at(0, 0) == 0.5F);
    CHECK(at(0, 1) == 0.0F);
    CHECK(at(0, 2) == 0.5F);
    for (int i = 0; i < 3; ++i) CHECK(std::isnan(at(1, i)));
  }
}

TEST_CASE("softmax: large values do not overflow, empty tensors are fine") {
  const Host<float> x{.shape = {1, 3}, .values = {1000, 1000, -1000}};
  const KernelCase<float> one{.params = AxisParams{1}, .inputs = {x}, .outputs = {{1, 3}}};
  CHECK(run<float>("Softmax", one) == std::vector<float>{0.5F, 0.5F, 0.0F});
  CHECK(run<float>("LogSoftmax", one)[2] == doctest::Approx(-2000.693));
  CHECK(run<float>(
            "Softmax",
            {.params = AxisParams{1}, .inputs = {Host<float>::zeros({3, 0})}, .outputs = {{3, 0}}})
            .empty());
}

}  // namespace
}  // namespace trainscope::cpu
