// Convolution kernels against literals, each other and the definition of the adjoint.
#include "kernels/cpu/conv/conv.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cpu/support/processor.h"
#include "tests/kernels/cpu/conv/conv_cases.h"
#include "tests/kernels/cpu/kernel_runner.h"

namespace trainscope::cpu {
namespace {

const std::vector<Sweep> kSweep = {
    {"lenet", {4, 1, 28, 28}, {6, 1, 5, 5}, {4, 6, 24, 24}, {window_2d(5, 1, 0)}},
    {"narrow gradient", {3, 6, 14, 14}, {16, 6, 5, 5}, {3, 16, 10, 10}, {window_2d(5, 1, 0)}},
    {"narrow, padded", {2, 3, 11, 37}, {7, 3, 3, 3}, {2, 7, 11, 37}, {window_2d(3, 1, 1)}},
    {"narrow, uneven",
     {2, 8, 9, 17},
     {8, 8, 4, 2},
     {2, 8, 8, 18},
     {{.rank = 2, .kernel = {4, 2, 1}, .pad_begin = {2, 1, 0}, .pad_end = {0, 1, 0}}}},
    {"narrow, in parts", {19, 2, 9, 13}, {5, 2, 3, 3}, {19, 5, 9, 13}, {window_2d(3, 1, 1)}},
    {"narrow, one example", {1, 5, 8, 6}, {17, 5, 3, 3}, {1, 17, 12, 10}, {window_2d(3, 1, 3)}},
    {"resnet", {2, 16, 14, 14}, {32, 16, 3, 3}, {2, 32, 14, 14}, {window_2d(3, 1, 1)}},
    {"stride", {2, 16, 15, 15}, {24, 16, 3, 3}, {2, 24, 8, 8}, {window_2d(3, 2, 1)}},
    {"pointwise", {2, 16, 9, 9}, {20, 16, 1, 1}, {2, 20, 9, 9}, {window_2d(1, 1, 0)}},
    {"strided pointwise", {2, 16, 9, 9}, {20, 16, 1, 1}, {2, 20, 5, 5}, {window_2d(1, 2, 0)}},
    {"groups", {2, 12, 8, 8}, {18, 4, 3, 3}, {2, 18, 8, 8}, {window_2d(3, 1, 1), 3}},
    {"depthwise", {2, 16, 8, 8}, {16, 1, 3, 3}, {2, 16, 8, 8}, {window_2d(3, 1, 1), 16}},
    {"dilation", {1, 3, 12, 12}, {5, 3, 3, 3}, {1, 5, 8, 8}, {window_2d(3, 1, 0, 2)}},
    {"uneven padding",
     {1, 3, 6, 7},
     {5, 3, 3, 2},
     {1, 5, 6, 9},
     {{.rank = 2, .kernel = {3, 2, 1}, .pad_begin = {0, 1, 0}, .pad_end = {2, 2, 0}}}},
    {"one dimension",
     {2, 3, 20},
     {4, 3, 5},
     {2, 4, 9},
     {{.rank = 1, .kernel = {5, 1, 1}, .stride = {2, 1, 1}, .pad_begin = {1}, .pad_end = {0}}}},
    {"three dimensions",
     {1, 2, 5, 6, 7},
     {3, 2, 2, 3, 2},
     {1, 3, 4, 6, 3},
     {{.rank = 3,
       .kernel = {2, 3, 2},
       .stride = {1, 1, 2},
       .pad_begin = {0, 1, 0},
       .pad_end = {0, 1, 0}}}},
};

// f32 kernels against the f64 one; the same bits twice.
void check_against_f64(const char* op, const KernelCase<double>& exact,
                       const KernelCase<float>& approximate) {
  const KernelTable table = conv_table();
  KernelRun<double> reference(table, op, "own", exact);
  const auto expected = reference.run();
  for (const char* kernel : {"own", "onednn", "pointwise", "narrow", "wide"}) {
    CAPTURE(kernel);
    KernelRun<float> run(table, op, kernel, approximate);
    if (!run.supported()) continue;
    const auto result = run.run();
    CHECK(relative_error(result[0], expected[0]) < 2e-6);
    CHECK(same_bits(run.run(), result));
  }
}

TEST_CASE("conv: f32 kernels agree with f64 in every geometry") {
  for (const Sweep& sweep : kSweep) {
    for (int threads : {1, 2}) {
      CAPTURE(sweep.name);
      check_against_f64("Conv", forward_case<double>(sweep, 1),
                        forward_case<float>(sweep, threads));
      check_against_f64("ConvGradInput", grad_input_case<double>(sweep, 1),
                        grad_input_case<float>(sweep, threads));
      check_against_f64("ConvGradWeight", grad_weight_case<double>(sweep, 1),
                        grad_weight_case<float>(sweep, threads));
    }
  }
}

TEST_CASE("conv: windows of one element are matmuls") {
  const KernelTable table = conv_table();
  const auto takes = [&](const Sweep& sweep) {
    return KernelRun<float>(table, "Conv", "pointwise", forward_case<float>(sweep, 1)).supported();
  };
  for (const Sweep& sweep : kSweep) CHECK(takes(sweep) == (sweep.name == std::string("pointwise")));
}

TEST_CASE("conv: few channels agree with direct sums") {
  const KernelTable table = conv_table();
  int forward = 0;
  int backward = 0;
  for (const Sweep& sweep : kSweep) {
    CAPTURE(sweep.name);
    for (int threads : {1, 2, 5}) {
      KernelRun<double> narrow(table, "Conv", "narrow", forward_case<double>(sweep, threads));
      KernelRun<double> own(table, "Conv", "own", forward_case<double>(sweep, 1));
      if (narrow.supported()) CHECK(relative_error(narrow.run()[0], own.run()[0]) < 1e-14);
      KernelRun<double> to_input(table, "ConvGradInput", "narrow",
                                 grad_input_case<double>(sweep, threads));
      KernelRun<double> own_to_input(table, "ConvGradInput", "own",
                                     grad_input_case<double>(sweep, 1));
      if (to_input.supported()) {
        CHECK(relative_error(to_input.run()[0], own_to_input.run()[0]) < 1e-14);
      }
      forward += narrow.supported() ? 1 : 0;
      backward += to_input.supported() ? 1 : 0;
    }
  }
  CHECK(forward >= 3 * 3);
  CHECK(backward >= 3 * 3);
}

TEST_CASE("conv: weight gradients of few channels have the same bits for any threads") {
  const KernelTable table = conv_table();
  const std::array<std::string_view, 8> taken = {
      "lenet",          "narrow gradient",  "narrow, padded",
      "narrow, uneven", "narrow, in parts", "narrow, one example",
      "resnet",         "uneven padding"};
  for (const Sweep& sweep : kSweep) {
    CAPTURE(sweep.name);
    KernelRun<float> one(table, "ConvGradWeight", "narrow", grad_weight_case<float>(sweep, 1));
    CHECK(one.supported() == (std::find(taken.begin(), taken.end(), sweep.name) != taken.end()));
    if (!one.supported()) continue;
    for (int threads : {2, 5}) {
      KernelRun<float> more(table, "ConvGradWeight", "narrow",
                            grad_weight_case<float>(sweep, threads));
      CHECK(same_bits(one.run(), more.run()));
    }
  }
}

TEST_CASE("conv: the weight gradient of few channels leaves much memory and many channels alone") {
  const KernelTable table = conv_table();
  const auto takes = [&](std::int64_t batch, std::int64_t channels, std::int64_t size) {
    const Sweep sweep{"",
                      {batch, channels, size, size},
                      {32, channels, 3, 3},
                      {batch, 32, size, size},
                      {window_2d(3, 1, 1)}};
    return KernelRun<float>(table, "ConvGradWeight", "narrow", grad_weight_case<float>(sweep, 1))
        .supported();
  };
  CHECK(takes(2, 16, 16));
  CHECK(!takes(2, 17, 16));   // channels
  CHECK(!takes(2, 16, 3));    // pixels: 9 of 16 in a register
  CHECK(!takes(16, 16, 64));  // copies of 1.6 MB a part
}

// Winograd's transforms cost about a digit; oneDNN has them for AVX-512 only.
TEST_CASE("conv: Winograd's form is near the plain one, and left where it would not pay") {
  if (!has_avx512()) return;
  const KernelTable table = conv_table();
  const Sweep taken{"", {8, 128, 14, 15}, {128, 128, 3, 3}, {8, 128, 14, 15}, {window_2d(3, 1, 1)}};
  const auto near = [&](std::string_view op, KernelCase<float> plain, KernelCase<double> own) {
    CAPTURE(op);
    KernelRun<float> fast(table, op, "winograd", plain);
    REQUIRE(fast.supported());
    KernelRun<double> exact(table, op, "own", std::move(own));
    const std::vector<float> result = fast.run()[0];
    CHECK(relative_error(result, exact.run()[0]) < 2e-5);
    CHECK(same_bits({result}, fast.run()));
    KernelRun<float> direct(table, op, "onednn", std::move(plain));
    CHECK(!same_bits({result}, direct.run()));
  };
  for (int threads : {1, 3}) {
    near("Conv", forward_case<float>(taken, threads), forward_case<double>(taken, 1));
    near("ConvGradInput", grad_input_case<float>(taken, threads),
         grad_input_case<double>(taken, 1));
    near("ConvGradWeight", grad_weight_case<float>(taken, threads),
         grad_weight_case<double>(taken, 1));
  }
  const auto takes = [&](const Shape& x, const Shape& w, const Shape& y, const ConvParams& params) {
    const Sweep sweep{"", x, w, y, params};
    return KernelRun<float>(table, "Conv", "winograd", forward_case<float>(sweep, 1)).supported();
  };
  const Shape w = {64, 64, 3, 3};
  CHECK(takes({8, 64, 16, 16}, w, {8, 64, 16, 16}, {window_2d(3, 1, 1)}));
  CHECK(!takes({1, 64, 16, 16}, w, {1, 64, 16, 16}, {window_2d(3, 1, 1)}));  // tiles
  CHECK(!takes({8, 32, 16, 16}, {64, 32, 3, 3}, {8, 64, 16, 16}, {window_2d(3, 1, 1)}));
  CHECK(!takes({32, 64, 16, 16}, w, {32, 64, 8, 8}, {window_2d(3, 2, 1)}));     // stride
  CHECK(!takes({8, 64, 16, 16}, w, {8, 64, 14, 14}, {window_2d(3, 1, 1, 2)}));  // dilation
  CHECK(!takes({8, 128, 16, 16}, {128, 64, 3, 3}, {8, 128, 16, 16}, {window_2d(3, 1, 1), 2}));
}

TEST_CASE("conv: oneDNN takes the usual geometries") {
  const KernelTable table = conv_table();
  for (const Sweep& sweep : {kSweep[0], kSweep[6], kSweep[7], kSweep[9], kSweep[11]}) {
    CAPTURE(sweep.name);
    CHECK(KernelRun<float>(table, "Conv", "onednn", forward_case<float>(sweep, 1)).supported());
    CHECK(KernelRun<float>(table, "ConvGradInput", "onednn", grad_input_case<float>(sweep, 1))
              .supported());
    CHECK(KernelRun<float>(table, "ConvGradWeight", "onednn", grad_weight_case<float>(sweep, 1))
              .supported());
  }
}

double inner_product(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST_CASE("conv: the gradients are the adjoints of the convolution") {
  const KernelTable table = conv_table();
  for (const Sweep& sweep : kSweep) {
    CAPTURE(sweep.name);
    KernelCase<double> forward = forward_case<double>(sweep, 1);
    forward.inputs.pop_back();
    const std::vector<double> x = forward.inputs[0].values;
    const std::vector<double> w = forward.inputs[1].values;
    KernelCase<double> by_input = grad_input_case<double>(sweep, 1);
    const std::vector<double> dy = by_input.inputs[0].values;
    KernelRun<double> y(table, "Conv", "own", forward);
    KernelRun<double> dx(table, "ConvGradInput", "own", by_input);
    KernelRun<double> dw(table, "ConvGradWeight", "own", grad_weight_case<double>(sweep, 1));
    const double along_y = inner_product(y.run()[0], dy);
    CHECK(inner_product(dx.run()[0], x) == doctest::Approx(along_y).epsilon(1e-12));
    CHECK(inner_product(dw.run()[0], w) == doctest::Approx(along_y).epsilon(1e-12));
  }
}

TEST_CASE("conv: a window over the corner counts padding as zeros") {
  const KernelTable table = conv_table();
  KernelRun<double> run(table, "Conv", "own",
                        {.params = ConvParams{window_2d(2, 1, 1)},
                         .inputs = {{.shape = {1, 1, 2, 2}, .values = {1, 2, 3, 4}},
                                    {.shape = {1, 1, 2, 2}, .values = {1, 10, 100, 1000}},
                                    {.shape = {1}, .values = {0.5}}},
                         .outputs = {{1, 1, 3, 3}}});
  CHECK(run.run()[0] ==
        std::vector<double>{1000.5, 2100.5, 200.5, 3010.5, 4321.5, 402.5, 30.5, 43.5, 4.5});
}

TEST_CASE("conv: an empty batch writes nothing, its weight gradient is zero") {
  const KernelTable table = conv_table();
  const Sweep empty{"empty", {0, 2, 5, 5}, {3, 2, 3, 3}, {0, 3, 3, 3}, {window_2d(3, 1, 0)}};
  KernelRun<float> forward(table, "Conv", "own", forward_case<float>(empty, 2));
  CHECK(forward.run()[0].empty());
  KernelRun<float> weight(table, "ConvGradWeight", "own", grad_weight_case<float>(empty, 2));
  CHECK(weight.run()[0] == std::vector<float>(54, 0.0F));
  CHECK(!KernelRun<float>(table, "Conv", "onednn", forward_case<float>(empty, 2)).supported());
}

}  // namespace
}  // namespace trainscope::cpu
