// Updates in the backward phase on the reference models, with and without recomputation.
#include <doctest/doctest.h>

#include "tests/engine/recompute/recompute_tools.h"

namespace trainscope::test {
namespace {

std::int64_t arena_as_given(const std::string& name, const OptimizerOptions& optimizer) {
  const ReferenceModel reference(name);
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.training.optimizer = optimizer;
  options.order = OpOrder::kGiven;
  return compile(reference.model, options)->program.arena().bytes;
}

}  // namespace

TEST_CASE("optimizer in backward: the same bits in less memory") {
  for (const std::string& name : kReferenceModels) {
    for (OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdamW, OptimizerKind::kLamb}) {
      CAPTURE(name);
      CAPTURE(name_of(kind));
      const OptimizerOptions late{.kind = kind, .weight_decay = 0.01};
      OptimizerOptions soon = late;
      soon.in_backward = true;
      Trained plain(name, {}, late);
      Trained early(name, {}, soon);
      check_equal(plain, early);
      // Of one order: each gets another one that suits it, and that search promises nothing.
      CHECK(arena_as_given(name, soon) <= arena_as_given(name, late));
      CHECK(early.program().update_time == early.program().times);
      Trained both(name, {.mode = RecomputeMode::kLevel2}, soon);
      check_equal(plain, both);
    }
  }
}

TEST_CASE("optimizer in backward: refused with clipping and with accumulation") {
  const ReferenceModel reference("mlp");
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.training.optimizer = {.clip_norm = 1.0, .in_backward = true};
  CHECK_THROWS_WITH_AS(compile(reference.model, options), doctest::Contains("with clipping"),
                       Error);
  options.training.optimizer.clip_norm = 0.0;
  options.training.micro_batches = 2;
  CHECK_THROWS_WITH_AS(compile(reference.model, options), doctest::Contains("with accumulation"),
                       Error);
}

}  // namespace trainscope::test
