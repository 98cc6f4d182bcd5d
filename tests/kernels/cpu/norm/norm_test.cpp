// Batch and layer normalisation against their formulas; gradients against central differences.
#include "kernels/cpu/norm/norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

KernelTable norm_table() {
  KernelTable table;
  add_norm(table);
  return table;
}

using Doubles = std::vector<double>;
using Results = std::vector<Doubles>;

template <typename T>
std::vector<std::vector<T>> run(const char* op, KernelCase<T> kernel_case) {
  const KernelTable table = norm_table();
  KernelRun<T> kernel(table, op, "own", std::move(kernel_case));
  auto result = kernel.run();
  CHECK(same_bits(kernel.run(), result));
  return result;
}

double weighted(const Doubles& values, const Doubles& weights) {
  double sum = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
  return sum;
}

// Gradient of f by `at`, by central differences.
Doubles differences(Doubles at, const std::function<double(const Doubles&)>& f) {
  Doubles gradient;
  for (double& element : at) {
    const double old = element;
    const double step = 1e-5;
    element = old + step;
    const double up = f(at);
    element = old - step;
    gradient.push_back((up - f(at)) / (2 * step));
    element = old;
  }
  return gradient;
}

Host<double> positive(Shape shape, std::uint64_t stream) {
  Host<double> host = Host<double>::random(shape, stream);
  for (double& value : host.values) value = 0.5 + std::abs(value);
  return host;
}

TEST_CASE("batch_norm: training uses the batch and moves the running statistics") {
  // Channel 0 holds 1, 3, 5, 7: mean 4, population variance 5.
  const Host<double> x{.shape = {2, 2, 2}, .values = {1, 3, 10, 10, 5, 7, 10, 10}};
  const NormParams params{.epsilon = 4.0, .momentum = 0.75, .training = true};
  const Results y = run<double>("BatchNormalization", {.params = params,
                                                       .inputs = {x,
                                                                  {.shape = {2}, .values = {3, 2}},
                                                                  {.shape = {2}, .values = {1, -1}},
                                                                  {.shape = {2}, .values = {8, 20}},
                                                                  {.shape = {2}, .values = {9, 4}}},
                                                       .outputs = {{2, 2, 2}, {2}, {2}}});
  CHECK(y[0] == Doubles{-2, 0, -1, -1, 2, 4, -1, -1});
  CHECK(y[1] == Doubles{7, 17.5});
  CHECK(y[2] == Doubles{8, 3});
}

TEST_CASE("batch_norm: a sample's running variance is divided by one element less") {
  // As above: sums of squares 20 and 0, of 4 elements each.
  const Host<double> x{.shape = {2, 2, 2}, .values = {1, 3, 10, 10, 5, 7, 10, 10}};
  const KernelCase<double> all{
      .params = NormParams{.epsilon = 4.0, .momentum = 0.75, .training = true},
      .inputs = {x,
                 {.shape = {2}, .values = {3, 2}},
                 {.shape = {2}, .values = {1, -1}},
                 {.shape = {2}, .values = {8, 20}},
                 {.shape = {2}, .values = {9, 4}}},
      .outputs = {{2, 2, 2}, {2}, {2}}};
  const Results y = run<double>("SampleBatchNormalization", all);
  CHECK(y[0] == Doubles{-2, 0, -1, -1, 2, 4, -1, -1});
  CHECK(y[1] == Doubles{7, 17.5});
  CHECK(y[2][0] == doctest::Approx(0.75 * 9 + 0.25 * 20 / 3).epsilon(1e-14));
  CHECK(y[2][1] == 3);
  const Results relu = run<double>("SampleBatchNormRelu", all);
  CHECK(relu[0] == Doubles{0, 0, 0, 0, 2, 4, 0, 0});
  CHECK(relu[2] == y[2]);
  // One element has no variance of a sample.
  KernelCase<double> one = all;
  one.inputs[0] = {.shape = {1, 2}, .values = {8, 20}};
  one.outputs[0] = {1, 2};
  CHECK(run<double>("SampleBatchNormalization", one)[2] == Doubles{6.75, 3});
}

