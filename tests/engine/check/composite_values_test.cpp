// Ops that the importer writes with others: their numbers. Those of MatMulBnb4 and of MaxPool's
// places are ONNX Runtime 1.32's, the others follow from the op's definition by hand.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "tests/engine/check/model_probe.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

// Output `name` of a model without inputs; integers and booleans as numbers too.
Numbers value_of(const ModelCase& model_case, const std::string& name) {
  const Evaluate evaluate =
      evaluator(op_table(), cpu_kernels(), {.kernels = KernelChoice::kReference});
  const OnnxModel model = OnnxModel::parse_text(text_of(model_case));
  const Graph graph = to_graph(model, op_table(),
                               {.float_type = DType::kF64, .frozen = {"*"}, .evaluate = &evaluate});
  const ReferenceValues values = reference_run(graph, {}, evaluate);
  const Tensor numbers = convert(values.at(graph.find(name)), DType::kF64);
  return {numbers.values<double>().begin(), numbers.values<double>().end()};
}

void check_near(const Numbers& got, const Numbers& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-6));
}

ModelCase of(std::string_view outputs, std::string_view node, std::string_view known) {
  return {.name = "values",
          .opsets = kMicrosoftOpsets,
          .inputs = "",
          .outputs = outputs,
          .node = node,
          .known = known};
}

}  // namespace

TEST_CASE("composite values: places of maxima that count columns first") {
  const ModelCase model = of("float[1,2,2,2] y, int64[1,2,2,2] i",
                             "y, i = MaxPool<kernel_shape = [1, 2], storage_order = 1>(x)",
                             "float[1,2,2,3] x = {1, 5, 2, 7, 0, 9, 3, 2, 1, 0, 4, 6}");
  CHECK(value_of(model, "y") == Numbers{5, 5, 7, 9, 3, 2, 4, 6});
  CHECK(value_of(model, "i") == Numbers{2, 2, 1, 5, 6, 8, 9, 11});
}

TEST_CASE("composite values: weights of four-bit floats") {
  const auto known =
      "float[2,4] a = {1, 0, 0, 0, 0, 1, 2, -1}, uint8[6] w = {18, 52, 86, 120, 154, 188}, "
      "float[1] m = {0.5}";
  check_near(value_of(of("float[2,3] y",
                         "y = com.microsoft.MatMulBnb4<K = 4, N = 3, block_size = 16, quant_type = "
                         "0>(a, w, m)",
                         known),
                      "y"),
             {0.0026041667, 0.25, -0.0026041667, 1.1666667, 0.33333334, -1.1666667});
  check_near(value_of(of("float[2,3] y",
                         "y = com.microsoft.MatMulBnb4<K = 4, N = 3, block_size = 16, quant_type = "
                         "1>(a, w, m)",
                         known),
                      "y"),
             {-0.3480964, -0.092386715, 0.0804651, -0.51523334, -0.08531517, 0.24061647});
}

TEST_CASE("composite values: fake quantization, and where it lets a gradient pass") {
  const ModelCase model =
      of("float[5] y, bool[5] m",
         "y, m = com.microsoft.FakeQuant<quant_min = 0, quant_max = 15>(x, s, z)",
         "float[5] x = {-1.1, -0.9, 0.26, 2.6, 2.8}, float s = {0.25}, float z = {4.0}");
  CHECK(value_of(model, "y") == Numbers{-1.0, -1.0, 0.25, 2.5, 2.75});
  CHECK(value_of(model, "m") == Numbers{1, 1, 1, 1, 1});
  const ModelCase narrow =
      of("float[3] y, bool[3] m",
         "y, m = com.microsoft.FakeQuant<quant_min = 3, quant_max = 6>(x, s, z)",
         "float[3] x = {-1.0, 0.3, 2.0}, float s = {0.25}, float z = {4.0}");
  CHECK(value_of(narrow, "y") == Numbers{-0.25, 0.25, 0.5});
  CHECK(value_of(narrow, "m") == Numbers{0, 1, 0});
}

TEST_CASE("composite values: losses over the last axis") {
  // Both rows have two classes of one score each: every class has the share 1 / 2.
  const auto known =
      "float[2,2] x = {3, 3, -1, -1}, int64[2] l = {1, 0}, float[2] w = {1, 3}, "
      "float[2,2] p = {0.25, 0.75, 1, 1}";
  const double half = std::log(2.0);
  const auto loss = [&](const char* node) { return value_of(of("float y", node, known), "y"); };
  check_near(loss("y = com.microsoft.SparseSoftmaxCrossEntropy(x, l)"), {half});
  check_near(loss(R"(y = com.microsoft.SparseSoftmaxCrossEntropy<reduction = "sum">(x, l))"),
             {2 * half});
  check_near(loss("y = com.microsoft.SparseSoftmaxCrossEntropy(x, l, w)"), {half});
  check_near(loss(R"(y = SparseSoftmaxCrossEntropy<reduction = "sum">(x, l, w))"), {4 * half});
  check_near(loss("y = com.microsoft.SoftmaxCrossEntropy(x, p)"), {1.5 * half});
  check_near(loss(R"(y = com.microsoft.SoftmaxCrossEntropy<reduction = "sum">(x, p))"), {3 * half});
  const Numbers log_probs = value_of(
      of("float y, float[2,2] q", "y, q = com.microsoft.SoftmaxCrossEntropy(x, p)", known), "q");
  check_near(log_probs, {-half, -half, -half, -half});
}

