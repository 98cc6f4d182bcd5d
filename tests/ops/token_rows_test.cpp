// What the rows say of values of which each row is a token, held against the reference kernels:
// other rows change nothing, moved rows move, and zeros in rows of padding stay harmless.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/reference.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "tests/ops/backward.h"
#include "tests/ops/slices.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

using Tensors = std::vector<Tensor>;

const std::set<RowKind> kRowByRow = {RowKind::kInPlace, RowKind::kPointwise, RowKind::kQuotient,
                                     RowKind::kNorm, RowKind::kMatmul};

bool is_transposed(const Example& example) {
  return example.attributes.integer("transA", 0) != 0 ||
         example.attributes.integer("transpose_a", 0) != 0;
}

// An example of which the places along axis 0 of the result are rows.
struct RowExample {
  const OpDef& row;
  const Example& example;
  Shape result;
  int leading = 1;

  std::int64_t rows() const { return result.rank == 0 ? 0 : result[0]; }

  // Whether the places along axis 0 of the input are the same rows.
  bool is_rows(std::size_t i) const {
    if (!example.inputs[i].present) return false;
    const Shape& shape = example.inputs[i].type.shape;
    if (shape.rank == 0 || shape[0] != rows()) return false;
    switch (row.traits.rows) {
      case RowKind::kNorm:
        return i == 0 && !is_along_rows(shape.rank);
      case RowKind::kMatmul:
        return i == 0 && shape.rank >= 2 && !is_transposed(example) &&
               example.inputs[1].type.shape.rank == 2;
      default:
        return shape.rank == result.rank && !is_along_rows(shape.rank);
    }
  }
  // Whether the op works along axis 0.
  bool is_along_rows(int rank) const {
    if (!row.axis) return false;
    return normalized_axis(example.attributes.integer("axis", *row.axis), rank) == 0;
  }
  // Whether something else differs from row to row: a bias [rows, 1] of a matmul.
  bool has_other_rows() const {
    for (std::size_t i = 0; i < example.inputs.size(); ++i) {
      const Shape& shape = example.inputs[i].type.shape;
      const bool aligned = example.inputs[i].present && shape.rank == result.rank &&
                           shape.rank > 0 && shape[0] == rows();
      if (aligned && !is_rows(i)) return true;
    }
    return false;
  }
  bool any_rows() const {
    bool any = false;
    for (std::size_t i = 0; i < example.inputs.size(); ++i) any = any || is_rows(i);
    return any && rows() > 1;
  }
};

Tensor first_row(const Tensor& tensor) { return slice_of(tensor, 0, 0, 1); }

// Row r becomes row r + 1, the last the first.
Tensor rotated(const Tensor& tensor) {
  const std::int64_t rows = tensor.shape()[0];
  return joined({slice_of(tensor, 0, rows - 1, 1), slice_of(tensor, 0, 0, rows - 1)}, 0);
}

void check_locality(const RowExample& rows, const Tensors& inputs) {
  const Tensors others = example_inputs(rows.example, 99);
  Tensors changed = inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!rows.is_rows(i)) continue;
    changed[i] =
        joined({first_row(inputs[i]), slice_of(others[i], 0, 1, inputs[i].shape()[0] - 1)}, 0);
  }
  const Tensors before = results_of(rows.row, rows.example, inputs);
  const Tensors after = results_of(rows.row, rows.example, changed);
  for (std::size_t k = 0; k < before.size(); ++k) {
    const Shape& shape = before[k].shape();
    if (shape.rank == 0 || shape[0] != rows.rows()) continue;
    CHECK(same_bytes(first_row(before[k]), first_row(after[k])));
  }
}

void check_moves(const RowExample& rows, const Tensors& inputs) {
  Tensors moved = inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (rows.is_rows(i)) moved[i] = rotated(inputs[i]);
  }
  const Tensors before = results_of(rows.row, rows.example, inputs);
  const Tensors after = results_of(rows.row, rows.example, moved);
  CHECK(same_bytes(rotated(before[0]), after[0]));
}

// Whether any row shows that the row's kind is true of it.
bool check_rows(const OpDef& row, const Example& example) {
  const Tensors inputs = example_inputs(example, 12);
  const Tensors results = results_of(row, example, inputs);
  const RowExample rows{.row = row, .example = example, .result = results[0].shape()};
  if (!rows.any_rows()) return false;
  check_locality(rows, inputs);
  const bool place_counts =
      row.traits.rows == RowKind::kInPlace || row.determinism == Determinism::kRandom;
  if (!place_counts && !rows.has_other_rows()) check_moves(rows, inputs);
  return true;
}

// Scores, labels, ... with the rows of both in another order.
bool check_loss(const OpDef& row, const Example& example) {
  const Shape& labels = example.inputs[1].type.shape;
  const int axis = normalized_axis(example.attributes.integer("class_axis", -1),
                                   example.inputs[0].type.shape.rank);
  if (axis == 0 || labels.rank == 0 || labels[0] < 2) return false;
  const Tensors inputs = example_inputs(example, 12);
  Tensors moved = inputs;
  for (std::size_t i : {std::size_t{0}, std::size_t{1}}) moved[i] = rotated(inputs[i]);
  const Tensor loss = results_of(row, example, inputs)[0];
  CHECK(relative_error(results_of(row, example, moved)[0], loss) < 1e-12);
  // Rows whose labels do not count may hold anything.
  const std::int64_t ignored = example.attributes.integer("ignore_index", -100);
  Tensors padded = inputs;
  padded[1] = convert(padded[1], DType::kI64);
  const std::int64_t per_row = padded[1].elements() / labels[0];
  std::fill_n(padded[1].values<std::int64_t>().begin(), per_row, ignored);
  padded[1] = convert(padded[1], inputs[1].dtype());
  const Tensor without = results_of(row, example, padded)[0];
  const Tensor others = slice_of(padded[0], 0, 1, labels[0] - 1);
  padded[0] = joined({zeros_like(first_row(padded[0])), others}, 0);
  CHECK(same_bytes(results_of(row, example, padded)[0], without));
  return true;
}

