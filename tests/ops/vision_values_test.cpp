// Ops that read images between their elements, on literals. The expected numbers are PyTorch's.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/backward.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

Numbers run(const OpCall& call) { return numbers(evaluate(call)[0]); }

void check_close(const Numbers& got, const Numbers& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK(std::abs(got[i] - want[i]) <= 1e-10);
  }
}

// The gradient of sum(weights * y) by input `wanted` of a node with two inputs.
Numbers gradient_of(const OpCall& call, const Tensor& weights, std::size_t wanted) {
  const OpTable ops = standard_ops();
  const Evaluate evaluate = evaluator(ops, cpu_kernels());
  Graph graph;
  Builder b(graph, ops);
  b.set_provenance({.sources = {}, .pass = "test"});
  std::map<std::string, Tensor> data{{"x", call.inputs[0]}, {"z", call.inputs[1]}, {"dy", weights}};
  const ValueId x = b.input("x", call.inputs[0].type());
  const ValueId z = b.input("z", call.inputs[1].type());
  const ValueId y = b(call.op, {x, z}, call.attributes);
  const ValueId dy = b.input("dy", weights.type());
  std::vector<bool> want(2, false);
  want[wanted] = true;
  const std::vector<ValueId> dx = backward(b, graph.value(y).producer, {dy}, want);
  if (dx[wanted] == kNoValue) {  // a gradient of zero
    return Numbers(static_cast<std::size_t>(call.inputs[wanted].elements()), 0.0);
  }
  return numbers(reference_run(graph, data, evaluate).at(dx[wanted]));
}

struct GridCase {
  std::string mode;
  std::string padding;
  std::int64_t align_corners;
  Numbers y;
  Numbers dgrid;  // of y0 + 2 y1 + 3 y2 + 4 y3
};

// Of one point inside, one between and two outside an image of 2 x 3, of which one is far away.
const std::vector<GridCase>& grid_cases() {
  static const std::vector<GridCase> cases = {
      {"bilinear",
       "zeros",
       0,
       {0.455, 0.08, 0.0075, 0},
       {1.05, 0.65, -25.8, -0.4, -0.675, 0.45, 0, 0}},
      {"bilinear",
       "zeros",
       1,
       {1.04, 0.985, 1.6275, 0},
       {-2.6, 1.7, -11.6, 2.2, -6.975, 3.15, 0, 0}},
      {"bilinear", "border", 0, {1, 0.08, 3, 4}, {0, 0, -25.8, -0.4, 0, 0, 0, 0}},
      {"bilinear", "border", 1, {1.04, 0.985, 3, 4}, {-2.6, 1.7, -11.6, 2.2, 0, 0, 0, 0}},
      {"bilinear", "reflection", 0, {1, 0.08, 3, -0.5}, {0, 0, -25.8, -0.4, 0, 0, -30, 0}},
      {"bilinear",
       "reflection",
       1,
       {1.04, 0.985, 0.555, -0.81},
       {-2.6, 1.7, -11.6, 2.2, -4.2, 6.3, -16.8, 7.6}},
      {"nearest", "zeros", 0, {1, 5, 0, 0}, Numbers(8)},
      {"nearest", "zeros", 1, {1, 5, 3, 0}, Numbers(8)},
      {"nearest", "border", 0, {1, 5, 3, 4}, Numbers(8)},
      {"nearest", "reflection", 0, {1, 5, 3, -2}, Numbers(8)},
      {"nearest", "reflection", 1, {1, 5, 3, -2}, Numbers(8)},
      {"bicubic",
       "zeros",
       0,
       {0.549121015625, -0.244785288086, 0.005667539062, 0},
       {0.73399921875, 1.1465390625, -36.608926464844, -0.696498632813, -0.565359960937,
        0.392080078125, 0, 0}},
      {"bicubic",
       "zeros",
       1,
       {1.1548371875, 1.130168842773, 3.005108818359, 0.012996},
       {-2.389321875, 2.0660390625, -16.927493261719, 2.929627148437, -9.68805703125,
        1.779885351563, -0.12996, 0.46512}},
      {"bicubic",
       "border",
       0,
       {1.05087840625, 0.180908304687, 3.024988265625, 4},
       {0.1258115625, 0.1342096875, -30.34101515625, 0.5786334375, -1.56983484375, 1.8790565625, 0,
        0}},
      {"bicubic",
       "border",
       1,
       {1.002002, 1.130869445312, 4.642240265625, 4},
       {-2.83494, 1.52043, -13.03161421875, 3.2123690625, 1.04291578125, -3.0500803125, 0, 0}},
      {"bicubic",
       "reflection",
       0,
       {1.14686875, 0.180908304687, 3.51905625, -1.47161},
       {-1.225125, 0.69525, -30.34101515625, 0.5786334375, -16.918875, 19.37925, -49.1814, 1.7862}},
      {"bicubic",
       "reflection",
       1,
       {0.991904, 0.97020615625, 1.22560809375, -1.257666},
       {-1.77168, 0.86211, -18.449064375, 2.92339125, -10.7576353125, 9.590450625, -20.59104,
        2.38488}}};
  return cases;
}

}  // namespace

