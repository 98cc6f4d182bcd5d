// Gradients of every differentiable row against f64 central differences of sum(cotangent * y).
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/core/error.h"
#include "tests/ops/gradient_probe.h"

namespace trainscope::test {
namespace {

constexpr double kBound = 1e-6;
constexpr double kMaxWork = 2e9;  // elements and FLOPs of the probes of an example

double work_of(const OpCase& op_case, const std::vector<bool>& wanted) {
  const Cost cost = cost_of(op_case.row(), op_case.args());
  const auto inputs = static_cast<double>(std::count(wanted.begin(), wanted.end(), true));
  const auto once = static_cast<double>(cost.flops + cost.bytes_read + cost.bytes_written);
  return once * inputs * 4.0 * static_cast<double>(kElements + 1);
}

// Gradients are the same when fewer are wanted: every subset of the inputs.
void check_subsets(const Probe& probe, const std::vector<bool>& outputs,
                   const std::vector<bool>& wanted,
                   const std::vector<std::optional<Tensor>>& gradients) {
  constexpr std::size_t kMost = 8;
  std::vector<std::size_t> inputs;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i]) inputs.push_back(i);
  }
  const std::size_t n = inputs.size();
  REQUIRE_MESSAGE(n <= kMost, "an example with so many inputs has too many subsets");
  for (std::size_t subset = 1; subset + 1 < (std::size_t{1} << n); ++subset) {
    std::vector<bool> some(wanted.size(), false);
    for (std::size_t k = 0; k < n; ++k) some[inputs[k]] = (subset >> k & 1) != 0;
    INFO("subset ", subset, " of the inputs");
    const std::vector<std::optional<Tensor>> same = probe.analytic(outputs, some);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!some[i]) continue;
      CHECK_MESSAGE(same[i].has_value() == gradients[i].has_value(), "differs for input ", i);
      if (same[i] && gradients[i]) CHECK(relative_error(*same[i], *gradients[i]) <= 1e-12);
    }
  }
}

// How many elements' gradients were compared.
std::size_t check_gradients(const Tables& tables, const OpCase& op_case) {
  const Probe probe(tables, op_case);
  const std::vector<bool> wanted = probe.differentiable_inputs();
  if (std::find(wanted.begin(), wanted.end(), true) == wanted.end()) return 0;
  if (!finite(probe.values(op_case.inputs()))) return 0;  // NaN has no derivative
  CHECK_MESSAGE(work_of(op_case, wanted) <= kMaxWork, "too large an example for differences");
  const std::vector<bool> outputs = probe.differentiable_outputs(wanted);
  if (std::find(outputs.begin(), outputs.end(), true) == outputs.end()) return 0;
  std::size_t compared = 0;
  const std::vector<std::optional<Tensor>> gradients = probe.analytic(outputs, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    INFO("input ", i);
    // No gradient means a gradient of zero.
    const Tensor gradient = gradients[i].value_or(Tensor(op_case.inputs()[i].type()));
    const Errors errors = compare(probe, outputs, i, gradient);
    compared += gradient.values<double>().size();
    CHECK_MESSAGE(errors.direction <= kBound, "all elements: relative error ", errors.direction,
                  ", bound ", kBound);
    CHECK_MESSAGE(errors.elements <= kBound, "single elements: relative error ", errors.elements,
                  ", bound ", kBound);
  }
  check_subsets(probe, outputs, wanted, gradients);
  return compared;
}

}  // namespace

TEST_CASE("op suite: gradients equal f64 central differences") {
  const Tables tables;
  for (const OpDef* row : tables.ops.rows()) {
    if (row->differentiable == Differentiable::kNo || row->replaces_gradient) continue;
    if (!row->gradient && !row->decompose) continue;  // table_test tells which may lack one
    if (row->body) continue;  // graphs: tests/engine/check/control_flow_gradients_test.cpp
    std::size_t compared = 0;
    for (std::string_view text : row->examples) {
      INFO(row->name, " \"", text, "\"");
      try {
        compared += check_gradients(tables, OpCase(*row, text, DType::kF64));
      } catch (const Error& error) {
        FAIL_CHECK(error.message());
      }
    }
    CHECK_MESSAGE(compared > 0, row->name, ": no example compares a gradient");
  }
}

}  // namespace trainscope::test
