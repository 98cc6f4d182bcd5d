// The roofline of each node by a machine.
#include "engine/recompute/costs.h"

#include <doctest/doctest.h>

#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

// Of the graph's one node.
double seconds_of(const char* text, const Machine& machine) {
  const Graph one = graph(text);
  return modelled_seconds(one, machine)[static_cast<std::size_t>(one.order().front())];
}

constexpr const char* kMatMul = "(float[64,64] a) => (float[64,64] y) { y = MatMul(a, a) }";
constexpr const char* kMatMulF64 = "(double[64,64] a) => (double[64,64] y) { y = MatMul(a, a) }";
constexpr const char* kAdd = "(float[4096] a) => (float[4096] y) { y = Add(a, a) }";
constexpr double kFlops = 2.0 * 64 * 64 * 64;
constexpr double kBytes = 3.0 * 4096 * 4;

}  // namespace

TEST_CASE("modelled_seconds: arithmetic or traffic, whichever is longer, and the call") {
  Machine machine = default_machine();
  CHECK(seconds_of(kMatMul, machine) == 1e-6 + kFlops / 180e9);
  CHECK(seconds_of(kAdd, machine) == 1e-6 + kBytes / 20e9);
  machine.seconds_per_call = 5e-6;
  machine.flops_per_second[DType::kF32].all = 1e12;
  machine.levels.back().copy.all = 1e10;
  CHECK(seconds_of(kMatMul, machine) == 5e-6 + kBytes / 1e10);
  CHECK(seconds_of(kAdd, machine) == 5e-6 + kBytes / 1e10);
}

TEST_CASE("modelled_seconds: a state that a node updates where it is has the rate of that") {
  Graph step = graph("(float[4096] p, float[4096] g) => (float[4096] y) { y = Add(p, g) }");
  const Node& node = step.node(step.order().front());
  const auto seconds = [&](const Machine& machine) {
    return modelled_seconds(step, machine)[static_cast<std::size_t>(step.order().front())];
  };
  Machine machine = default_machine();
  machine.levels.back().update = Rate{.one = 2e10, .all = 4e10};
  const double no_state = seconds(machine);
  CHECK(no_state == seconds(default_machine()));
  step.updates.push_back({.state = node.inputs[0], .value = node.outputs[0]});
  const double of_a_tensor = 4096.0 * 4;
  CHECK(no_state - seconds(machine) ==
        doctest::Approx(2.0 * of_a_tensor * (1.0 / 20e9 - 1.0 / 4e10)));
  CHECK(seconds(default_machine()) == no_state);
}

TEST_CASE("modelled_seconds: arithmetic at the rate of the node's dtype") {
  Machine machine = default_machine();
  const double like_f32 = seconds_of(kMatMulF64, machine);
  machine.flops_per_second[DType::kF64] = {.one = 1e9, .all = 2e9};
  CHECK(seconds_of(kMatMulF64, machine) == 1e-6 + kFlops / 2e9);
  CHECK(seconds_of(kMatMulF64, machine) > like_f32);
  CHECK(seconds_of(kMatMul, machine) == seconds_of(kMatMul, default_machine()));
}

}  // namespace trainscope::test
