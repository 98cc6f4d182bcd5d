// Einsum on small literals, and equations that it refuses.
#include <doctest/doctest.h>

#include <string>

#include "engine/core/error.h"
#include "tests/ops/evaluate.h"

namespace trainscope::test {
namespace {

using Numbers = std::vector<double>;

Tensor einsum(const std::string& equation, std::vector<Tensor> inputs) {
  return evaluate({"Einsum", std::move(inputs), {{"equation", equation}}})[0];
}

}  // namespace

TEST_CASE("Einsum: sums, transposes, diagonals and traces of one operand") {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(numbers(einsum("ij->i", {x})) == Numbers{6, 15});
  CHECK(numbers(einsum("ij->ji", {x})) == Numbers{1, 4, 2, 5, 3, 6});
  CHECK(numbers(einsum("ij->", {x})) == Numbers{21});
  CHECK(numbers(einsum("ba", {x})) == Numbers{1, 4, 2, 5, 3, 6});  // implied: ba->ab
  const Tensor square = counting({3, 3});
  CHECK(numbers(einsum("ii->i", {square})) == Numbers{0, 4, 8});
  CHECK(numbers(einsum("ii", {square})) == Numbers{12});
  CHECK(numbers(einsum("...ii ->...i", {counting({2, 2, 2})})) == Numbers{0, 3, 4, 7});
}

TEST_CASE("Einsum: matmuls, also of vectors and batches") {
  const Tensor a = f64({2, 2}, {1, 2, 3, 4});
  const Tensor b = f64({2, 2}, {5, 6, 7, 8});
  CHECK(numbers(einsum("ij,jk->ik", {a, b})) == Numbers{19, 22, 43, 50});
  CHECK(numbers(einsum("ij,kj", {a, b})) == Numbers{17, 23, 39, 53});
  CHECK(numbers(einsum("ij,ij->", {a, b})) == Numbers{70});
  CHECK(numbers(einsum("ij,ij->ji", {a, b})) == Numbers{5, 21, 12, 32});
  const Tensor v = f64({2}, {2, 3});
  CHECK(numbers(einsum("i,j->ij", {v, v})) == Numbers{4, 6, 6, 9});
  CHECK(numbers(einsum("i,i", {v, v})) == Numbers{13});
  CHECK(numbers(einsum("ij,jk,k->i", {a, b, v})) == Numbers{104, 236});
  const Tensor batch = counting({2, 1, 2});
  CHECK(numbers(einsum("...ij,...jk->...ik", {batch, a})) == Numbers{3, 4, 11, 16});
}

TEST_CASE("Einsum: integers, and axes of one element that are broadcast") {
  const Tensor a = i64({2, 2}, {1, 2, 3, 4});
  CHECK(numbers(einsum("ij,jk->ik", {a, a})) == Numbers{7, 10, 15, 22});
  const Tensor column = f64({2, 1}, {10, 20});
  CHECK(numbers(einsum("ij,ij->ij", {column, f64({2, 2}, {1, 2, 3, 4})})) ==
        Numbers{10, 20, 60, 80});
}

TEST_CASE("Einsum: equations that make no sense") {
  const Tensor a = f64({2, 2}, {1, 2, 3, 4});
  for (const char* equation : {"", "ij", "ij,jk,kl->il", "ijk,jk->i", "ij,jk->im", "ij,jk->ii",
                               "i1,jk->ik", "ij,j..k->ik", "ij,jk->i->k", "...i...,jk->ik"}) {
    CAPTURE(equation);
    CHECK_THROWS_AS(einsum(equation, {a, a}), Error);
  }
  CHECK_THROWS_AS(einsum("ij,jk->ik", {a, counting({3, 2})}), Error);
}

}  // namespace trainscope::test
