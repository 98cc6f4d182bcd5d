// What rows say of losses over classes, by which they are computed for some rows at a time: that it
// is true of the reference kernels.
#include <doctest/doctest.h>

#include <cmath>

#include "engine/ops/standard_ops.h"
#include "tests/ops/shown_by.h"
#include "tests/ops/slices.h"
#include "tests/support/op_case.h"

namespace trainscope::test {
namespace {

// What the sum over all labels is divided by in a mean.
double weight_of_labels(const ClassLoss& loss, const std::vector<Tensor>& inputs) {
  double sum = 0.0;
  for (const std::int64_t label : as_ints(inputs[1])) {
    if (label == loss.ignore_index) continue;
    if (loss.weights_input < 0) {
      sum += 1.0;
      continue;
    }
    const Tensor& weights = inputs[static_cast<std::size_t>(loss.weights_input)];
    sum += weights.values<double>()[static_cast<std::size_t>(label)];
  }
  return sum;
}

// Of rows [begin, begin + count), by the op for some rows only.
double loss_of_rows(const OpDef& form, const ClassLoss& loss, const std::vector<Tensor>& inputs,
                    double divisor, std::int64_t begin, std::int64_t count) {
  std::vector<Tensor> given{slice_of(inputs[0], 0, begin, count),
                            slice_of(inputs[1], 0, begin, count)};
  Example example;
  example.inputs.resize(2);
  example.attributes = loss.attributes;
  while (static_cast<int>(given.size()) < form.divisor_input) {
    const bool weighted = loss.weights_input >= 0;
    given.push_back(weighted ? inputs[static_cast<std::size_t>(loss.weights_input)] : Tensor());
    example.inputs.emplace_back();
    example.inputs.back().present = weighted;
  }
  given.push_back(Tensor::scalar(divisor));
  example.inputs.emplace_back();
  return results_of(form, example, given)[0].values<double>()[0];
}

}  // namespace

TEST_CASE("row facts: a class loss is the sum of those of its rows") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.class_loss != nullptr; },
      [&ops](const OpDef& row, std::string_view text, const Example& example) {
        const OpCase op_case(row, text, DType::kF64);
        const ClassLoss loss = row.class_loss(op_case.args());
        const OpDef& form = ops.get(loss.rows_form);
        CHECK((form.class_loss != nullptr));
        REQUIRE(form.divisor_input >= 2);
        const std::vector<Tensor> inputs = example_inputs(example, 3);
        const bool divided = row.divisor_input >= 0 && op_case.args().has(row.divisor_input);
        const std::int64_t rows = inputs[0].shape()[0];
        if (loss.class_axis != inputs[0].shape().rank - 1 || rows < 2 || divided) return false;
        const double whole = results_of(row, example, inputs)[0].values<double>()[0];
        if (loss.reduction == LossReduction::kNone || !std::isfinite(whole)) return false;
        const double divisor =
            loss.reduction == LossReduction::kSum ? 1.0 : weight_of_labels(loss, inputs);
        const double sum = loss_of_rows(form, loss, inputs, divisor, 0, 1) +
                           loss_of_rows(form, loss, inputs, divisor, 1, rows - 1);
        CHECK(sum == doctest::Approx(whole).epsilon(1e-9));
        return whole != 0.0;
      });
}

TEST_CASE("row facts: a loss is divided by the input that its row names") {
  const OpTable ops = standard_ops();
  for_each_shown(
      ops, [](const OpDef& row) { return row.divisor_input >= 0; },
      [](const OpDef& row, std::string_view text, const Example& example) {
        const OpCase op_case(row, text, DType::kF64);
        if (!op_case.args().has(row.divisor_input)) return false;
        std::vector<Tensor> inputs = example_inputs(example, 3);
        double& divisor = inputs[static_cast<std::size_t>(row.divisor_input)].values<double>()[0];
        divisor = 2.5;
        const double once = results_of(row, example, inputs)[0].values<double>()[0];
        divisor = 5.0;
        const double half = results_of(row, example, inputs)[0].values<double>()[0];
        CHECK(half == doctest::Approx(once / 2.0).epsilon(1e-12));
        return once != 0.0;
      });
}

TEST_CASE("row facts: a loss of scores is a class loss") {
  const OpTable ops = standard_ops();
  for (const OpDef* row : ops.rows()) {
    CHECK_MESSAGE((!row->of_scores || row->class_loss != nullptr), row->name);
    CHECK_MESSAGE((row->divisor_input < 0 || row->class_loss != nullptr), row->name);
  }
}

}  // namespace trainscope::test
