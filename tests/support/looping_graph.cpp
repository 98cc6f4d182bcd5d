// The op TestLoop and the graph of it.
#include "tests/support/looping_graph.h"

#include <vector>

#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"

namespace trainscope::test {
namespace {

// x [n], sum [n], trips -> after each trip x is x / 2 and sum is sum + x, of the x before.
OpBody halve_and_add(const OpArgs& args) {
  OpBody body;
  Builder b(body.graph, looping_ops());
  b.set_provenance({.sources = {"test"}, .pass = "test"});
  const ValueId x = b.input("x", args.type(0));
  const ValueId sum = b.input("sum", args.type(1));
  b.input("trips", args.type(2));
  const ValueId half = b.scalar(0.5, DType::kF32);
  body.graph.outputs = {b("Mul", {x, half}), b("Add", {sum, x})};
  body.trips.trips_input = 2;
  body.trips.carried = {{.from = 0, .to = 0}, {.from = 1, .to = 1}};
  return body;
}

}  // namespace

const OpTable& looping_ops() {
  static const OpTable ops = [] {
    OpTable all = standard_ops();
    all.add({{.name = "TestLoop",
              .domain = kTrainscopeDomain,
              .min_inputs = 3,
              .max_inputs = 3,
              .max_outputs = 2,
              .shape = [](const OpArgs& args) -> std::vector<TensorType> {
                return {args.type(0), args.type(1)};
              },
              .body = halve_and_add,
              .examples = {}}});
    return all;
  }();
  return ops;
}

Graph looping_graph() {
  Graph graph;
  Builder b(graph, looping_ops());
  b.set_provenance({.sources = {"test"}, .pass = "test"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {300}});
  const ValueId zero = b.input("zero", {.dtype = DType::kF32, .shape = {300}});
  const ValueId trips = b.input("trips", {.dtype = DType::kI64, .shape = {}});
  const ValueId twice = b("Add", {x, x});
  const std::vector<ValueId> ends = b.multi("TestLoop", {twice, zero, trips}, 2);
  graph.outputs = {b("Neg", {ends[1]}), ends[0]};
  return graph;
}

}  // namespace trainscope::test
