// If, Loop and Scan: their gradients against f64 central differences of sum(cotangent * output), by
// every float input at once and one by one.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/check/model_probe.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kOpsets = R"("" : 17)";

constexpr ModelCase kCases[] = {
    {"a loop with a state and what each trip makes", kOpsets, "float[2] x, float[2] w",
     "float[2] y, float[4,2] all",
     "y, all = Loop <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] n, float[2] s) { "
     "d "
     "= Identity(c) p = Mul(h, w) n = Tanh(p) s = Add(n, x) }> (trips, go, x)",
     "int64 trips = {4}, bool go = {1}"},
    {"a loop that swaps two states and hands one on as it is", kOpsets, "float[2] x, float[2] z",
     "float[2] a, float[2] b, float[2] k",
     "a, b, k = Loop <body = b (int64 i, bool c, float[2] p, float[2] q, float[2] r) => (bool d, "
     "float[2] q, float[2] s, float[2] r) { d = Identity(c) t = Sin(p) s = Mul(t, r) }> (trips, , "
     "x, "
     "z, z)",
     "int64 trips = {3}"},
    {"a loop that reads the number of its trip", kOpsets, "float[2] x", "float[2] y",
     "y = Loop <body = b (int64 i, bool c, float[2] h) => (bool d, float[2] n) { d = Identity(c) f "
     "= "
     "Cast<to = 1>(i) g = Add(f, one) m = Div(h, g) n = Sin(m) }> (trips, go, x)",
     "int64 trips = {3}, bool go = {1}, float one = {1}"},
    {"a loop that ends when its state says so", kOpsets, "float[3] x, float[3] w", "float[3] y",
     "y = Loop <body = b (int64 i, bool c, float[3] h) => (bool d, float[3] n) { q = Mul(w, w) g = "
     "Add(q, one) n = Mul(h, g) a = Abs(n) s = ReduceMax<keepdims = 0>(a) d = Less(s, most) }> "
     "(trips, go, x)",
     "int64 trips = {40}, bool go = {1}, float one = {1.1}, float most = {20}"},
    {"a loop that ends at once, on what it was given", kOpsets, "float[3] x", "float[3] y",
     "z = Sub(x, x) s = ReduceSum<keepdims = 0>(z) c = Greater(s, one) y = Loop <body = b (int64 "
     "i, "
     "bool c0, float[3] h) => (bool d, float[3] n) { d = Identity(c0) n = Exp(h) }> (trips, c, x)",
     "int64 trips = {5}, float one = {1}"},
    {"a scanned RNN", kOpsets, "float[5,2,3] x, float[3,4] w, float[4,4] r, float[2,4] h",
     "float[2,4] last, float[5,2,4] all",
     "last, all = Scan <num_scan_inputs = 1, body = b (float[2,4] p, float[2,3] s) => (float[2,4] "
     "n, "
     "float[2,4] o) { u = MatMul(s, w) v = MatMul(p, r) f = Add(u, v) t = Mul(f, half) n = Tanh(t) "
     "o "
     "= Identity(n) }> (h, x)",
     "float half = {0.5}"},
    {"a scan along other axes, backwards", kOpsets, "float[2,4] x, float[2,4] z, float[2] h",
     "float[2] last, float[2,4] all",
     "last, all = Scan <num_scan_inputs = 2, scan_input_axes = [1, 1], scan_input_directions = [1, "
     "0], scan_output_axes = [1], scan_output_directions = [1], body = b (float[2] p, float[2] s, "
     "float[2] t) => (float[2] n, float[2] o) { u = Mul(p, s) n = Add(u, t) o = Sin(n) }> (h, x, "
     "z)"},
    {"a branch that the data chooses, the first", kOpsets, "float[2,3] x, float[2,3] w",
     "float[2,3] y",
     "a = Abs(x) s = ReduceSum<keepdims = 0>(a) c = Greater(s, zero) y = If <then_branch = t () => "
     "(float[2,3] p) { p = Mul(x, w) }, else_branch = e () => (float[2,3] q) { q = Exp(x) }> (c)",
     "float zero = {0}"},
    {"a branch that the data chooses, the second", kOpsets, "float[2,3] x, float[2,3] w",
     "float[2,3] y, float[2,3] z",
     "a = Abs(x) s = ReduceSum<keepdims = 0>(a) c = Less(s, zero) y, z = If <then_branch = t () => "
     "(float[2,3] p, float[2,3] w) { p = Mul(x, w) }, else_branch = e () => (float[2,3] q, "
     "float[2,3] x) { q = Exp(w) }> (c)",
     "float zero = {0}"},
    {"a branch that reads a value with the name of what is added to bodies", kOpsets,
     "float[2,3] x, float[2,3] trip", "float[2,3] y",
     "a = Abs(x) s = ReduceSum<keepdims = 0>(a) c = Greater(s, zero) y = If <then_branch = t () => "
     "(float[2,3] p) { p = Mul(x, trip) }, else_branch = e () => (float[2,3] q) { q = Exp(x) }> "
     "(c)",
     "float zero = {0}"},
    {"a branch before a value with the name of what it adds", kOpsets, "float[2,3] x, float[3,2] w",
     "float[3,2] y",
     "a = Abs(x) s = ReduceSum<keepdims = 0>(a) c = Greater(s, zero) z = If <then_branch = t () => "
     "(float[2,3] p) { p = Sin(x) }, else_branch = e () => (float[2,3] q) { q = Exp(x) }> (c) "
     "shape = Shape(w) v = Reshape(z, shape) y = Mul(v, w)",
     "float zero = {0}"},
    {"a branch that is known", kOpsets, "float[2,3] x, float[2,3] w", "float[2,3] y",
     "y = If <then_branch = t () => (float[2,3] p) { q = Mul(x, w) p = Sin(q) }, else_branch = e "
     "() "
     "=> (float[2,3] p) { p = Identity(x) }> (c)",
     "bool c = {1}"},
    {"a loop in a scan, with a branch in it", kOpsets, "float[3,2] x, float[2] w", "float[2] y",
     "y = Scan <num_scan_inputs = 1, body = b (float[2] p, float[2] s) => (float[2] n) { n = Loop "
     "<body = l (int64 i, bool c, float[2] h) => (bool d, float[2] m) { d = Identity(c) a = Mul(h, "
     "w) "
     "t = Add(a, s) e = ReduceSum<keepdims = 0>(t) f = Greater(e, zero) m = If <then_branch = t () "
     "=> (float[2] g) { g = Sin(t) }, else_branch = e () => (float[2] g) { g = Mul(t, w) }> (f) }> "
     "(trips, , p) }> (w, x)",
     "int64 trips = {2}, float zero = {0}"},
};

std::vector<InputSubset> each_alone(const InputSubset& inputs) {
  std::vector<InputSubset> subsets;
  for (const std::string& input : inputs) subsets.push_back({input});
  return subsets;
}

}  // namespace

TEST_CASE("control flow: gradients through If, Loop and Scan, checked by differences") {
  check_gradients(kCases, each_alone);
}

}  // namespace trainscope::test
