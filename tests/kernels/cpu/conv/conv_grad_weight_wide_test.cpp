// The weight gradient of many channels: right, deterministic, and left where it does not pay.
#include <doctest/doctest.h>

#include <vector>

#include "tests/kernels/cpu/conv/conv_cases.h"

namespace trainscope::cpu {
namespace {

const std::vector<Sweep> kManyChannels = {
    {"planes of some examples",
     {37, 16, 4, 4},
     {16, 16, 3, 3},
     {37, 16, 4, 4},
     {window_2d(3, 1, 1)}},
    {"strips of rows", {3, 32, 37, 29}, {40, 32, 3, 3}, {3, 40, 37, 29}, {window_2d(3, 1, 1)}},
    {"more blocks than are packed at once",
     {24, 48, 24, 24},
     {32, 48, 3, 3},
     {24, 32, 24, 24},
     {window_2d(3, 1, 1)}},
    {"lanes and lines left over",
     {5, 27, 9, 11},
     {29, 27, 3, 3},
     {5, 29, 9, 11},
     {window_2d(3, 1, 1)}},
    {"stride", {4, 16, 33, 31}, {32, 16, 3, 3}, {4, 32, 17, 16}, {window_2d(3, 2, 1)}},
    {"two taps, panels together",
     {6, 80, 9, 8},
     {16, 80, 2, 1},
     {6, 16, 8, 8},
     {{.rank = 2, .kernel = {2, 1, 1}}}},
    {"25 taps of panels together",
     {2, 64, 13, 8},
     {16, 64, 5, 5},
     {2, 16, 13, 8},
     {window_2d(5, 1, 2)}},
    {"dilation", {2, 16, 12, 12}, {24, 16, 3, 3}, {2, 24, 10, 10}, {window_2d(3, 1, 1, 2)}},
    {"more padding than window",
     {3, 32, 5, 3},
     {32, 32, 2, 2},
     {3, 32, 8, 5},
     {{.rank = 2, .kernel = {2, 2, 1}, .pad_begin = {3, 2, 0}, .pad_end = {1, 1, 0}}}},
    {"pixels that no window reads",
     {3, 16, 8, 9},
     {16, 16, 2, 2},
     {3, 16, 2, 2},
     {{.rank = 2, .kernel = {2, 2, 1}, .stride = {3, 4, 1}}}},
    {"one dimension",
     {9, 32, 50},
     {16, 32, 5},
     {9, 16, 25},
     {{.rank = 1, .kernel = {5, 1, 1}, .stride = {2, 1, 1}, .pad_begin = {2}, .pad_end = {2}}}},
};

TEST_CASE("conv: weight gradients of many channels are right, the same bits for any threads") {
  const KernelTable table = conv_table();
  for (const Sweep& sweep : kManyChannels) {
    CAPTURE(sweep.name);
    check_gradient(table, "ConvGradWeight", "wide",
                   [&]<typename T>(T, int threads) { return grad_weight_case<T>(sweep, threads); });
  }
}

TEST_CASE("conv: the weight gradient of many channels leaves alone what does not fill its tiles") {
  const KernelTable table = conv_table();
  const auto takes = [&](const Shape& x, const Shape& w, const Shape& y, const ConvParams& params) {
    const Sweep sweep{"", x, w, y, params};
    return KernelRun<float>(table, "ConvGradWeight", "wide", grad_weight_case<float>(sweep, 1))
        .supported();
  };
  CHECK(takes({2, 64, 8, 8}, {32, 64, 3, 3}, {2, 32, 8, 8}, {window_2d(3, 1, 1)}));
  CHECK(!takes({2, 3, 8, 8}, {32, 3, 3, 3}, {2, 32, 8, 8}, {window_2d(3, 1, 1)}));
  CHECK(!takes({2, 64, 8, 8}, {1, 64, 3, 3}, {2, 1, 8, 8}, {window_2d(3, 1, 1)}));
  CHECK(!takes({2, 64, 8, 8}, {32, 64, 1, 1}, {2, 32, 4, 4}, {window_2d(1, 2, 0)}));
  CHECK(!takes({1, 16, 16, 16}, {16, 16, 9, 9}, {1, 16, 8, 8}, {window_2d(9, 1, 0)}));
  CHECK(!takes({1, 16, 3, 4096}, {16, 16, 3, 3}, {1, 16, 3, 4096}, {window_2d(3, 1, 1)}));
  CHECK(takes({1, 64, 65, 65}, {64, 64, 3, 3}, {1, 64, 65, 65}, {window_2d(3, 1, 2, 2)}));
  CHECK(!takes({1, 64, 65, 65}, {64, 64, 3, 3}, {1, 64, 65, 65}, {window_2d(3, 1, 36, 36)}));
  CHECK(!takes({1, 4096, 8, 8}, {64, 4096, 3, 3}, {1, 64, 8, 8}, {window_2d(3, 1, 12, 12)}));
  CHECK(!takes({2, 64, 8, 8}, {32, 32, 3, 3}, {2, 32, 8, 8}, {window_2d(3, 1, 1), 2}));
}

}  // namespace
}  // namespace trainscope::cpu
