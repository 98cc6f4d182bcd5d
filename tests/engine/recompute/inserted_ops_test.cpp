// What passes and planners insert into a step has kernels for what mixed precision stores: each of
// them on, in each precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/trained_model.h"

namespace trainscope::test {
namespace {

constexpr HostLink kQuick{.bytes_per_second = 1e15, .seconds_per_transfer = 0.0};

struct Inserting {
  std::string what;
  std::function<void(CompileOptions&)> turn_on;
};

const std::vector<Inserting> kInserting = {
    {"offload",
     [](CompileOptions& options) {
       options.recompute = {.mode = RecomputeMode::kAuto, .max_overhead = 0.02, .link = kQuick};
     }},
    {"recompute", [](CompileOptions& o) { o.recompute.mode = RecomputeMode::kLevel2; }},
    {"chunked loss, accumulation",
     [](CompileOptions& options) {
       options.training.loss_chunks = 2;
       options.training.micro_batches = 2;
     }},
    {"compacted labels", [](CompileOptions& o) { o.training.skip_ignored = true; }},
    {"sparse rows, without clipping",
     [](CompileOptions& options) {
       options.training.optimizer.sparse_embeddings = true;
       options.training.optimizer.clip_norm = 0.0;
     }},
};

std::unique_ptr<Compiled> compiled(const ReferenceModel& reference, const Inserting& inserting,
                                   StepPrecision precision) {
  CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 2});
  inserting.turn_on(options);
  options.training.precision = precision;
  return compile(reference.model, options);
}

bool is_stored(const Graph& graph, const std::vector<ValueId>& values) {
  return std::ranges::any_of(values, [&](ValueId v) {
    return v != kNoValue && is_stored_only(graph.value(v).type.dtype);
  });
}

}  // namespace

TEST_CASE("inserted ops: each pass and planner that inserts some works in each precision") {
  const ReferenceModel reference("gpt2");
  for (const Inserting& inserting : kInserting) {
    for (StepPrecision precision : {StepPrecision::kBF16, StepPrecision::kF16}) {
      CAPTURE(inserting.what);
      CHECK(compiled(reference, inserting, precision)->program.arena().bytes > 0);
    }
  }
}

TEST_CASE("inserted ops: values of two bytes wait in host memory, and keep every bit") {
  for (StepPrecision precision : {StepPrecision::kBF16, StepPrecision::kF16}) {
    TrainedModel plain("gpt2", [&](CompileOptions& o) { o.training.precision = precision; });
    TrainedModel other("gpt2", [&](CompileOptions& options) {
      kInserting[0].turn_on(options);
      options.training.precision = precision;
    });
    int stored = 0;
    const Graph& graph = other.program().graph;
    for (NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      if (node.op->name == "Offload" && is_stored(graph, node.inputs)) ++stored;
    }
    CHECK(stored > 0);
    check_equal(plain, other);
  }
}

}  // namespace trainscope::test