// --- Zeros ---------------------------------------------------------------------------------------

struct Tables {
  OpTable ops = standard_ops();
  Evaluate evaluate = evaluator(ops, cpu_kernels(), {.kernels = KernelChoice::kReference});
};

bool is_finite(const Tensor& tensor) {
  if (!is_float(tensor.dtype())) return true;
  const Tensor exact = convert(tensor, DType::kF64);
  return std::ranges::all_of(exact.values<double>(), [](double v) { return std::isfinite(v); });
}

// Whether the row's results and its gradients, of ones, are finite.
bool all_finite(const Tables& tables, const OpDef& row, const Example& example,
                const Tensors& inputs) {
  Graph graph;
  Builder b(graph, tables.ops);
  b.set_provenance({.sources = {}, .pass = "test"});
  b.set_evaluate(&tables.evaluate);
  std::map<std::string, Tensor> data;
  std::vector<ValueId> values;
  std::vector<bool> wanted;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool present = example.inputs[i].present;
    const std::string name = "x" + std::to_string(i);
    const bool known = present && example.inputs[i].fill == Fill::kGiven;
    values.push_back(kNoValue);
    if (known) values.back() = b.constant(inputs[i], name);
    if (present && !known) values.back() = b.input(name, inputs[i].type());
    if (present && !known) data.emplace(name, inputs[i]);
    wanted.push_back(present && !known && inputs[i].dtype() == DType::kF64);
  }
  const std::vector<ValueId> made =
      b.multi(row.name, values, example.output_count, example.attributes);
  std::vector<ValueId> checked = made;
  const TensorType type = b.type(made[0]);
  const bool flows = row.differentiable == Differentiable::kYes && type.dtype == DType::kF64 &&
                     (row.gradient || row.decompose);
  if (flows) {
    Tensor ones(type);
    std::ranges::fill(ones.values<double>(), 1.0);
    std::vector<ValueId> dy(made.size(), kNoValue);
    dy[0] = b.constant(ones, "dy");
    const std::vector<ValueId> dx = backward(b, graph.value(made[0]).producer, dy, wanted);
    checked.insert(checked.end(), dx.begin(), dx.end());
  }
  const ReferenceValues results = reference_run(graph, data, tables.evaluate);
  return std::ranges::all_of(checked,
                             [&](ValueId v) { return v == kNoValue || is_finite(results.at(v)); });
}

// The example's inputs with zeros in some of the floats.
template <typename F>
Tensors with_zeros(const Example& example, F zeroed) {
  Tensors inputs = example_inputs(example, 12);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool free = example.inputs[i].present && example.inputs[i].fill != Fill::kGiven;
    if (free && inputs[i].dtype() == DType::kF64 && zeroed(i)) inputs[i] = zeros_like(inputs[i]);
  }
  return inputs;
}

bool is_small(const Example& example) {
  return std::ranges::all_of(
      example.inputs, [](const ExampleInput& input) { return input.type.elements() <= 4096; });
}

}  // namespace

TEST_CASE("rows of tokens: other rows change nothing, rows in another order give the same") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    const RowKind kind = row->traits.rows;
    if (!kRowByRow.contains(kind) && kind != RowKind::kLoss) continue;
    int shown = 0;
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\"");
      try {
        const Example example = parse_example(text);
        shown += kind == RowKind::kLoss ? check_loss(*row, example) : check_rows(*row, example);
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
    CHECK_MESSAGE(shown > 0, row->name, ": no example has rows");
  }
}

TEST_CASE("rows of tokens: zeros in padding stay finite, but for the poles of the row") {
  const Tables tables;
  for (const OpDef* row : tables.ops.rows()) {
    if (!kRowByRow.contains(row->traits.rows)) continue;
    std::set<int> poles;  // of which an example shows that they are
    for (std::string_view text : row->examples) {
      const Example example = parse_example(text);
      if (!is_small(example)) continue;
      INFO(row->name, " \"", text, "\"");
      try {
        const auto is_pole = [row](std::size_t i) {
          return std::ranges::find(row->poles, static_cast<int>(i)) != row->poles.end();
        };
        CHECK(all_finite(tables, *row, example,
                         with_zeros(example, [&](std::size_t i) { return !is_pole(i); })));
        for (int pole : row->poles) {
          const auto only = [pole](std::size_t i) { return static_cast<int>(i) == pole; };
          const bool finite = all_finite(tables, *row, example, with_zeros(example, only)) &&
                              all_finite(tables, *row, example,
                                         with_zeros(example, [](std::size_t) { return true; }));
          if (!finite) poles.insert(pole);
        }
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
    for (int pole : row->poles) CHECK_MESSAGE(poles.contains(pole), row->name, " at input ", pole);
  }
}

}  // namespace trainscope::test
