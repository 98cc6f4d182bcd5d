// Ops that decompose, in one differentiated graph: planned and executed as computed node by node.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "engine/exec/memory_check.h"
#include "engine/plan/lower.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kImages =
    "(float[2,2,4,4] x, float[2,3,3,3] w, float[3] s, float[3] b, float[5,4] v, float[2,1,3,3] u,"
    " float[5] k, int64[2,4,3,3] places, int64[2,1,3,3] slots, int64[2,3,3] labels)"
    " => (float loss) <int64[8] pads = {0,0,1,1,0,0,1,1}> {"
    " roi = Constant <value = float[0] {}> ()"
    " scales = Constant <value = float[4] {1, 1, 0.5, 0.5}> ()"
    " large = ConvTranspose <strides = [2,2], pads = [1,1,1,1], output_padding = [1,1]> (x, w)"
    " normal = InstanceNormalization (large, s, b)"
    " small = Resize <mode = \"linear\"> (normal, roi, scales)"
    " padded = Pad <mode = \"reflect\"> (small, pads)"
    " deep = SpaceToDepth <blocksize = 2> (padded)"
    " chosen = GatherElements <axis = 1> (deep, places)"
    " scores = Einsum <equation = \"nchw,kc->nkhw\"> (chosen, v)"
    " scaled = ScatterElements <axis = 1, reduction = \"mul\"> (scores, slots, u)"
    " loss = SoftmaxCrossEntropyLoss <ignore_index = 1> (scaled, labels, k) }";

const std::vector<std::string> kWanted = {"x", "w", "s", "b", "v", "u", "k"};

Graph differentiated() {
  Graph g = graph(kImages);
  g.loss = g.find("loss");
  TrainingOptions options;
  options.mode = GraphMode::kGradients;
  options.gradient_of = kWanted;
  return passed(std::move(g),
                {"decompose", "differentiate", "fold_constants", "simplify", "common_subexpression",
                 "dead_code"},
                options);
}

Tensors inputs_of(const Graph& g) {
  Tensors inputs = random_inputs(g, 7);
  inputs.insert_or_assign("k", floats({5}, {1, 2, 3, 4, 5}));
  for (const char* name : {"slots", "labels"}) {
    for (std::int64_t& i : inputs.at(name).values<std::int64_t>()) i %= 5;
  }
  return inputs;
}

}  // namespace

TEST_CASE("executor: a step of ops that decompose gives the gradients of the reference") {
  const Graph g = differentiated();
  REQUIRE(g.gradients.size() == kWanted.size());
  const Tensors inputs = inputs_of(g);
  const Tensors want = results_of(g, inputs);
  for (bool in_place : {true, false}) {
    CAPTURE(in_place);
    const Program program = lower(g, test_device(), {.in_place = in_place});
    const auto shared = std::make_shared<Executor>(program);
    Executor& executor = *shared;
    executor.load_initial();
    const MemoryCheck check(shared);
    for (const auto& [name, tensor] : inputs) executor.write(name, tensor);
    executor.run_micro_step();
    CHECK_MESSAGE(check.violations().empty(), join(check.violations(), "\n"));
    CHECK(difference(executor.read(g.value(g.loss).name), want.at("loss")) <= 1e-5);
    for (const GradientOf& gradient : g.gradients) {
      const std::string of = g.value(gradient.of).name;
      CAPTURE(of);
      const Tensor got = executor.read(g.value(gradient.gradient).name);
      CHECK(difference(got, want.at("d " + of)) <= 1e-5);
      double norm = 0.0;
      for (float d : got.values<float>()) norm += std::abs(static_cast<double>(d));
      CHECK(norm > 0.0);
    }
  }
}

}  // namespace trainscope::test
