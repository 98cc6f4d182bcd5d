// What rows say of lookups, counted rows, norms, losses and steps, by which passes and planners
// choose: that it is true of the reference kernels.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "engine/ops/standard_ops.h"
#include "tests/ops/shown_by.h"
#include "tests/ops/slices.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

double dot(const Tensor& a, const Tensor& b) {
  const auto x = a.values<double>();
  const auto y = b.values<double>();
  double sum = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

Tensor random_like(const Shape& shape) {
  Tensor tensor({.dtype = DType::kF64, .shape = shape});
  double number = 0.3;
  for (double& x : tensor.values<double>()) x = number = std::fmod(number * 3.7 + 0.21, 1.0);
  return tensor;
}

bool is_step(const OpDef& row) {
  if (row.params == nullptr) return false;
  const OpCase op_case(row, row.examples.front(), DType::kF64);
  return std::holds_alternative<OptimizerParams>(op_case.params());
}

// Whether another element of a parameter changes with the last element of its gradient.
bool mixes_elements(const OpDef& row, const Example& example, const OptimizerParams& params) {
  std::vector<Tensor> inputs = example_inputs(example, 5);
  const Tensor before = results_of(row, example, inputs)[0];
  Tensor& gradient = inputs[params.weight_decay.size()];
  if (gradient.elements() < 2) return false;
  gradient.values<double>().back() += 1.0;
  const Tensor after = results_of(row, example, inputs)[0];
  return before.values<double>()[0] != after.values<double>()[0];
}

}  // namespace

TEST_CASE("row facts: an index input names slices of input 0 along the axis") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.index_input >= 0; },
      [](const OpDef& row, std::string_view text, const Example& example) {
        const OpCase op_case(row, text, DType::kF64);
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const Tensor& index = inputs[static_cast<std::size_t>(row.index_input)];
        if (index.shape().rank != 1 || index.elements() == 0) return false;
        const int axis = op_case.args().axis("axis", row.axis.value_or(0), op_case.args().rank(0));
        std::vector<Tensor> slices;
        for (std::int64_t number : as_ints(index)) {
          if (number < 0) number += inputs[0].shape()[axis];
          slices.push_back(slice_of(inputs[0], axis, number, 1));
        }
        CHECK(same_bytes(results_of(row, example, inputs)[0], joined(slices, axis)));
        return true;
      });
}

TEST_CASE("row facts: what scatters is the adjoint of its lookup") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return !row.scatters.empty(); },
      [&ops](const OpDef& row, std::string_view, const Example& example) {
        if (example.inputs.size() != 2) return false;
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const Tensor sums = results_of(row, example, inputs)[0];
        const Tensor table = random_like(sums.shape());
        Attributes attributes;
        if (example.attributes.has("axis")) {
          attributes.set("axis", example.attributes.integer("axis", 0));
        }
        const Tensor looked_up =
            results_of(ops.get(row.scatters), example, {table, inputs[1]}, attributes)[0];
        CHECK(dot(sums, table) == doctest::Approx(dot(inputs[0], looked_up)).epsilon(1e-9));
        return sums.elements() > 0 && inputs[0].elements() > 0;
      });
}

TEST_CASE("row facts: the op without its addend makes what that is added to") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return !row.unadded_form.empty(); },
      [&ops](const OpDef& row, std::string_view, const Example& example) {
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const auto addend = static_cast<std::size_t>(row.added_input);
        Example others = example;
        std::vector<Tensor> given = inputs;
        others.inputs.erase(others.inputs.begin() + row.added_input);
        given.erase(given.begin() + row.added_input);
        const Tensor without = results_of(ops.get(row.unadded_form), others, given)[0];
        const Tensor sum = results_of(row, example, inputs)[0];
        CHECK(relative_error(sum, added(without, inputs[addend])) < 1e-12);
        return sum.elements() > 0;
      });
}