TEST_CASE("batch_norm: inference uses the running statistics") {
  const Host<double> x{.shape = {2, 2}, .values = {1, 3, 5, 7}};
  const Results y = run<double>("BatchNormalization", {.params = NormParams{.epsilon = 0.0},
                                                       .inputs = {x,
                                                                  {.shape = {2}, .values = {3, 2}},
                                                                  {.shape = {2}, .values = {1, -1}},
                                                                  {.shape = {2}, .values = {1, 5}},
                                                                  {.shape = {2}, .values = {4, 1}}},
                                                       .outputs = {{2, 2}}});
  CHECK(y[0] == Doubles{1, -5, 7, 3});
}

TEST_CASE("batch_norm: gradients equal central differences") {
  const Shape shape{3, 4, 5};
  const auto dy = Host<double>::random(shape, 9);
  const std::vector<Host<double>> inputs{Host<double>::random(shape, 1), positive({4}, 2),
                                         Host<double>::random({4}, 3), Host<double>::random({4}, 4),
                                         positive({4}, 5)};
  for (bool training : {true, false}) {
    CAPTURE(training);
    const NormParams params{.training = training};
    const Results gradients = run<double>(
        "BatchNormalizationGrad",
        {.params = params,
         .inputs = training ? std::vector{dy, inputs[0], inputs[1]}
                            : std::vector{dy, inputs[0], inputs[1], inputs[3], inputs[4]},
         .outputs = {shape, {4}, {4}}});
    for (std::size_t by = 0; by < 3; ++by) {
      const Doubles expected = differences(inputs[by].values, [&](const Doubles& values) {
        std::vector<Host<double>> changed = inputs;
        changed[by].values = values;
        return weighted(run<double>("BatchNormalization",
                                    {.params = params, .inputs = changed, .outputs = {shape}})[0],
                        dy.values);
      });
      CAPTURE(by);
      CHECK(relative_error(gradients[by], expected) < 1e-8);
    }
  }
}

TEST_CASE("batch_norm: a channel far from zero keeps its f32 accuracy, whatever the threads") {
  const Shape shape{4, 6, 700};
  Host<double> x = Host<double>::random(shape, 1);
  for (double& value : x.values) value = static_cast<double>(static_cast<float>(value + 100.0));
  const auto single = [](const Host<double>& host) {
    return Host<float>{.shape = host.shape, .values = {host.values.begin(), host.values.end()}};
  };
  const auto dy = Host<double>::random(shape, 2);
  const auto scale = positive({6}, 3);
  const NormParams params{.training = true};
  const auto exact =
      run<double>("BatchNormalizationGrad",
                  {.params = params, .inputs = {dy, x, scale}, .outputs = {shape, {6}, {6}}});
  const KernelCase<float> one{.params = params,
                              .inputs = {single(dy), single(x), single(scale)},
                              .outputs = {shape, {6}, {6}}};
  KernelCase<float> three = one;
  three.threads = 3;
  const auto result = run<float>("BatchNormalizationGrad", one);
  for (std::size_t i = 0; i < 3; ++i) CHECK(relative_error(result[i], exact[i]) < 3e-6);
  CHECK(run<float>("BatchNormalizationGrad", three) == result);
}

TEST_CASE("layer_norm: rows are normalised, scaled and shifted; mean and deviation are kept") {
  const Host<double> x{.shape = {2, 2}, .values = {1, 3, 10, 4}};
  const NormParams params{.axis = 1, .epsilon = 0.0};
  const Results y = run<double>(
      "LayerNormalization",
      {.params = params,
       .inputs = {x, {.shape = {2}, .values = {2, 3}}, {.shape = {2}, .values = {1, 0}}},
       .outputs = {{2, 2}, {2, 1}, {2, 1}}});
  CHECK(y[0][0] == doctest::Approx(-1));
  CHECK(y[0][1] == doctest::Approx(3));
  CHECK(y[0][2] == doctest::Approx(3));
  CHECK(y[0][3] == doctest::Approx(-3));
  CHECK(y[1] == Doubles{2, 7});
  CHECK(y[2][0] == doctest::Approx(1.0));
  CHECK(y[2][1] == doctest::Approx(1.0 / 3.0));
}

