// BatchNormRelu and its gradient against the ops that they stand for: the same bits.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/cpu/norm/norm.h"
#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

template <typename T>
std::vector<std::vector<T>> run(const char* op, KernelCase<T> kernel_case) {
  KernelTable table;
  add_norm(table);
  KernelRun<T> kernel(table, op, "own", std::move(kernel_case));
  auto result = kernel.run();
  CHECK(same_bits(kernel.run(), result));
  return result;
}

constexpr NormParams kParams{.epsilon = 0.01, .momentum = 0.75, .training = true};

// A network's layer: sizes of planes that are no multiple of a vector, and such of one element.
template <typename T>
struct Layer {
  explicit Layer(std::int64_t plane)
      : shape{3, 4, plane},
        x(Host<T>::random(shape, 1)),
        scale(Host<T>::random({4}, 2)),
        bias(Host<T>::random({4}, 3)),
        mean(Host<T>::random({4}, 4)),
        variance(Host<T>::random({4}, 5)),
        residual(Host<T>::random(shape, 6)),
        dy(Host<T>::random(shape, 7)) {}

  std::vector<Host<T>> inputs() const { return {x, scale, bias, mean, variance}; }

  Shape shape;
  Host<T> x, scale, bias, mean, variance, residual, dy;
};

// The addition and Relu behind the norm's result.
template <typename T>
std::vector<T> activated(std::vector<T> normalized, const std::vector<T>* residual) {
  for (std::size_t i = 0; i < normalized.size(); ++i) {
    if (residual != nullptr) normalized[i] += (*residual)[i];
    if (normalized[i] < T{0}) normalized[i] = T{0};
  }
  return normalized;
}

template <typename T>
void check_equal_to_parts(std::int64_t plane, bool adds) {
  CAPTURE(plane);
  CAPTURE(adds);
  const Layer<T> layer(plane);
  const Shape vector{4};
  auto expected = run<T>(
      "BatchNormalization",
      {.params = kParams, .inputs = layer.inputs(), .outputs = {layer.shape, vector, vector}});
  expected[0] = activated(expected[0], adds ? &layer.residual.values : nullptr);
  KernelCase<T> forward{
      .params = kParams, .inputs = layer.inputs(), .outputs = {layer.shape, vector, vector}};
  if (adds) forward.inputs.push_back(layer.residual);
  const auto y = run<T>("BatchNormRelu", forward);
  CHECK(same_bits(y, expected));

  Host<T> masked = layer.dy;
  for (std::size_t i = 0; i < masked.values.size(); ++i) {
    if (y[0][i] <= T{0}) masked.values[i] = T{0};
  }
  auto gradients = run<T>("BatchNormalizationGrad", {.params = kParams,
                                                     .inputs = {masked, layer.x, layer.scale},
                                                     .outputs = {layer.shape, vector, vector}});
  KernelCase<T> backward{
      .params = kParams,
      .inputs = {layer.dy, {.shape = layer.shape, .values = y[0]}, layer.x, layer.scale},
      .outputs = {layer.shape, vector, vector}};
  if (adds) {
    gradients.push_back(masked.values);
    backward.outputs.push_back(layer.shape);
  }
  const auto result = run<T>("BatchNormReluGrad", backward);
  CHECK(same_bits(result, gradients));
}

}  // namespace

TEST_CASE("batch_norm_relu: the same bits as norm, addition and Relu one after the other") {
  for (std::int64_t plane : {1, 7, 16, 100}) {
    for (bool adds : {false, true}) {
      check_equal_to_parts<float>(plane, adds);
      check_equal_to_parts<double>(plane, adds);
    }
  }
}

TEST_CASE("batch_norm_relu: the same bits whatever the threads") {
  const Shape shape{4, 6, 4000};
  const auto x = Host<float>::random(shape, 1);
  const auto y = Host<float>::random(shape, 2);
  const auto dy = Host<float>::random(shape, 3);
  const auto vector = Host<float>::random({6}, 4);
  KernelCase<float> forward{.params = kParams,
                            .inputs = {x, vector, vector, vector, vector, dy},
                            .outputs = {shape, {6}, {6}}};
  KernelCase<float> backward{
      .params = kParams, .inputs = {dy, y, x, vector}, .outputs = {shape, {6}, {6}, shape}};
  const auto one_forward = run<float>("BatchNormRelu", forward);
  const auto one_backward = run<float>("BatchNormReluGrad", backward);
  for (int threads : {2, 3}) {
    forward.threads = threads;
    backward.threads = threads;
    CHECK(same_bits(run<float>("BatchNormRelu", forward), one_forward));
    CHECK(same_bits(run<float>("BatchNormReluGrad", backward), one_backward));
  }
}

TEST_CASE("batch_norm_relu: a NaN passes through, in its channel alone") {
  Layer<float> layer(7);
  layer.x.values[3] = std::numeric_limits<float>::quiet_NaN();
  const auto y =
      run<float>("BatchNormRelu",
                 {.params = kParams, .inputs = layer.inputs(), .outputs = {layer.shape, {4}, {4}}});
  for (std::size_t i = 0; i < y[0].size(); ++i) {
    const bool first_channel = i / 7 % 4 == 0;
    CHECK(std::isnan(y[0][i]) == first_channel);
  }
}

}  // namespace trainscope::cpu