TEST_CASE("row facts: rows that count are numbered first") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.counts_rows; },
      [](const OpDef& row, std::string_view, const Example& example) {
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const std::vector<Tensor> results = results_of(row, example, inputs);
        const std::vector<std::int64_t> labels = as_ints(inputs[0]);
        std::vector<std::int64_t> numbers = as_ints(results[0]);
        const std::int64_t count = as_ints(results[1])[0];
        const std::int64_t ignored = example.attributes.integer("ignore_index", -100);
        REQUIRE(numbers.size() == labels.size());
        for (std::int64_t i = 0; i < std::ssize(numbers); ++i) {
          const std::int64_t row_number = numbers[static_cast<std::size_t>(i)];
          CHECK((labels[static_cast<std::size_t>(row_number)] != ignored) == (i < count));
        }
        std::ranges::sort(numbers);
        for (std::int64_t i = 0; i < std::ssize(numbers); ++i) {
          REQUIRE(numbers[static_cast<std::size_t>(i)] == i);
        }
        return count > 0 && count < std::ssize(numbers);
      });
}

TEST_CASE("row facts: rows behind the count are not read") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.count_input >= 0; },
      [](const OpDef& row, std::string_view, const Example& example) {
        std::vector<Tensor> inputs = example_inputs(example, 3);
        const Tensor before = results_of(row, example, inputs)[0];
        const std::int64_t rows = inputs[0].shape()[0];
        const std::int64_t count = as_ints(inputs[static_cast<std::size_t>(row.count_input)])[0];
        if (count < 1 || count >= rows) return false;
        Tensor rest = slice_of(inputs[0], 0, count, rows - count);
        std::ranges::fill(rest.values<double>(), std::nan(""));
        inputs[0] = joined({slice_of(inputs[0], 0, 0, count), rest}, 0);
        CHECK(same_bytes(results_of(row, example, inputs)[0], before));
        return true;
      });
}

TEST_CASE("row facts: integers that are kept are the same numbers") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.keeps_integers; },
      [](const OpDef& row, std::string_view, const Example& example) {
        const auto is_index = [](const Tensor& tensor) {
          return tensor.type().dtype == DType::kI64 || tensor.type().dtype == DType::kI32;
        };
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const Tensor result = results_of(row, example, inputs)[0];
        if (!is_index(inputs[0]) || !is_index(result)) return false;
        CHECK(as_ints(result) == as_ints(inputs[0]));
        return result.elements() > 0;
      });
}

TEST_CASE("row facts: a sum of squares knows neither signs nor places") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.sums_squares; },
      [](const OpDef& row, std::string_view, const Example& example) {
        std::vector<Tensor> inputs = example_inputs(example, 3);
        const Tensor before = results_of(row, example, inputs)[0];
        for (Tensor& input : inputs) {
          input = added(zeros_like(input), input, -1.0);
          std::ranges::reverse(input.values<double>());
        }
        CHECK(relative_error(results_of(row, example, inputs)[0], before) < 1e-12);
        return inputs[0].elements() > 1;
      });
}

TEST_CASE("row facts: a loss of scores stays when all scores grow by as much") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.of_scores; },
      [](const OpDef& row, std::string_view, const Example& example) {
        CHECK((row.traits.rows == RowKind::kLoss));
        std::vector<Tensor> inputs = example_inputs(example, 3);
        const double before = results_of(row, example, inputs)[0].values<double>()[0];
        for (double& score : inputs[0].values<double>()) score += 1.5;
        const double after = results_of(row, example, inputs)[0].values<double>()[0];
        if (!std::isfinite(before) || before == 0.0) return false;
        CHECK(after == doctest::Approx(before).epsilon(1e-9));
        return true;
      });
}

TEST_CASE("row facts: a variance of the sample is over one element less") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.sample_variance; },
      [](const OpDef& row, std::string_view, const Example& example) {
        if (example.output_count < 3) return false;
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const double kept = example.attributes.number("momentum", 0.9);
        const double old = inputs[4].values<double>()[0];
        const Tensor x = slice_of(inputs[0], 1, 0, 1);  // channel 0
        const auto n = static_cast<double>(x.elements());
        if (n < 2.0) return false;
        const auto values = x.values<double>();
        double mean = 0.0;
        for (double value : values) mean += value / n;
        double squares = 0.0;
        for (double value : values) squares += (value - mean) * (value - mean);
        const double next = results_of(row, example, inputs)[2].values<double>()[0];
        CHECK(next == doctest::Approx(kept * old + (1.0 - kept) * squares / (n - 1.0)));
        return true;
      });
}

