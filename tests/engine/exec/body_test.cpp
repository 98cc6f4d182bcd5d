// Calls that run a program of their own: trips that are known when the step runs, in the bytes of
// the outer plan.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/exec/executor.h"
#include "engine/exec/memory_check.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/kept_plans.h"
#include "tests/support/looping_graph.h"

namespace trainscope::test {
namespace {

struct Looping {
  Program program = lower(looping_graph(), test_device(), {});
  std::shared_ptr<Executor> shared = std::make_shared<Executor>(program);
  Executor& executor = *shared;

  Looping() { executor.load_initial(); }
  std::vector<float> run(std::int64_t trips) {
    executor.write("x", floats({300}, std::vector<float>(300, 1.0F)));
    executor.write("zero", floats({300}, std::vector<float>(300, 0.0F)));
    executor.memory().write_scalar(executor.memory().kept("trips"), static_cast<double>(trips));
    executor.run_micro_step();
    const Tensor y = executor.read(program.graph.value(program.graph.outputs[0]).name);
    return {y.values<float>().begin(), y.values<float>().end()};
  }
};

// What listens to the calls of a body.
struct Trips final : ExecutionEvents {
  std::int64_t inside = 0;
  std::int64_t last_trip = -1;
  CallId within = kNoCall;
  void call_begin(const CallEvent& event) override {
    if (event.within == kNoCall) return;
    ++inside;
    last_trip = event.trip;
    within = event.within;
  }
};

}  // namespace

TEST_CASE("body: as many trips as an input says, in one call") {
  Looping loop;
  CHECK(loop.program.calls.size() == 3);
  CHECK(loop.program.calls[1].kind == CallKind::kProgram);
  for (const std::int64_t trips : {1, 3, 0, 10, 1000}) {
    CAPTURE(trips);
    const std::vector<float> y = loop.run(trips);
    const double sum = trips == 0 ? 0.0 : 4.0 * (1.0 - std::pow(0.5, trips));
    CHECK(y.front() == doctest::Approx(-sum));
    CHECK(y.back() == y.front());
  }
}

namespace {

// An op of two inputs and outputs whose body gives each input on as the other output.
OpTable swapping_ops(BodyRule body) {
  OpTable ops = standard_ops();
  ops.add({{.name = "TestSwap",
            .domain = kTrainscopeDomain,
            .min_inputs = 3,
            .max_inputs = 3,
            .max_outputs = 2,
            .shape = [](const OpArgs& args) -> std::vector<TensorType> {
              return {args.type(0), args.type(1)};
            },
            .body = body,
            .examples = {}}});
  return ops;
}

OpBody swapping(const OpArgs& args) {
  OpBody body;
  Builder b(body.graph, looping_ops());
  const ValueId x = b.input("x", args.type(0));
  const ValueId y = b.input("y", args.type(1));
  b.input("trips", args.type(2));
  body.graph.outputs = {y, x};
  body.trips.trips_input = 2;
  return body;
}

OpBody carrying_both(const OpArgs& args) {
  OpBody body = swapping(args);
  body.trips.carried = {{.from = 0, .to = 0}, {.from = 1, .to = 1}};
  return body;
}

Graph swapping_graph(const OpTable& ops) {
  Graph outer;
  Builder b(outer, ops);
  b.set_provenance({.sources = {"test"}, .pass = "test"});
  const TensorType type{.dtype = DType::kF32, .shape = {3}};
  const ValueId x = b.input("x", type);
  const ValueId y = b.input("y", type);
  const ValueId trips = b.input("trips", {.dtype = DType::kI64, .shape = {}});
  const std::vector<ValueId> ends = b.multi("TestSwap", {x, y, trips}, 2);
  outer.outputs = {b("Neg", {ends[0]}), b("Neg", {ends[1]})};
  return outer;
}

}  // namespace

TEST_CASE("body: an output that is an input is refused where it is neither carried nor stacked") {
  const OpTable ops = swapping_ops(swapping);
  CHECK(contains(refusal_of([&] { lower(swapping_graph(ops), test_device(), {}); }),
                 "of a body is one of its inputs"));
}

TEST_CASE("body: inputs that are carried to each other change places") {
  const OpTable ops = swapping_ops(carrying_both);
  auto executor = std::make_shared<Executor>(lower(swapping_graph(ops), test_device(), {}));
  MemoryCheck check(executor);
  executor->load_initial();
  for (const std::int64_t trips : {0, 1, 2, 7}) {
    CAPTURE(trips);
    executor->write("x", floats({3}, {1, 2, 3}));
    executor->write("y", floats({3}, {4, 5, 6}));
    executor->write("trips", Tensor::scalar(trips));
    executor->run_micro_step();
    const Graph& graph = executor->program().graph;
    const Tensor first = executor->read(graph.value(graph.outputs[0]).name);
    const Tensor second = executor->read(graph.value(graph.outputs[1]).name);
    CHECK(first.values<float>()[0] == (trips % 2 == 0 ? -1.0F : -4.0F));
    CHECK(second.values<float>()[2] == (trips % 2 == 0 ? -6.0F : -3.0F));
  }
  CHECK(check.violations() == std::vector<std::string>{});
}

TEST_CASE("body: its arena is the call's workspace, its values are in there") {
  Looping loop;
  keep_plan(loop.program);
  const Call& call = loop.program.calls[1];
  REQUIRE(call.body != nullptr);
  const Program& body = *call.body->program;
  CHECK(workspace_bytes_of(loop.program, call) == body.arena().bytes);
  CHECK(body.arena().bytes >= 4 * 300 * 4);  // both inputs and both outputs
  loop.run(2);
  CHECK(loop.executor.used_bytes() == loop.program.arena().bytes);
  CHECK(loop.executor.guard_intact());
}

TEST_CASE("body: writes nothing outside of the call's outputs and workspace") {
  Looping loop;
  MemoryCheck check(loop.shared);
  loop.run(3);
  CHECK(check.violations() == std::vector<std::string>{});
}

TEST_CASE("body: listeners are told of its calls, with the trip and the call around them") {
  Looping loop;
  Trips trips;
  Subscription listens = loop.executor.listen(trips);
  loop.run(5);
  listens = {};
  CHECK(trips.inside == 2 * 5);
  CHECK(trips.last_trip == 4);
  CHECK(trips.within == CallId{1});
}

}  // namespace trainscope::test