TEST_CASE("layer_norm: gradients equal central differences") {
  const Shape shape{3, 2, 4};
  const NormParams params{.axis = 1};
  const auto dy = Host<double>::random(shape, 9);
  const std::vector<Host<double>> inputs{Host<double>::random(shape, 1),
                                         Host<double>::random({2, 4}, 2),
                                         Host<double>::random({2, 4}, 3)};
  const Results gradients = run<double>(
      "LayerNormalizationGrad",
      {.params = params, .inputs = {dy, inputs[0], inputs[1]}, .outputs = {shape, {2, 4}, {2, 4}}});
  for (std::size_t by = 0; by < 3; ++by) {
    const Doubles expected = differences(inputs[by].values, [&](const Doubles& values) {
      std::vector<Host<double>> changed = inputs;
      changed[by].values = values;
      return weighted(run<double>("LayerNormalization",
                                  {.params = params, .inputs = changed, .outputs = {shape}})[0],
                      dy.values);
    });
    CAPTURE(by);
    CHECK(relative_error(gradients[by], expected) < 1e-8);
  }
}

TEST_CASE("layer_norm: f32 gradients over many rows agree with f64, whatever the threads") {
  const Shape shape{1000, 96};
  const NormParams params{.axis = 1};
  const auto gradients = [&]<typename T>(T, int threads) {
    return run<T>(
        "LayerNormalizationGrad",
        {.params = params,
         .inputs = {Host<T>::random(shape, 1), Host<T>::random(shape, 2), Host<T>::random({96}, 3)},
         .outputs = {shape, {96}, {96}},
         .threads = threads});
  };
  const auto exact = gradients(1.0, 1);
  const auto result = gradients(1.0F, 1);
  for (std::size_t i = 0; i < 3; ++i) CHECK(relative_error(result[i], exact[i]) < 5e-7);
  CHECK(gradients(1.0F, 3) == result);
}

TEST_CASE("layer_norm, rms_norm: an addend is added to dx, and to nothing else") {
  const Shape shape{70, 37};
  struct Op {
    const char* name;
    bool centered;
    std::size_t outputs;
  };
  for (const Op& op :
       {Op{"LayerNormalizationGrad", true, 3}, Op{"RMSNormalizationGrad", false, 2}}) {
    CAPTURE(op.name);
    const auto gradients = [&](bool adds, int threads) {
      KernelCase<double> kernel_case{
          .params = NormParams{.axis = 1, .centered = op.centered},
          .inputs = {Host<double>::random(shape, 1), Host<double>::random(shape, 2),
                     Host<double>::random({37}, 3)},
          .outputs = {shape, {37}},
          .threads = threads};
      if (op.outputs > 2) kernel_case.outputs.push_back({37});
      if (adds) kernel_case.inputs.push_back(Host<double>::random(shape, 4));
      return run<double>(op.name, kernel_case);
    };
    const Results plain = gradients(false, 1);
    const Results sum = gradients(true, 1);
    Doubles expected = plain[0];
    const Host<double> addend = Host<double>::random(shape, 4);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += addend.values[i];
    CHECK(relative_error(sum[0], expected) < 1e-14);
    for (std::size_t k = 1; k < op.outputs; ++k) CHECK(sum[k] == plain[k]);
    CHECK(gradients(true, 3) == sum);
  }
}

TEST_CASE("norm: empty tensors give empty results and zero parameter gradients") {
  const Results layer = run<double>(
      "LayerNormalizationGrad", {.params = NormParams{.axis = 1},
                                 .inputs = {Host<double>::zeros({0, 3}),
                                            Host<double>::zeros({0, 3}), Host<double>::zeros({3})},
                                 .outputs = {{0, 3}, {3}, {3}}});
  CHECK(layer[1] == Doubles{0, 0, 0});
  CHECK(layer[2] == Doubles{0, 0, 0});
  const Host<double> one{.shape = {1}, .values = {7}};
  const Results batch = run<double>("BatchNormalization",
                                    {.params = NormParams{.training = true},
                                     .inputs = {Host<double>::zeros({0, 1, 2}), one, one, one, one},
                                     .outputs = {{0, 1, 2}, {1}, {1}}});
  CHECK(batch[1][0] == doctest::Approx(7));
}

}  // namespace
}  // namespace trainscope::cpu