TEST_CASE("row facts: a step of an optimizer mixes rows if, and only if, it scales by a norm") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    const int said = static_cast<int>(!row->rows_form.empty()) +
                     static_cast<int>(!row->dense_form.empty()) +
                     static_cast<int>(row->scales_by_norm);
    CHECK_MESSAGE(said <= (is_step(*row) ? 1 : 0), row->name,
                  ": rows_form, dense_form or scales_by_norm, of a step");
  }
  for_each_shown(
      ops, [](const OpDef& row) { return row.dense_form.empty() && is_step(row); },
      [](const OpDef& row, std::string_view text, const Example& example) {
        const OpCase op_case(row, text, DType::kF64);
        const auto params = std::get<OptimizerParams>(op_case.params());
        const bool mixes = mixes_elements(row, example, params);
        if (!row.scales_by_norm) CHECK(!mixes);
        return mixes == row.scales_by_norm;
      });
}

TEST_CASE("row facts: matmuls and convolutions of ONNX say the terms that their cost counts") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    const bool heavy = row->traits.rematerialize == Rematerialize::kHeavy;
    if (row->domain == kOnnxDomain) CHECK_MESSAGE(heavy == (row->terms != nullptr), row->name);
  }
  for_each_shown(
      ops, [](const OpDef& row) { return row.terms != nullptr && row.min_inputs == 2; },
      [](const OpDef& row, std::string_view text, const Example& example) {
        if (example.inputs.size() > 2) return false;
        const OpCase op_case(row, text, DType::kF64);
        const std::int64_t outputs = op_case.args().outputs[0].elements();
        CHECK(cost_of(row, op_case.args()).flops == 2 * outputs * row.terms(op_case.args()));
        return outputs > 0;
      });
}

TEST_CASE("row facts: recurrent ops say the terms that their cost counts beside functions") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.terms != nullptr && row.min_inputs > 2; },
      [](const OpDef& row, std::string_view text, const Example&) {
        const OpCase op_case(row, text, DType::kF64);
        const std::int64_t outputs = op_case.args().outputs[0].elements();
        const std::int64_t terms = row.terms(op_case.args());
        const std::int64_t functions = cost_of(row, op_case.args()).flops - 2 * outputs * terms;
        const OpCase first(row, row.examples.front(), DType::kF64);
        const std::int64_t of_first = first.args().outputs[0].elements();
        const std::int64_t each =
            (cost_of(row, first.args()).flops - 2 * of_first * row.terms(first.args())) / of_first;
        CHECK(each > 0);
        CHECK(functions == outputs * each);
        return outputs > 0;
      });
}

TEST_CASE("row facts: attention reads of input 0, where that is the queries, each row by itself") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.traits.rows == RowKind::kAttention; },
      [](const OpDef& row, std::string_view, const Example& example) {
        std::vector<Tensor> inputs = example_inputs(example, 3);
        if (inputs.size() < 3 || !example.inputs[1].present) return false;
        const std::int64_t length = inputs[0].shape()[1];
        if (length < 2 || inputs[0].elements() == 0) return false;
        const auto first_of = [&] {
          return slice_of(results_of(row, example, inputs)[0], 1, 0, 1);
        };
        const Tensor before = first_of();
        Tensor last = slice_of(inputs[0], 1, length - 1, 1);
        for (double& x : last.values<double>()) x += 3.0;
        inputs[0] = joined({slice_of(inputs[0], 1, 0, length - 1), last}, 1);
        CHECK(same_bytes(first_of(), before));
        inputs[2] = added(inputs[2], inputs[2]);  // but all values
        CHECK(!same_bytes(first_of(), before));
        return true;
      });
}

