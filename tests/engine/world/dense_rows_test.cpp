// Worlds reduce dense gradients: a step with sparse rows is planned as the one without.
#include "engine/world/dense_rows.h"

#include <doctest/doctest.h>

#include <memory>

#include "engine/world/place.h"
#include "tests/engine/world/world_steps.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

std::unique_ptr<Compiled> llama_step(OptimizerKind optimizer, bool sparse) {
  return compiled_step("llama",
                       {{"layers", std::int64_t{2}},
                        {"heads", std::int64_t{4}},
                        {"kv-heads", std::int64_t{4}},
                        {"embedding", std::int64_t{32}},
                        {"feed-forward", std::int64_t{64}},
                        {"vocab", std::int64_t{512}},
                        {"context", std::int64_t{16}},
                        {"tied", false}},
                       {.sequence = 2, .optimizer = optimizer, .sparse_rows = sparse});
}

constexpr OptimizerKind kKinds[] = {OptimizerKind::kSgd, OptimizerKind::kAdamW};

}  // namespace

TEST_CASE("dense rows: the step is the one that sparse_rows found, and a graph") {
  for (OptimizerKind kind : kKinds) {
    const auto step = llama_step(kind, true);
    const Graph& sparse = step->stages.back().graph;
    REQUIRE(count_ops(sparse, "SumRowsById") == 1);
    Graph dense = sparse;
    make_rows_dense(dense, op_table());
    CHECK(verify(dense).empty());
    CHECK(count_ops(dense, "SumRowsById") == 0);
    CHECK(count_ops(dense, "GatherGrad") == 1);
    CHECK(count_ops(dense, kind == OptimizerKind::kSgd ? "SgdStep" : "AdamWStep") == 2);
    if (kind != OptimizerKind::kSgd) continue;
    const Tensors inputs = random_inputs(sparse, 3);
    CHECK(difference(results_of(dense, inputs), results_of(sparse, inputs)) == 0.0);
  }
}

TEST_CASE("dense rows: one device has the local plan, several the one of all rows") {
  for (OptimizerKind kind : kKinds) {
    const auto sparse = llama_step(kind, true);
    const auto dense = llama_step(kind, false);
    CHECK(sparse->program.arena().bytes < dense->program.arena().bytes);
    const DeviceShard one = planned(*sparse, {}).device();
    CHECK(one.peak_bytes == sparse->program.arena().bytes);
    CHECK(one.eager_bytes == planned(*dense, {}).device().eager_bytes);
    for (const Layout& layout :
         {Layout{.world = 2}, Layout{.world = 2, .zero = 1}, Layout{.world = 4, .zero = 2},
          Layout{.world = 4, .zero = 3}, Layout{.world = 2, .tensor = 2},
          Layout{.world = 2, .pipeline = 2}}) {
      CAPTURE(layout.world);
      CAPTURE(layout.zero);
      const DeviceShard with = planned(*sparse, layout).device();
      const DeviceShard without = planned(*dense, layout).device();
      CHECK(with.parameter_bytes == without.parameter_bytes);
      CHECK(with.gradient_bytes == without.gradient_bytes);
      CHECK(with.state_bytes == without.state_bytes);
    }
  }
}

}  // namespace trainscope::test
