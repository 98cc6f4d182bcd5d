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

TEST_CASE("modelled_seconds: arithmetic at the rate of the node's dtype") {
  Machine machine = default_machine();
  const double like_f32 = seconds_of(kMatMulF64, machine);
  machine.flops_per_second[DType::kF64] = {.one = 1e9, .all = 2e9};
  CHECK(seconds_of(kMatMulF64, machine) == 1e-6 + kFlops / 2e9);
  CHECK(seconds_of(kMatMulF64, machine) > like_f32);
  CHECK(seconds_of(kMatMul, machine) == seconds_of(kMatMul, default_machine()));
}

}  // namespace trainscope::test