TEST_CASE("composite values: sums, sizes, statistics, rows without padding") {
  CHECK(value_of(of("float[2] y", "y = com.microsoft.ScaledSum<scale_0 = 0.5, scale_1 = 2.0>(a, b)",
                    "float[2] a = {2, 4}, float[2] b = {1, -1}"),
                 "y") == Numbers{3, 0});
  CHECK(value_of(
            of("float[2,4] y, int64[2] n", "y, n = com.microsoft.ConcatTraining<axis = -1>(a, b)",
               "float[2,3] a = {1, 2, 3, 4, 5, 6}, float[2,1] b = {7, 8}"),
            "n") == Numbers{3, 1});
  const ModelCase norm =
      of("float[2,2] y, float[2] m, float[2] i",
         "y, r, v, m, i = com.microsoft.BatchNormInternal<epsilon = 0.0, momentum = 0.5>(x, s, b, "
         "a, c)",
         "float[2,2] x = {1, 10, 3, 14}, float[2] s = {1, 2}, float[2] b = {0, 1}, "
         "float[2] a = {0, 0}, float[2] c = {1, 1}");
  check_near(value_of(norm, "y"), {-1, -1, 1, 3});
  check_near(value_of(norm, "m"), {2, 12});
  check_near(value_of(norm, "i"), {1, 0.5});
  check_near(value_of(norm, "r"), {1, 6});
  const ModelCase rows = of("float[2,2,1] y, int64[2] s",
                            "r, n = com.microsoft.FlattenAndUnpad(x, i) "
                            "y, s = com.microsoft.PadAndUnflatten(r, i, n)",
                            "float[2,2,1] x = {5, 6, 7, 8}, int64[3] i = {0, 1, 3}");
  CHECK(value_of(rows, "r") == Numbers{5, 6, 8});
  CHECK(value_of(rows, "y") == Numbers{5, 6, 0, 8});
  CHECK(value_of(rows, "s") == Numbers{4, 1});
}

TEST_CASE("composite values: calls that do not fit are refused by what is wrong") {
  struct Refused {
    std::string_view node;
    std::string_view known;
    std::string_view message;
  };
  constexpr Refused kRefused[] = {
      {"y = com.microsoft.ScaledSum(a, b)", "float[2] a = {1, 2}, float[3] b = {1, 2, 3}",
       "they must be alike"},
      {"y = com.microsoft.SoftmaxCrossEntropy(a, b)", "float[2] a = {1, 2}, float b = {1}",
       "must be alike"},
      {R"(y = com.microsoft.SparseSoftmaxCrossEntropy<reduction = "none">(a, b))",
       "float[1,2] a = {1, 2}, int64[1] b = {1}", "mean and sum are supported"},
      {"y = com.microsoft.FakeQuant(a, b, b)", "float[2] a = {1, 2}, float[2] b = {1, 2}",
       "must be one number each"},
      {"y = com.microsoft.ShrunkenGather(a, b)", "float[2] a = {1, 2}, int64[1,1] b = {1}",
       "indices must be a vector"},
      {"y, n = com.microsoft.FlattenAndUnpad(a, b)", "float[2] a = {1, 2}, int64[1] b = {1}",
       "[batch, tokens, ...]"},
      {"y = com.microsoft.PadAndUnflatten(a, b, b)", "float[3] a = {1, 2, 3}, int64[2] b = {1, 2}",
       "as many rows as there are indices"},
      {"y = com.microsoft.PadAndUnflatten(a, b, b)", "float[2] a = {1, 2}, int64[2] b = {1, -2}",
       "unflatten_dims are 1 and -2"},
      {"y = com.microsoft.MatMulBnb4<K = 2, N = 1, block_size = 16, quant_type = 2>(a, b, c)",
       "float[1,2] a = {1, 2}, uint8[1] b = {1}, float[1] c = {1}", "0 (FP4) and 1 (NF4) exist"},
      {"y = com.microsoft.MatMulBnb4<K = 4, N = 1, block_size = 16>(a, b, c)",
       "float[1,4] a = {1, 2, 3, 4}, uint8[1] b = {1}, float[1] c = {1}",
       "input 1 holds 1 numbers, 2 are expected"},
      {"y = com.microsoft.MatMulBnb4(a, b, c)",
       "float[1,2] a = {1, 2}, uint8[1] b = {1}, float[1] c = {1}", "must be above 0"},
  };
  for (const Refused& each : kRefused) {
    INFO(each.node);
    try {
      value_of(of("float y", each.node, each.known), "y");
      FAIL_CHECK("it is not refused");
    } catch (const Error& error) {
      INFO(error.message());
      CHECK(error.message().find(each.message) != std::string::npos);
    }
  }
}

}  // namespace trainscope::test
