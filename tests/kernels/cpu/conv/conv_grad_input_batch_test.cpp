// Input gradients by lanes of the batch: right, deterministic, and left where they do not pay.
#include <doctest/doctest.h>

#include <vector>

#include "tests/kernels/cpu/conv/conv_cases.h"

namespace trainscope::cpu {
namespace {

const std::vector<Sweep> kBatches = {
    {"lenet", {32, 6, 14, 14}, {16, 6, 5, 5}, {32, 16, 10, 10}, {window_2d(5, 1, 0)}},
    {"groups of lanes", {61, 7, 6, 9}, {3, 7, 3, 3}, {61, 3, 4, 7}, {window_2d(3, 1, 0)}},
    {"short rows", {27, 1, 5, 3}, {2, 1, 2, 2}, {27, 2, 4, 2}, {window_2d(2, 1, 0)}},
    {"more padding than window",
     {32, 2, 4, 3},
     {5, 2, 2, 2},
     {32, 5, 7, 2},
     {{.rank = 2, .kernel = {2, 2, 1}, .pad_begin = {2, 0, 0}, .pad_end = {2, 0, 0}}}},
    {"uneven",
     {26, 8, 9, 10},
     {4, 8, 4, 2},
     {26, 4, 8, 11},
     {{.rank = 2, .kernel = {4, 2, 1}, .pad_begin = {2, 1, 0}, .pad_end = {0, 1, 0}}}},
};

TEST_CASE("conv: input gradients by lanes of the batch are right, the same bits for any threads") {
  const KernelTable table = conv_table();
  for (const Sweep& sweep : kBatches) {
    CAPTURE(sweep.name);
    check_gradient(table, "ConvGradInput", "batch",
                   [&]<typename T>(T, int threads) { return grad_input_case<T>(sweep, threads); });
  }
}

TEST_CASE("conv: input gradients are left to rows of pixels where lanes or sums would be wasted") {
  const KernelTable table = conv_table();
  const auto takes = [&](std::int64_t batch, std::int64_t size, const ConvParams& params) {
    const WindowParams& window = params.window;
    const std::int64_t reach = (window.kernel[0] - 1) * window.dilation[0];
    const std::int64_t out = (size + 2 * window.pad_begin[0] - reach - 1) / window.stride[0] + 1;
    const Sweep sweep{"",
                      {batch, 6, size, size},
                      {12, 6 / params.group, window.kernel[0], window.kernel[0]},
                      {batch, 12, out, out},
                      params};
    return KernelRun<float>(table, "ConvGradInput", "batch", grad_input_case<float>(sweep, 1))
        .supported();
  };
  CHECK(takes(32, 14, {window_2d(5, 1, 0)}));
  CHECK(!takes(16, 14, {window_2d(5, 1, 0)}));     // lanes
  CHECK(!takes(32, 40, {window_2d(3, 1, 1)}));     // long rows
  CHECK(!takes(32, 14, {window_2d(5, 2, 0)}));     // strides
  CHECK(!takes(32, 14, {window_2d(3, 1, 0, 2)}));  // dilation
  CHECK(!takes(32, 14, {window_2d(5, 1, 0), 2}));  // groups
}

}  // namespace
}  // namespace trainscope::cpu
