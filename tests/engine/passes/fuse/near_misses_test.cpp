// Near misses of fusions know the nodes that had been matched, and no others.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

struct Case {
  std::string_view pass;
  std::string_view nodes;    // from x to y, in ONNX's text form
  std::string_view matched;  // results of the nodes of the near miss
};

// Each is refused at another place of its pattern.
constexpr Case kCases[] = {
    {"fuse_softmax", "e = Exp(x)  s = ReduceSum(e, last)  q = Div(e, s)  y = Add(q, e)", "q e s"},
    {"fuse_softmax",
     "e = Exp(x)  s = ReduceSum(e, last)  i = Reciprocal(s)  q = Mul(e, i)  l = Log(s)"
     "  y = Add(q, l)",
     "q i e s"},
    {"fuse_rms_norm",
     "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)  n = Div(x, r)"
     "  y = Add(n, v)",
     "v s"},
    {"fuse_rms_norm",
     "s = Mul(x, x)  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)  o = Exp(x)"
     "  y = Div(o, r)",
     "v s e r"},
    {"fuse_layer_norm",
     "m = ReduceMean <axes = [-1]> (x)  d = Sub(x, m)  s = Mul(d, d)"
     "  v = ReduceMean <axes = [-1]> (s)  e = Add(v, eps)  r = Sqrt(e)  n = Div(d, r)"
     "  y = Add(n, m)",
     "v s d m e r n"},
    {"fuse_gelu",
     "d = Div(x, root)  e = Erf(d)  s = Add(e, one)  q = Mul(x, s)  r = Relu(q)"
     "  y = Mul(r, half)",
     "e d s q"},
    {"fuse_gelu",
     "d = Div(x, literal)  e = Erf(d)  s = Add(e, one)  q = Mul(x, s)"
     "  y = Mul(q, half)",
     "e d"},
    {"fuse_silu", "g = Sigmoid(x)  s = Mul(x, g)  y = Add(s, g)", "g"},
};

}  // namespace

TEST_CASE("near misses: the matched nodes, the one that it stands at first") {
  for (const Case& each : kCases) {
    CAPTURE(each.nodes);
    const Fusion fusion = fusion_on_rows(each.pass, "");
    const Stages all = stages_of(fusion, each.nodes);
    CHECK(matched_in_near_misses(stage_named(all, each.pass)) == each.matched);
  }
}

}  // namespace trainscope::test
