// Comparisons with NaN; truth tables.
#include <doctest/doctest.h>

#include <limits>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

using Bools = std::vector<bool>;

template <typename T>
Bools compare(std::string_view op, const std::vector<T>& a, const std::vector<T>& b) {
  const Shape shape{std::ssize(a)};
  return call({.op = op,
               .key = kDTypeOf<T>,
               .inputs = {Literal::of(shape, a), Literal::of(shape, b)},
               .outputs = {{.dtype = DType::kBool, .shape = shape}}})[0]
      .template values<bool>();
}

}  // namespace

TEST_CASE("logic: comparisons of numbers, all false for a NaN") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{1, 2, 3, nan, 1, nan};
  const std::vector<float> b{2, 2, 2, 1, nan, nan};
  CHECK(compare("Less", a, b) == Bools{true, false, false, false, false, false});
  CHECK(compare("LessOrEqual", a, b) == Bools{true, true, false, false, false, false});
  CHECK(compare("Greater", a, b) == Bools{false, false, true, false, false, false});
  CHECK(compare("GreaterOrEqual", a, b) == Bools{false, true, true, false, false, false});
}

TEST_CASE("logic: truth tables") {
  const Bools a{false, false, true, true};
  const Bools b{false, true, false, true};
  CHECK(compare("And", a, b) == Bools{false, false, false, true});
  CHECK(compare("Or", a, b) == Bools{false, true, true, true});
  CHECK(compare("Xor", a, b) == Bools{false, true, true, false});
  CHECK(compare("Equal", a, b) == Bools{true, false, false, true});
}

}  // namespace trainscope::cpu
