// Steps without recomputation, and plans for budgets in turn.
#include "engine/plain_step.h"

#include <doctest/doctest.h>

#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

TEST_CASE("plain step: nothing is rematerialized, whatever the options ask for") {
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain);
  const std::int64_t arena = compile(reference.model, options)->program.arena().bytes;
  options.recompute.mode = RecomputeMode::kLevel1;
  const PlainStep step = plain_step(reference.model, options);
  CHECK(step.program().arena().bytes == arena);
  CHECK(!step.compiled->recompute);
  CHECK(step.node_seconds.size() == step.program().graph.node_capacity());
  CHECK(step.seconds > 0.0);
}

TEST_CASE("plain step: a sweep has a plan within each budget, no slower with more memory") {
  const ReferenceModel reference("gpt2");
  const PlainStep step = plain_step(reference.model, reference.options(GraphMode::kTrain));
  const BudgetSweep sweep = sweep_budgets(step, {}, 9);
  REQUIRE(sweep.budgets.size() == 9);
  CHECK(sweep.front_plans > 3);
  CHECK(sweep.budgets.back().plan.seconds == doctest::Approx(step.seconds));
  for (std::size_t i = 0; i < sweep.budgets.size(); ++i) {
    const SweptBudget& each = sweep.budgets[i];
    CHECK(each.plan.arena_bytes <= each.budget_bytes);
    CHECK(each.milliseconds > 0.0);
    CHECK(each.milliseconds <= sweep.most_milliseconds());
    if (i == 0) continue;
    CHECK(each.budget_bytes > sweep.budgets[i - 1].budget_bytes);
    CHECK(each.plan.seconds <= sweep.budgets[i - 1].plan.seconds);
  }
  CHECK(sweep.median_milliseconds() <= sweep.most_milliseconds());
}

TEST_CASE("plain step: a sweep keeps to pins") {
  const ReferenceModel reference("gpt2");
  const PlainStep step = plain_step(reference.model, reference.options(GraphMode::kTrain));
  RecomputeOptions all_kept;
  all_kept.keep = {"*"};
  const BudgetSweep sweep = sweep_budgets(step, all_kept, 2);
  CHECK(sweep.front_plans == 1);
  CHECK(sweep.budgets.front().plan.rematerialized_nodes == 0);
}

}  // namespace
}  // namespace trainscope::test
