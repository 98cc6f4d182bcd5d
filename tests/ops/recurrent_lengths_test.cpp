// Sequences of several lengths: the results are those of each sequence by itself, and a length that
// there cannot be fails the run.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ops/standard_ops.h"
#include "tests/support/op_examples.h"

namespace trainscope::test {
namespace {

constexpr std::int64_t kTime = 5;
constexpr std::int64_t kBatch = 3;
constexpr std::int64_t kWidth = 4;
constexpr std::int64_t kHidden = 2;

struct Cell {
  std::string_view op;
  std::int64_t gates;
  int outputs;  // Y and the last states
};
constexpr Cell kCells[] = {{"Rnn", 1, 2}, {"Lstm", 4, 3}, {"Gru", 3, 2}};

Tensor drawn(const Shape& shape, std::uint64_t stream) {
  return random_tensor({.dtype = DType::kF64, .shape = shape}, 5, stream);
}

// X, W, R; X of these sequences and steps alone.
std::vector<Tensor> inputs_of(const Cell& cell, std::int64_t time, std::int64_t first,
                              std::int64_t batch) {
  const Tensor all = drawn({kTime, kBatch, kWidth}, 1);
  Tensor x({.dtype = DType::kF64, .shape = {time, batch, kWidth}});
  for (std::int64_t t = 0; t < time; ++t) {
    const auto from =
        all.values<double>().subspan(static_cast<std::size_t>((t * kBatch + first) * kWidth),
                                     static_cast<std::size_t>(batch * kWidth));
    std::ranges::copy(from, x.values<double>().begin() + t * batch * kWidth);
  }
  return {x, drawn({2, cell.gates * kHidden, kWidth}, 2),
          drawn({2, cell.gates * kHidden, kHidden}, 3)};
}

std::vector<Tensor> run(const Cell& cell, const std::vector<Tensor>& inputs,
                        const Tensor* lengths) {
  const OpTable ops = standard_ops();
  const Evaluate evaluate = evaluator(ops, cpu_kernels());
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  if (lengths != nullptr) pointers.insert(pointers.end(), {nullptr, lengths});
  const Shape& x = inputs[0].shape();
  const TensorType state{DType::kF64, {2, x[1], kHidden}};
  std::vector<TensorType> types(static_cast<std::size_t>(cell.outputs), state);
  types[0].shape = {x[0], 2, x[1], kHidden};
  return evaluate(ops.get(cell.op), {{"direction", std::string("bidirectional")}}, pointers, types);
}

// Row n of a state [2, batch, hidden], or of one step of Y.
std::vector<double> rows_of(const Tensor& tensor, std::int64_t step, std::int64_t n) {
  const Shape& shape = tensor.shape();
  const std::int64_t batch = shape[shape.rank - 2];
  std::vector<double> rows;
  for (std::int64_t direction = 0; direction < 2; ++direction) {
    const auto row = tensor.values<double>().subspan(
        static_cast<std::size_t>(((step * 2 + direction) * batch + n) * kHidden),
        static_cast<std::size_t>(kHidden));
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace

TEST_CASE("recurrent lengths: a sequence's results are those that it has by itself") {
  const std::vector<std::int64_t> lengths{5, 1, 3};
  const Tensor given = Tensor::ints(lengths);
  for (const Cell& cell : kCells) {
    CAPTURE(cell.op);
    const std::vector<Tensor> together = run(cell, inputs_of(cell, kTime, 0, kBatch), &given);
    for (std::int64_t n = 0; n < kBatch; ++n) {
      const std::int64_t length = lengths[static_cast<std::size_t>(n)];
      const std::vector<Tensor> alone = run(cell, inputs_of(cell, length, n, 1), nullptr);
      for (std::int64_t t = 0; t < kTime; ++t) {
        const std::vector<double> zeros(2 * kHidden, 0.0);
        CHECK(rows_of(together[0], t, n) == (t < length ? rows_of(alone[0], t, 0) : zeros));
      }
      for (std::size_t state = 1; state < together.size(); ++state) {
        CHECK(rows_of(together[state], 0, n) == rows_of(alone[state], 0, 0));
      }
    }
  }
}

TEST_CASE("recurrent lengths: one beyond the steps, or below 0, fails the run") {
  for (const Cell& cell : kCells) {
    for (const std::int64_t length : {std::int64_t{6}, std::int64_t{-1}}) {
      CAPTURE(length);
      const Tensor lengths = Tensor::ints(std::vector<std::int64_t>{5, length, 3});
      try {
        run(cell, inputs_of(cell, kTime, 0, kBatch), &lengths);
        FAIL_CHECK("computed");
      } catch (const Error& error) {
        CHECK(error.message().find("of sequence 1 is outside of the 5 steps") != std::string::npos);
      }
    }
  }
}

}  // namespace trainscope::test