TEST_CASE("row facts: a neutral operand changes nothing") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return !row.neutral.empty(); },
      [](const OpDef& row, std::string_view, const Example& example) {
        std::vector<Tensor> inputs = example_inputs(example, 3);
        REQUIRE(inputs.size() == 2);
        const bool floats = inputs[0].dtype() == DType::kF64 && inputs[1].dtype() == DType::kF64;
        if (!floats || inputs[0].shape() != inputs[1].shape()) return false;
        for (const NeutralOperand& neutral : row.neutral) {
          std::vector<Tensor> given = inputs;
          std::ranges::fill(given[static_cast<std::size_t>(neutral.input)].values<double>(),
                            neutral.number);
          const Tensor& other = inputs[static_cast<std::size_t>(1 - neutral.input)];
          CHECK(same_bytes(results_of(row, example, given)[0], other));
        }
        return inputs[0].elements() > 0;
      });
}

TEST_CASE("row facts: elements that are kept are the same where the type is") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.keeps_elements; },
      [](const OpDef& row, std::string_view, const Example& example) {
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const Tensor result = results_of(row, example, inputs)[0];
        const bool as_many = result.elements() == inputs[0].elements();
        if (!as_many || result.dtype() != inputs[0].dtype()) return false;
        Tensor kept(inputs[0].type());
        std::memcpy(kept.data(), result.data(), kept.type().bytes());
        CHECK(same_bytes(kept, inputs[0]));
        return result.elements() > 0;
      });
}

TEST_CASE("row facts: between its steps a piecewise constant function does not change") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.piecewise_constant; },
      [](const OpDef& row, std::string_view, const Example& example) {
        CHECK(row.differentiable == Differentiable::kNo);
        std::vector<Tensor> inputs = example_inputs(example, 3);
        const bool given = example.inputs[0].fill == Fill::kGiven;
        if (given || inputs[0].dtype() != DType::kF64) return false;
        const Tensor before = results_of(row, example, inputs)[0];
        for (double& x : inputs[0].values<double>()) x += 1e-9;
        CHECK(same_bytes(results_of(row, example, inputs)[0], before));
        for (double& x : inputs[0].values<double>()) x = -x - 2.0;
        return !same_bytes(results_of(row, example, inputs)[0], before);
      });
}

TEST_CASE("row facts: an exponent of three makes cubes") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.exponent_input >= 0; },
      [](const OpDef& row, std::string_view, const Example& example) {
        std::vector<Tensor> inputs = example_inputs(example, 3);
        Tensor& exponents = inputs[static_cast<std::size_t>(row.exponent_input)];
        if (exponents.dtype() != DType::kF64 || inputs[0].dtype() != DType::kF64) return false;
        std::ranges::fill(exponents.values<double>(), 3.0);
        const Tensor cubes = results_of(row, example, inputs)[0];
        if (cubes.shape() != inputs[0].shape()) return false;
        for (std::size_t i = 0; i < cubes.values<double>().size(); ++i) {
          const double x = inputs[0].values<double>()[i];
          CHECK(cubes.values<double>()[i] == doctest::Approx(x * x * x));
        }
        return cubes.elements() > 0;
      });
}

TEST_CASE("row facts: at zeros of a pole the result or its slope has no bound") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return !row.poles.empty(); },
      [](const OpDef& row, std::string_view, const Example& example) {
        bool shown = false;
        for (int pole : row.poles) {
          std::vector<Tensor> inputs = example_inputs(example, 3);
          Tensor& at = inputs[static_cast<std::size_t>(pole)];
          if (at.dtype() != DType::kF64 || at.elements() == 0) return false;
          constexpr double kNear = 1e-12;
          std::ranges::fill(at.values<double>(), 0.0);
          const Tensor zero = results_of(row, example, inputs)[0];
          std::ranges::fill(at.values<double>(), kNear);
          const Tensor near = results_of(row, example, inputs)[0];
          if (zero.dtype() != DType::kF64) return false;
          for (std::size_t i = 0; i < zero.values<double>().size(); ++i) {
            const double y = zero.values<double>()[i];
            const double slope = (near.values<double>()[i] - y) / kNear;
            shown = shown || !std::isfinite(y) || std::abs(slope) > 1e5;
          }
        }
        return shown;
      });
}

}  // namespace trainscope::test