TEST_CASE("GridSample: values and gradients of every mode and padding are PyTorch's") {
  const Tensor x = f64({1, 1, 2, 3}, {1, -2, 3, 4, 5, -6});
  const Tensor grid = f64({1, 1, 4, 2}, {-.9, -.8, .3, .35, 1.3, -1.45, -2.2, 3.1});
  const Tensor weights = f64({1, 1, 1, 4}, {1, 2, 3, 4});
  for (const GridCase& c : grid_cases()) {
    CAPTURE(c.mode);
    CAPTURE(c.padding);
    CAPTURE(c.align_corners);
    const OpCall call{
        "GridSample",
        {x, grid},
        {{"mode", c.mode}, {"padding_mode", c.padding}, {"align_corners", c.align_corners}}};
    check_close(run(call), c.y);
    check_close(gradient_of(call, weights, 1), c.dgrid);
  }
}

TEST_CASE("GridSample: at the outermost elements no gradient flows to a padded place") {
  const Tensor x = f64({1, 1, 1, 3}, {1, 5, 2});
  const Tensor grid = f64({1, 1, 2, 2}, {-1, 0, 1, 0});
  const Tensor weights = f64({1, 1, 1, 2}, {1, 1});
  const OpCall call{"GridSample",
                    {x, grid},
                    {{"padding_mode", std::string("border")}, {"align_corners", std::int64_t{1}}}};
  CHECK(run(call) == Numbers{1, 2});
  CHECK(gradient_of(call, weights, 1) == Numbers{0, 0, 0, 0});
  CHECK(gradient_of(call, weights, 0) == Numbers{1, 0, 1});
}

TEST_CASE("GridSample: what is no number gives none, what is far away gives padding") {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = f64({1, 1, 1, 3}, {1, 5, 2});
  const Tensor grid = f64({1, 1, 3, 2}, {kNaN, 0, 1e300, 0, -1e300, 0});
  const Numbers zeros = run({"GridSample", {x, grid}});
  CHECK(std::isnan(zeros[0]));
  CHECK(zeros[1] == 0);
  CHECK(zeros[2] == 0);
  const Numbers border = run({"GridSample", {x, grid}, {{"padding_mode", std::string("border")}}});
  CHECK(std::isnan(border[0]));
  CHECK(border[1] == 2);
  CHECK(border[2] == 1);
}

TEST_CASE("RoiAlign: given and adaptive samples, with and without the shift, are PyTorch's") {
  Tensor x({.dtype = DType::kF64, .shape = {1, 1, 5, 6}});
  for (std::size_t i = 0; i < 30; ++i) x.values<double>()[i] = std::sin(static_cast<double>(i));
  const Tensor regions = f64({2, 4}, {0.5, -1, 4, 3.5, 1, 1, 1.4, 1.2});
  const Tensor examples = i64({2}, {0, 0});
  const auto align = [&](const std::string& mode, std::int64_t samples) {
    return run({"RoiAlign",
                {x, regions, examples},
                {{"output_height", std::int64_t{2}},
                 {"output_width", std::int64_t{2}},
                 {"spatial_scale", 0.9},
                 {"sampling_ratio", samples},
                 {"coordinate_transformation_mode", mode}}});
  };
  check_close(align("half_pixel", 2),
              {0.558041976037, 0.643398176899, 0.225452042195, 0.815132384449, 0.308680614853,
               0.467749374198, 0.287719682059, 0.448326325421});
  check_close(align("half_pixel", 0),
              {0.360875134631, 0.436623660306, 0.224712510047, 0.812184221524, 0.308680614853,
               0.467749374198, 0.287719682059, 0.448326325421});
  check_close(align("output_half_pixel", 0),
              {0.764617645297, 0.334624387073, 0.489762440176, 0.659519298813, 0.676675956717,
               0.860716930992, 0.576121326094, 0.819679468109});
}

TEST_CASE("MaxRoiPool: bins share elements at their ends") {
  const Tensor x = f64({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor regions = f64({1, 5}, {0, 0, 0, 2, 2});
  CHECK(run({"MaxRoiPool", {x, regions}, {{"pooled_shape", Ints{2, 2}}}}) == Numbers{5, 6, 8, 9});
}

TEST_CASE("MaxPool and MaxUnpool: places lead back") {
  const Tensor x = f64({1, 2, 2, 4}, {1, 9, 2, 2, 3, 4, 2, 2, 8, 1, 0, 5, 1, 1, 6, 1});
  const Attributes windows{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const std::vector<Tensor> pooled = evaluate({"MaxPool", {x}, windows, 2});
  CHECK(numbers(pooled[0]) == Numbers{9, 2, 8, 6});
  CHECK(numbers(pooled[1]) == Numbers{1, 2, 8, 14});
  const Numbers back = run({"MaxUnpool", {pooled[0], pooled[1]}, windows});
  CHECK(back == Numbers{0, 9, 2, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 6, 0});
}

TEST_CASE("Col2Im: adds up what windows share") {
  const Tensor columns = f64({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(run({"Col2Im", {columns, i64({2}, {2, 3}), i64({2}, {2, 2})}}) ==
        Numbers{1, 5, 4, 5, 13, 8});
}

}  // namespace trainscope::test
