// The cases by which ONNX Runtime Training tests its gradients, by the names that they have there:
// those of ops that are written with others when a model is read. Those of rows are in
// tests/ops/named_gradients_test.cpp.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tests/engine/check/model_probe.h"

namespace trainscope::test {
namespace {

constexpr double kBound = 1e-6;
constexpr double kTolerance = 1.5e-2;  // there, of each: the largest element's error, in f32

constexpr ModelCase kCases[] = {
    {"SoftmaxCrossEntropyGrad", kMicrosoftOpsets, "float[2,3,5] x", "float y, float[2,3,5] p",
     "l = Softmax(s) y, p = com.microsoft.SoftmaxCrossEntropy(x, l)",
     "float[2,3,5] s = {1, 2, 3, 0, 0, 1, 1, 0, 2, 5, 0, 1, 4, 1, 2, 2, 2, 3, 0, 1, 1, 4, 0, 2, 5, "
     "3, 1, 4, 1, 2}"},
    {"FastGeluGrad_Bias", kMicrosoftOpsets, "float[2,3,4] x, float[4] b", "float[2,3,4] y",
     "y = com.microsoft.FastGelu(x, b)"},
    {"BiasGeluGrad", kMicrosoftOpsets, "float[2,3,4] x, float[4] b", "float[2,3,4] y",
     "y = com.microsoft.BiasGelu(x, b)"},
    {"PadAndUnflattenGrad", kMicrosoftOpsets, "float[4,3] x", "float[5,2,3] y, int64[2] s",
     "y, s = com.microsoft.PadAndUnflatten(x, i, n)",
     "int64[4] i = {3, 5, 0, 9}, int64[2] n = {5, 2}"},
    {"ScaledSumGrad", kMicrosoftOpsets, "float[2,3] a, float[2,3] b, float[2,3] c", "float[2,3] y",
     "y = com.microsoft.ScaledSum<scale_0 = 0.5, scale_1 = 0.3, scale_2 = 0.2>(a, b, c)"},
};

}  // namespace

TEST_CASE("named gradients: ONNX Runtime Training's cases of ops that are written with others") {
  std::string table;
  for (const ModelCase& named : kCases) {
    INFO(named.name);
    const ModelProbe probe(named);
    double worst = 0.0;
    for (const auto& [input, gradient] : probe.gradients(probe.float_inputs())) {
      INFO("by ", input);
      const double error = probe.error(input, gradient);
      CHECK(error <= kBound);
      worst = std::max(worst, error);
    }
    table += fmt::format("\n  {:<36} {:.1e} of {:.1e}", named.name, worst, kTolerance);
  }
  MESSAGE(std::size(kCases), " cases, error and tolerance there:", table);
}

}  // namespace trainscope::test
