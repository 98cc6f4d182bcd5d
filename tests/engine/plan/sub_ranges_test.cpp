// Values inside others: where they lie, where they must not, exact bytes, the same bits.
#include "engine/plan/sub_ranges.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/exec/executor.h"
#include "engine/plan/lower.h"
#include "kernels/api/random.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/program_check.h"

namespace trainscope::test {
namespace {

struct Placed {
  Program program;

  explicit Placed(std::string_view text, const LowerOptions& options = {})
      : program(lower(graph(text), test_device(), options)) {
    check_placements(program);
  }

  const PlannedValue& at(std::string_view name) const {
    return program.place(program.graph.find(name));
  }
  bool inside(std::string_view part, std::string_view whole) const {
    return at(part).buffer == at(whole).buffer;
  }
  std::int64_t offset(std::string_view part, std::string_view whole) const {
    REQUIRE(inside(part, whole));
    return at(part).offset - at(whole).offset;
  }
};

// The outputs of one step on random inputs.
Tensors run(const Program& program) {
  Executor executor(program);
  executor.load_initial();
  const Tensors inputs = random_inputs(program.graph, 5);
  for (ValueId v : program.graph.inputs) {
    const std::string& name = program.graph.value(v).name;
    if (executor.has(name)) executor.write(name, inputs.at(name));
  }
  executor.run_micro_step();
  CHECK(executor.used_bytes() == program.arena().bytes);
  Tensors outputs;
  for (ValueId v : program.graph.outputs) {
    const std::string& name = program.graph.value(v).name;
    outputs.emplace(name, executor.read(name));
  }
  return outputs;
}

bool same_bits(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.type() == y.second.type() &&
           std::memcmp(x.second.data(), y.second.data(), x.second.bytes()) == 0;
  });
}

constexpr std::int64_t kHalf = 4096;  // of float[64,16]

}  // namespace

TEST_CASE("sub-ranges: parts of a Concat are made where they go") {
  constexpr std::string_view text =
      "(float[64,16] x) => (float[128,16] y)"
      "{ a = Exp(x)  b = Sin(x)  c = Concat<axis = 0>(a, b)  y = Neg(c) }";
  const Placed placed(text);
  CHECK(placed.offset("a", "c") == 0);
  CHECK(placed.offset("b", "c") == kHalf);
  CHECK(placed.offset("y", "c") == 0);               // in place as ever
  CHECK(placed.program.arena().bytes == 3 * kHalf);  // x and c: the parts need no bytes
  const Placed apart(text, {.in_place = false});
  CHECK(apart.program.arena().bytes == 4 * kHalf);  // a, b and c
  CHECK(same_bits(run(placed.program), run(apart.program)));
}

TEST_CASE("sub-ranges: a Split's parts stay where they are, and may be written over") {
  constexpr std::string_view text =
      "(float[64,16] x) => (float[64,16] y)"
      "{ a = Exp(x)  b = Sin(x)  c = Concat<axis = 0>(a, b)  s, t = Split<axis = 0>(c)"
      "  u = Neg(s)  v = Abs(t)  y = Add(u, v) }";
  const Placed placed(text);
  CHECK(placed.offset("s", "c") == 0);
  CHECK(placed.offset("t", "c") == kHalf);
  CHECK(placed.offset("u", "c") == 0);
  CHECK(placed.offset("v", "c") == kHalf);
  CHECK(placed.program.arena().bytes == 3 * kHalf);
  CHECK(same_bits(run(placed.program), run(Placed(text, {.in_place = false}).program)));
}

TEST_CASE("sub-ranges: what is cut out of something that is read later is not written over") {
  const Placed over(
      "(float[128,16] x) => (float[64,16] u, float[128,16] w) <int64[1] i = {64},"
      " int64[1] j = {128}> { c = Exp(x)  p = Slice(c, i, j)  u = Tanh(p)  w = Neg(c) }");
  CHECK_FALSE(over.inside("p", "c"));
  CHECK(over.inside("u", "p"));
  const Placed read(
      "(float[128,16] x) => (float[128,16] w, float[] y) <int64[1] i = {64}, int64[1] j = {128}>"
      "{ c = Exp(x)  p = Slice(c, i, j)  y = ReduceSum<keepdims = 0>(p)  w = Sin(c) }");
  CHECK(read.offset("p", "c") == kHalf);
  // An input is read only: what is cut out of it may stay there, unless something takes its place.
  const Placed input(
      "(float[128,16] x) => (float[] y, float[64,16] z) <int64[1] i = {64}, int64[1] j = {128},"
      " int64[1] k = {0}> { p = Slice(x, i, j)  y = ReduceSum<keepdims = 0>(p)"
      "  q = Slice(x, k, i)  z = Neg(q) }");
  CHECK(input.offset("p", "x") == kHalf);
  CHECK(input.offset("q", "x") == 0);  // x is of no use any more
  CHECK(input.offset("z", "x") == 0);
}

