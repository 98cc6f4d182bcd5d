// fuse_attention: which masks become the causal attribute, which are added, and which stay.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/passes/fuse/spellings.h"

namespace trainscope::test {
namespace {

// 2 examples of 3 tokens, 2 heads of width 4; `high` and `infinite` mask later tokens, and
// `padding` the first two of example 0, so that its first row has nothing left.
constexpr std::string_view kInputs =
    "(float[2,3,2,4] x0) => (float[2,3,2,4] y) <float[1] p = {0.5}, bool[3,3] later ="
    " {0,1,1,0,0,1,0,0,0}, bool[3,3] seen = {1,0,0,1,1,0,1,1,1}, float low = {-1e9}, float zero ="
    " {0}, float[3,3] high = {0,-1e9,-1e9,0,0,-1e9,0,0,0}, float[2,1,1,3] padding ="
    " {-1e9,-1e9,0,0,0,0}, float tiny = {1e-9}, bool[1,1] none = {0}>";

Fusion masked() {
  return {.pass = "fuse_attention",
          .fused = "Attention",
          .inputs = kInputs,
          .before =
              "lowest = Log(zero)  infinite = Where(later, lowest, zero)  x = Mul(x0, p)"
              "  q = Transpose <perm = [0,2,1,3]> (x)  o = Transpose <perm = [0,2,3,1]> (x)"
              "  r = MatMul(q, o)",
          .constants = {"later", "seen", "low", "zero", "high", "padding", "tiny", "none"}};
}

// 300 tokens: masks of them are more elements than the graph's builder keeps.
Fusion masked_long() {
  return {.pass = "fuse_attention",
          .fused = "Attention",
          .inputs =
              "(float[1,300,1,4] x0) => (float[1,300,1,4] y) <float[1] p = {0.5}, float zero = {0},"
              " int64[2] square = {300,300}, int64 one = {1}, int64 two = {2}, int64 end = {300},"
              " int64 first = {0}, int64[2] down = {300,1}>",
          .before =
              "x = Mul(x0, p)  q = Transpose <perm = [0,2,1,3]> (x)"
              "  o = Transpose <perm = [0,2,3,1]> (x)  r = MatMul(q, o)  lowest = Log(zero)"
              "  full = Expand(lowest, square)  at = Range(first, end, one)"
              "  of = Reshape(at, down)",
          .constants = {"zero", "square", "one", "two", "end", "first", "down"}};
}

// `mask` makes m of the scores r.
std::string nodes_of(std::string_view mask) {
  return std::string(mask) +
         "  w = Softmax <axis = -1> (m)  h = MatMul(w, q)  y = Transpose <perm = [0,2,1,3]> (h)";
}

std::string fused_line(std::string_view mask, const Fusion& fusion = masked()) {
  const Stages all = stages_of(fusion, nodes_of(mask));
  const std::string lines = node_lines(stage_named(all, "fuse_attention").graph);
  const std::size_t at = lines.find(" = ts.Attention");
  return at == std::string::npos ? "" : lines.substr(at + 3, lines.find('\n', at) - at - 3);
}

std::string near_miss(std::string_view mask) { return near_misses_of(masked(), nodes_of(mask)); }

}  // namespace

TEST_CASE("fuse_attention: a causal mask alone becomes an attribute") {
  for (const std::string_view mask :
       {"m = Where(later, low, r)", "m = Where(seen, r, lowest)", "m = Add(r, high)",
        "m = Add(infinite, r)", "a = Add(r, high)  m = Where(later, low, a)"}) {
    CHECK(changes_no_result(masked(), nodes_of(mask)));
    CHECK(fused_line(mask) == "ts.Attention(x, x, x) causal=1 scale=1");
  }
}

TEST_CASE("fuse_attention: a causal mask of many tokens becomes an attribute") {
  for (const std::string_view mask :
       {"b = Trilu <upper = 1> (full, one)  m = Add(r, b)",
        "c = Greater(at, of)  b = Where(c, lowest, zero)  m = Add(r, b)",
        "c = LessOrEqual(at, of)  m = Where(c, r, lowest)",
        "c = LessOrEqual(at, of)  d = Not(c)  m = Where(d, lowest, r)"}) {
    CHECK(fused_line(mask, masked_long()) == "ts.Attention(x, x, x) causal=1 scale=1");
  }
  CHECK(changes_no_result(masked_long(), nodes_of("c = Greater(at, of)  b = Where(c, lowest, zero)"
                                                  "  m = Add(r, b)")));
}

TEST_CASE("fuse_attention: other masks of many tokens are biases, or stay") {
  // A token sees the next one too.
  CHECK(fused_line("b = Trilu <upper = 1> (full, two)  m = Add(r, b)", masked_long()) ==
        "ts.Attention(x, x, x, b) causal=0 scale=1");
  // One that depends on the batch.
  CHECK(fused_line(
            "s = ReduceMax <keepdims = 0> (x0)  d = Mul(s, zero)  e = Trilu <upper = 1> (full, one)"
            "  b = Add(e, d)  m = Add(r, b)",
            masked_long()) == "ts.Attention(x, x, x, b) causal=0 scale=1");
  CHECK(near_misses_of(masked_long(), nodes_of("c = Less(at, of)  m = Where(c, r, lowest)")) ==
        "the mask is not that of a causal model");
}

TEST_CASE("fuse_attention: beside a bias only -inf is an attribute, finite numbers are added") {
  for (const std::string_view mask : {"a = Where(later, lowest, r)  m = Add(a, padding)",
                                      "a = Add(r, padding)  m = Add(a, infinite)"}) {
    CHECK(fused_line(mask) == "ts.Attention(x, x, x, padding) causal=1 scale=1");
  }
  CHECK(fused_line("a = Add(r, high)  m = Add(a, padding)") ==
        "ts.Attention(x, x, x, Add) causal=0 scale=1");
  CHECK(near_miss("a = Where(later, low, r)  m = Add(a, padding)") ==
        "the causal mask is -1000000000 beside a bias; only -inf leaves no weight there");
  CHECK(near_miss("a = Add(r, padding)  m = Where(later, low, a)") ==
        "the causal mask is -1000000000 beside a bias; only -inf leaves no weight there");
}

TEST_CASE("fuse_attention: a fill that a factor makes small leaves weight") {
  CHECK(near_miss("a = Where(later, low, r)  m = Mul(a, tiny)") ==
        "the mask is not that of a causal model");
  CHECK(near_miss("a = Add(r, high)  m = Mul(a, tiny)") == "the scores are scaled after a bias");
}

TEST_CASE("fuse_attention: a mask of one element for all scores is not causal") {
  CHECK(near_miss("m = Where(none, low, r)") == "the mask is not that of a causal model");
}

TEST_CASE("fuse_attention: a mask stays whose gradient is asked for") {
  constexpr std::string_view kMask =
      "b = Neg(padding)  c = ReduceMax(x0)  d = Mul(b, c)"
      "  m = Add(r, d)";
  CHECK(near_misses_with_gradient_of("c", masked(), nodes_of(kMask)) ==
        "the gradient of 'c' is asked for");
  CHECK(fused_line(kMask) == "ts.Attention(x, x, x, d) causal=0 scale=1");
}

TEST_CASE("fuse_attention: a bias of the scores' shape may be the first operand") {
  constexpr std::string_view kMask =
      "a = Transpose <perm = [0,2,1,3]> (x0)  b = ReduceMax <axes = [3]> (a)"
      "  c = Transpose <perm = [0,1,3,2]> (b)  d = Mul(b, c)  m = Add(d, r)";
  CHECK(changes_no_result(masked(), nodes_of(kMask)));
  CHECK(fused_line(kMask) == "ts.Attention(x, x, x, d) causal=0 scale=1");
}

TEST_CASE("fuse_attention: near misses name numbers that are trained") {
  const auto misses = [](std::string_view trained, std::string_view mask) {
    Fusion fusion = masked();
    std::erase(fusion.constants, trained);
    fusion.trained = {std::string(trained)};
    return near_misses_of(fusion, nodes_of(mask));
  };
  CHECK(misses("tiny", "m = Mul(r, tiny)") ==
        "'tiny' is trained, a constant is expected: freeze it (--freeze)");
  CHECK(misses("low", "m = Where(later, low, r)") ==
        "'low' is trained, a constant is expected: freeze it (--freeze)");
  // A mask that a model keeps as floats among its parameters.
  CHECK(misses("high", "c = Cast <to = 9> (high)  m = Where(c, low, r)") ==
        "the mask 'c' is trained");
}

TEST_CASE("fuse_attention: a mask that broadcasts the scores stays") {
  Fusion one_key = masked();
  one_key.before =
      "x = Mul(x0, p)  q = Transpose <perm = [0,2,1,3]> (x)"
      "  s = ReduceMean <axes = [1]> (x)  o = Transpose <perm = [0,2,3,1]> (s)"
      "  r = MatMul(q, o)";
  CHECK(near_misses_of(one_key, nodes_of("m = Where(later, low, r)")) ==
        "the mask is not that of a causal model");
}

}  // namespace trainscope::test
