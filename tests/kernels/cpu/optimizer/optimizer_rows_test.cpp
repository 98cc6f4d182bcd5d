// Steps of rows: the rows named change as by the step of all elements, the others keep their bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/api/random.h"
#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

using F32 = std::vector<float>;
using I64 = std::vector<std::int64_t>;
constexpr std::int64_t kSize = 700;
constexpr std::int64_t kWidth = 130;
const Shape kTable{kSize, kWidth};

F32 normal(std::int64_t n, std::uint64_t stream) {
  F32 values;
  for (std::int64_t i = 0; i < n; ++i) {
    const double x = random_normal(1, stream, static_cast<std::uint64_t>(i));
    values.push_back(static_cast<float>(stream == 9 ? x * x : x));  // v is not negative
  }
  return values;
}

// A parameter, what is kept beside it, and the gradient of some of its rows.
struct Case {
  const char* rows_op;
  const char* op;
  OptimizerParams params;
  int states = 0;
};

std::vector<Case> cases() {
  const OptimizerParams plain{.weight_decay = {0.1}, .learning_rate_scale = {0.5}};
  OptimizerParams momentum = plain;
  momentum.momentum = 0.9;
  OptimizerParams nesterov = momentum;
  nesterov.nesterov = true;
  OptimizerParams adam = plain;
  adam.mode = AdamMode::kAdam;
  OptimizerParams hugging_face = plain;
  hugging_face.mode = AdamMode::kHuggingFaceAdamW;
  return {{"SgdRowsStep", "SgdStep", plain, 0},    {"SgdRowsStep", "SgdStep", momentum, 1},
          {"SgdRowsStep", "SgdStep", nesterov, 1}, {"AdamWRowsStep", "AdamWStep", plain, 2},
          {"AdamWRowsStep", "AdamWStep", adam, 2}, {"AdamWRowsStep", "AdamWStep", hugging_face, 2}};
}

std::vector<F32> results(OpCall step, int outputs) {
  step.outputs.assign(static_cast<std::size_t>(outputs), {.dtype = DType::kF32, .shape = kTable});
  std::vector<F32> made;
  for (const Literal& literal : call(step)) made.push_back(literal.values<float>());
  return made;
}

std::vector<Literal> scalars(std::int64_t step) {
  return {Literal::of<float>(Shape{}, {0.1F}), Literal::of<float>(Shape{}, {0.5F}),
          Literal::of<std::int64_t>(Shape{}, {step})};
}

std::vector<F32> dense_step(const Case& c, const F32& gradient, std::int64_t step) {
  OpCall dense{.op = c.op, .params = c.params, .inputs = {}, .outputs = {}};
  dense.inputs = {Literal::of(kTable, normal(kTable.elements(), 7)), Literal::of(kTable, gradient)};
  for (int s = 0; s < c.states; ++s) {
    const std::uint64_t stream = s == 0 ? 8 : 9;
    dense.inputs.push_back(Literal::of(kTable, normal(kTable.elements(), stream)));
  }
  for (const Literal& each : scalars(step)) dense.inputs.push_back(each);
  return results(dense, 1 + c.states);
}

std::vector<F32> rows_step(const Case& c, const F32& rows, const I64& ids, std::int64_t count,
                           std::int64_t step, int threads) {
  const auto most = static_cast<std::int64_t>(ids.size());
  OpCall sparse{.op = c.rows_op, .params = c.params, .inputs = {}, .outputs = {}};
  sparse.threads = threads;
  sparse.inputs = {Literal::of(kTable, normal(kTable.elements(), 7)),
                   Literal::of(Shape{most, kWidth}, rows)};
  for (int s = 0; s < c.states; ++s) {
    const std::uint64_t stream = s == 0 ? 8 : 9;
    sparse.inputs.push_back(Literal::of(kTable, normal(kTable.elements(), stream)));
  }
  sparse.inputs.push_back(Literal::of(Shape{most}, ids));
  sparse.inputs.push_back(Literal::of<std::int64_t>(Shape{}, {count}));
  for (const Literal& each : scalars(step)) sparse.inputs.push_back(each);
  return results(sparse, 1 + c.states);
}

bool same_row(const F32& a, const F32& b, std::int64_t row) {
  const auto begin = static_cast<std::size_t>(row * kWidth);
  return std::memcmp(a.data() + begin, b.data() + begin, kWidth * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("rows steps: rows as by the step of all elements, the others as they were") {
  I64 ids;
  for (std::int64_t id = 1; id < kSize; id += 2) ids.push_back(id);
  ids.insert(ids.end(), {0, 0});
  const std::int64_t count = static_cast<std::int64_t>(ids.size()) - 2;
  const F32 rows = normal(static_cast<std::int64_t>(ids.size()) * kWidth, 3);
  F32 gradient(static_cast<std::size_t>(kTable.elements()), 0.0F);
  for (std::int64_t n = 0; n < count; ++n) {
    std::copy_n(rows.begin() + n * kWidth, kWidth,
                gradient.begin() + ids[static_cast<std::size_t>(n)] * kWidth);
  }
  for (const Case& c : cases()) {
    for (std::int64_t step : {1, 5}) {
      const std::vector<F32> all = dense_step(c, gradient, step);
      for (int threads : {1, 3}) {
        const std::vector<F32> made = rows_step(c, rows, ids, count, step, threads);
        REQUIRE(made.size() == all.size());
        for (std::size_t output = 0; output < made.size(); ++output) {
          const F32 before = normal(kTable.elements(), 7 + output);
          int wrong = 0;
          for (std::int64_t row = 0; row < kSize; ++row) {
            const F32& expected = row % 2 == 1 ? all[output] : before;
            wrong += same_row(made[output], expected, row) ? 0 : 1;
          }
          CHECK(wrong == 0);
        }
      }
    }
  }
}

TEST_CASE("rows steps: step 0, a count of 0 and ids outside change nothing") {
  const F32 rows = normal(3 * kWidth, 3);
  const F32 before = normal(kTable.elements(), 7);
  for (const Case& c : cases()) {
    CHECK(rows_step(c, rows, {0, 5, 9}, 3, 0, 1)[0] == before);
    CHECK(rows_step(c, rows, {0, 5, 9}, 0, 2, 1)[0] == before);
    CHECK(rows_step(c, rows, {0, 5, 9}, -4, 2, 1)[0] == before);
    CHECK(rows_step(c, rows, {-1, kSize, kSize + 7}, 99, 2, 1)[0] == before);
  }
}

}  // namespace trainscope::cpu