TEST_CASE("sub-ranges: rows in the middle, along inner axes where the outer ones are 1") {
  const Placed inner(
      "(float[1,8,16] x) => (float[] y) <int64[1] i = {2}, int64[1] j = {6}, int64[1] a = {1}>"
      "{ c = Exp(x)  p = Slice(c, i, j, a)  y = ReduceSum<keepdims = 0>(p) }");
  CHECK(inner.offset("p", "c") == 2 * 64);
  const Placed row(
      "(float[4,8,16] x) => (float[] y) <int64[2] i = {1,2}, int64[2] j = {2,6}>"
      "{ c = Exp(x)  p = Slice(c, i, j)  y = ReduceSum<keepdims = 0>(p) }");
  CHECK(row.offset("p", "c") == (8 + 2) * 64);
  const Placed strided(
      "(float[8,16] x) => (float[] y) <int64[1] i = {0}, int64[1] j = {8}, int64[1] a = {0},"
      " int64[1] s = {2}> { c = Exp(x)  p = Slice(c, i, j, a, s)"
      " y = ReduceSum<keepdims = 0>(p) }");
  CHECK_FALSE(strided.inside("p", "c"));
  const Placed columns(
      "(float[8,32] x) => (float[8,64] y) { a = Exp(x)  b = Sin(x)  y = Concat<axis = 1>(a, b) }");
  CHECK_FALSE(columns.inside("a", "y"));
}

TEST_CASE("sub-ranges: what begins or ends inside a unit of 64 bytes is copied") {
  const Placed ragged(
      "(float[3,5] x) => (float[9,5] y)"
      "{ a = Exp(x)  b = Sin(x)  c = Cos(x)  y = Concat<axis = 0>(a, b, c) }");
  for (std::string_view part : {"a", "b", "c"}) CHECK_FALSE(ragged.inside(part, "y"));
  const Placed end(
      "(float[16,4] x, float[3,4] z) => (float[19,4] y)"
      "{ a = Exp(x)  b = Sin(z)  y = Concat<axis = 0>(a, b) }");
  CHECK(end.offset("a", "y") == 0);
  CHECK(end.offset("b", "y") == 16 * 16);  // the last one ends where the whole does
}

TEST_CASE("sub-ranges: inputs, parameters and what occurs twice are copied") {
  const Placed given(
      "(float[1,16] x) => (float[3,16] y) <float[1,16] w = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}>"
      "{ b = Add(x, w)  y = Concat<axis = 0>(x, b, w) }");
  CHECK_FALSE(given.inside("x", "y"));
  CHECK_FALSE(given.inside("w", "y"));
  CHECK(given.offset("b", "y") == 64);
  const Placed twice(
      "(float[64,16] x) => (float[128,16] y) { a = Exp(x)  y = Concat<axis = 0>(a, a) }");
  CHECK(twice.offset("a", "y") == 0);  // the other half is a copy of it
  CHECK(same_bits(run(twice.program),
                  outputs_of(twice.program.graph, random_inputs(twice.program.graph, 5))));
  const Placed parameter(
      "(float[1,16] x) => (float[1,16] y) <float[2,16] w = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,"
      "1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}, int64[1] i = {1}, int64[1] j = {2}>"
      "{ p = Slice(w, i, j)  y = Add(x, p) }");
  CHECK_FALSE(parameter.inside("p", "w"));
}

TEST_CASE("sub-ranges: one inside the other") {
  constexpr std::string_view text =
      "(float[64,16] x) => (float[192,16] y, float[] z) <int64[1] i = {64}, int64[1] j = {128}>"
      "{ a = Exp(x)  b = Sin(x)  c = Concat<axis = 0>(a, b)  d = Cos(x)"
      "  y = Concat<axis = 0>(c, d)  p = Slice(c, i, j)  z = ReduceSum<keepdims = 0>(p) }";
  const Placed placed(text);
  CHECK(placed.offset("b", "y") == kHalf);
  CHECK(placed.offset("d", "y") == 2 * kHalf);
  CHECK(placed.offset("p", "b") == 0);
  CHECK(same_bits(run(placed.program), run(Placed(text, {.in_place = false}).program)));
}

TEST_CASE("sub-ranges: not where more bytes would be alive at a time") {
  // While e is there, all of c would be in memory for the sake of a.
  const Placed placed(
      "(float[64,16] x, float[1,16] r) => (float[128,16] y) <int64[2] n = {640,16},"
      " int64[2] m = {64,16}, int64[1] k = {0}> { a = Exp(x)  e = Expand(r, n)"
      "  s = ReduceSum(e, k)  b = Expand(s, m)  c = Concat<axis = 0>(a, b)  y = Sin(c) }");
  CHECK_FALSE(placed.inside("a", "c"));
  CHECK(placed.offset("b", "c") == kHalf);
}

namespace {

// A random graph of rows: ops in place, pieces cut out and put together, several readers.
class RandomRows {
 public:
  explicit RandomRows(std::uint64_t seed) : seed_(seed) {}

