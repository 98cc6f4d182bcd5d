// Levers: which there are for a step, and why others do nothing.
#include "engine/advise/levers.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace trainscope::test {
namespace {

LeverFacts facts() {
  return {.batch = 8,
          .arena_bytes = 20'000,
          .persistent_bytes = 4'000,
          .labels_that_count = 0.5,
          .threads = 1,
          .cores = 2};
}

Lever lever_named(const std::vector<Lever>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Lever::name);
  REQUIRE_MESSAGE(found != all.end(), name);
  return *found;
}

TEST_CASE("levers: all may do something for a plain step") {
  const std::vector<Lever> all = levers({}, facts());
  for (const Lever& each : all) {
    CHECK_MESSAGE(each.why_not.empty(), each.name);
    CHECK(!(each.change == StepChange{}));
    CHECK(!each.cost.empty());
  }
  CHECK(lever_named(all, "2 micro-batches").change == StepChange{.batch = 4, .micro_batches = 2});
  CHECK(lever_named(all, "twice the batch").change == StepChange{.batch = 16});
  CHECK(lever_named(all, "threads").change == StepChange{.threads = 2});
}

TEST_CASE("levers: a budget is half of what is not always kept, in whole pages") {
  CHECK(budget_of(facts()) == 12'288);
  LeverFacts asked = facts();
  asked.memory_bytes = 5'001;
  CHECK(budget_of(asked) == 5'001);
  CHECK(lever_named(levers({}, asked), "memory budget").change.budget_bytes == 5'001);
}

TEST_CASE("levers: a step that has a lever already is told so") {
  CompileOptions options;
  options.recompute.mode = RecomputeMode::kLevel1;
  options.training.precision = StepPrecision::kBF16;
  options.training.optimizer.in_backward = true;
  options.training.loss_chunks = 2;
  LeverFacts busy = facts();
  busy.threads = 2;
  busy.batch = 3;
  const std::vector<Lever> all = levers(options, busy);
  for (const char* name : {"memory budget", "recompute", "offload", "bf16", "optimizer in backward",
                           "loss chunks", "masked-label compaction", "threads", "micro-batches"}) {
    CHECK_MESSAGE(!lever_named(all, name).why_not.empty(), name);
  }
}

TEST_CASE("levers: pins alone are no trade") {
  CompileOptions options;
  options.recompute.mode = RecomputeMode::kClusters;
  options.recompute.recompute = {"h*"};
  CHECK(lever_named(levers(options, facts()), "memory budget").why_not.empty());
}

TEST_CASE("levers: with memory to fit in some are taken together, where that can be") {
  LeverFacts asked = facts();
  asked.memory_bytes = 9'000;
  const std::vector<Lever> all = levers({}, asked);
  CHECK(lever_named(all, "2 micro-batches, memory budget").change ==
        StepChange{.batch = 4, .micro_batches = 2, .budget_bytes = 9'000});
  CHECK(lever_named(all, "8 micro-batches").change == StepChange{.batch = 1, .micro_batches = 8});
  CompileOptions options;
  options.training.skip_ignored = true;
  const char* const joined = "optimizer in backward, loss chunks, memory budget";
  CHECK(lever_named(all, joined).why_not.empty());
  CHECK(!lever_named(levers(options, asked), joined).why_not.empty());
}

}  // namespace
}  // namespace trainscope::test