  std::string text() {
    columns_ = below(3) == 0 ? 4 : 16;
    add("x", 4 + below(5));
    std::string nodes;
    for (int i = 0; i < 14; ++i) nodes += node();
    std::string outputs;
    for (std::size_t i = values_.size() - 2; i < values_.size(); ++i) {
      outputs += fmt::format("{}{} {}", outputs.empty() ? "" : ", ", type(values_[i].rows),
                             values_[i].name);
    }
    return fmt::format("({} x) => ({}) <{}> {{ {} }}", type(values_[0].rows), outputs, constants_,
                       nodes);
  }

 private:
  struct Rows {
    std::string name;
    std::uint64_t rows = 0;
  };

  std::uint64_t below(std::uint64_t n) { return random_below(seed_, 0, draws_++, n); }
  std::string type(std::uint64_t rows) const { return fmt::format("float[{},{}]", rows, columns_); }
  std::string add(std::string name, std::uint64_t rows) {
    values_.push_back({name, rows});
    return name;
  }
  std::string fresh(std::uint64_t rows) { return add(fmt::format("v{}", values_.size()), rows); }
  std::string numbers(const std::vector<std::uint64_t>& list) {
    const std::string name = fmt::format("k{}", constant_count_++);
    constants_ += fmt::format("{}int64[{}] {} = {{{}}}", constants_.empty() ? "" : ", ",
                              list.size(), name, fmt::join(list, ","));
    return name;
  }

  std::string node() {
    // Mostly of what is new: then something dies.
    const std::size_t back = std::min<std::size_t>(values_.size(), 4);
    const Rows a = values_[values_.size() - 1 - below(back)];
    const Rows b = values_[values_.size() - 1 - below(back)];
    switch (below(6)) {
      case 0:
        if (a.rows + b.rows > 40) break;
        return fmt::format("{} = Concat<axis = 0>({}, {})\n", fresh(a.rows + b.rows), a.name,
                           b.name);
      case 1: {
        if (a.rows < 2) break;
        const std::uint64_t first = 1 + below(a.rows - 1);
        const std::string sizes = numbers({first, a.rows - first});
        const std::string one = fresh(first);
        const std::string other = fresh(a.rows - first);
        return fmt::format("{}, {} = Split<axis = 0>({}, {})\n", one, other, a.name, sizes);
      }
      case 2: {
        const std::uint64_t begin = below(a.rows);
        const std::uint64_t end = begin + 1 + below(a.rows - begin);
        const std::string from = numbers({begin});
        const std::string to = numbers({end});
        return fmt::format("{} = Slice({}, {}, {})\n", fresh(end - begin), a.name, from, to);
      }
      case 3:
        if (a.rows != b.rows) break;
        return fmt::format("{} = Add({}, {})\n", fresh(a.rows), a.name, b.name);
      default:
        break;
    }
    return fmt::format("{} = {}({})\n", fresh(a.rows), below(2) == 0 ? "Neg" : "Tanh", a.name);
  }

  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  std::uint64_t columns_ = 16;
  std::vector<Rows> values_;
  std::string constants_ = "int64[1] unused = {0}";
  int constant_count_ = 0;
};

// Values that are a part only of their buffer.
int parts_of(const Program& program) {
  int parts = 0;
  for (ValueId v : program.graph.live_values()) {
    const PlannedBuffer* buffer = program.buffer_of(v);
    if (buffer == nullptr) continue;
    parts += buffer->bytes > static_cast<std::int64_t>(program.graph.value(v).type.bytes());
  }
  return parts;
}

}  // namespace

TEST_CASE("sub-ranges: random graphs compute the same bits in no more bytes") {
  int parts = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::string text = RandomRows(seed).text();
    CAPTURE(text);
    const Placed placed(text);
    const Placed apart(text, {.in_place = false});
    parts += parts_of(placed.program);
    CHECK(placed.program.arena().lower_bound_bytes <= apart.program.arena().lower_bound_bytes);
    CHECK(same_bits(run(placed.program), run(apart.program)));
  }
  CHECK(parts > 400);
}

TEST_CASE("sub-ranges: a plan that moves a part, or writes over it, is found out") {
  const Placed placed(
      "(float[64,16] x) => (float[128,16] y, float[16,64] z)"
      "{ a = Exp(x)  b = Sin(x)  y = Concat<axis = 0>(a, b)  z = Transpose(a) }");
  REQUIRE(placed.offset("a", "y") == 0);
  Program moved = placed.program;
  PlannedValue place = moved.place(moved.graph.find("a"));
  place.offset += 64;
  move_value(moved, moved.graph.find("a"), place);
  CHECK_FALSE(placement_faults(moved).empty());
  Program over = placed.program;
  move_value(over, over.graph.find("z"), over.place(over.graph.find("b")));
  CHECK_FALSE(placement_faults(over).empty());
}

}  // namespace trainscope::test
