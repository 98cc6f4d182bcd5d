// Programs: kernels, workspaces and places, followed value by value on texts and real models.
#include "engine/plan/lower.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>

#include "engine/core/text.h"
#include "engine/exec/backends.h"
#include "engine/ir/builder.h"
#include "engine/ops/standard_ops.h"
#include "engine/plan/batch_tiles.h"
#include "memplan/bounds.h"
#include "memplan/validate.h"
#include "tests/support/copying_device.h"
#include "tests/support/graph_text.h"
#include "tests/support/program_check.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

void check_program(const Program& program) {
  check_placements(program);
  const memplan::Problem problem = placement_problem(program);
  CHECK(memplan::validate(problem, placement_of(program)).empty());
  CHECK(program.arena().bytes >= memplan::lower_bound_bytes(problem));
  std::int64_t persistent = 0;
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState, ValueKind::kConstant}) {
    for (ValueId v : program.graph.values_of(kind)) {
      if (program.offset_of(v) < 0) continue;
      persistent += static_cast<std::int64_t>(program.graph.value(v).type.bytes());
    }
  }
  CHECK(program.persistent_bytes == persistent);
  std::int64_t hungriest = 0;
  for (const Call& call : program.calls) {
    CHECK(workspace_bytes_of(program, call) ==
          static_cast<std::int64_t>(call.prepared.workspace_bytes));
    hungriest = std::max(hungriest, workspace_bytes_of(program, call));
  }
  CHECK(program.workspace_bytes == hungriest);
}

// Kernels for these ops only.
KernelTable only(const std::vector<std::string>& ops) {
  KernelTable table;
  for (const KernelTable::Row& row : cpu_kernels().rows()) {
    if (std::ranges::find(ops, row.op) != ops.end()) table.add(row.op, row.dtype, row.kernel);
  }
  return table;
}

}  // namespace

TEST_CASE("lower: every model's programs keep each value until its last reader") {
  for (const std::string& name : kReferenceModels) {
    const ReferenceModel reference(name);
    for (GraphMode mode : {GraphMode::kEvaluate, GraphMode::kGradients, GraphMode::kTrain}) {
      for (bool in_place : {true, false}) {
        CAPTURE(name);
        CAPTURE(in_place);
        const auto compiled =
            compile(reference.model, reference.options(mode, {.in_place = in_place}));
        check_program(compiled->program);
      }
    }
  }
}

namespace {

// A graph of one node that turns a matrix [n, n] as often as an input says.
OpBody turn(const OpArgs& args) {
  static const OpTable ops = standard_ops();
  OpBody body;
  Builder b(body.graph, ops);
  b.set_provenance({.sources = {"test"}, .pass = "test"});
  const ValueId x = b.input("x", args.type(0));
  b.input("trips", args.type(1));
  body.graph.outputs = {b("Transpose", {x})};
  body.trips.trips_input = 1;
  body.trips.carried = {{.from = 0, .to = 0}};
  return body;
}

Graph turning_graph() {
  static const OpTable ops = [] {
    OpTable all = standard_ops();
    all.add({{.name = "TestTurn",
              .domain = kTrainscopeDomain,
              .min_inputs = 2,
              .max_inputs = 2,
              .shape = [](const OpArgs& args) -> std::vector<TensorType> { return {args.type(0)}; },
              .body = turn,
              .examples = {}}});
    return all;
  }();
  Graph graph;
  Builder b(graph, ops);
  b.set_provenance({.sources = {"test"}, .pass = "test"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {64, 64}});
  const ValueId trips = b.input("trips", {.dtype = DType::kI64, .shape = {}});
  graph.outputs = {b("TestTurn", {x, trips})};
  return graph;
}

// Two threads work at it example by example.
Program tiled(bool runs) {
  Program program = lower(graph("(float[8,4,5] x) => (float[8,5,4] y) "
                                "{ a = Exp(x) b = Transpose<perm=[0,2,1]>(a) y = Sigmoid(b) }"),
                          test_device(), {.threads = 2, .runs = runs});
  REQUIRE(add_batch_tiles(program));
  return program;
}

// Calls with something that kernels prepared, which a program that is run keeps.
struct PreparedCalls {
  int whole = 0;
  int of_tiles = 0;
  int of_bodies = 0;
};

// `plan` is `run`, but that nobody runs it: counts what it did without.
void check_plan_alone(const Program& run, const Program& plan, PreparedCalls& prepared) {
  CHECK(run.runs);
  CHECK_FALSE(plan.runs);
  REQUIRE(plan.calls.size() == run.calls.size());
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    const Call& call = run.calls[i];
    if (call.prepared.state != nullptr) ++(call.tile < 0 ? prepared.whole : prepared.of_tiles);
    CHECK(plan.calls[i].prepared.state == nullptr);
    CHECK(plan.calls[i].kernel == call.kernel);
    REQUIRE((plan.calls[i].body == nullptr) == (call.body == nullptr));
    if (call.body == nullptr) continue;
    PreparedCalls inside;
    check_plan_alone(*call.body->program, *plan.calls[i].body->program, inside);
    prepared.of_bodies += inside.whole;
  }
  CHECK(placement_of(plan).offsets == placement_of(run).offsets);
  CHECK(plan.arena().bytes == run.arena().bytes);
}

}  // namespace

TEST_CASE("lower: what nobody runs has the same places and keeps nothing that was prepared") {
  PreparedCalls prepared;
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const auto run = compile(reference.model, reference.options(GraphMode::kTrain, {.threads = 2}));
    const auto plan = compile(reference.model,
                              reference.options(GraphMode::kTrain, {.threads = 2, .runs = false}));
    check_plan_alone(run->program, plan->program, prepared);
  }
  check_plan_alone(lower(turning_graph(), test_device(), {}),
                   lower(turning_graph(), test_device(), {.runs = false}), prepared);
  check_plan_alone(tiled(true), tiled(false), prepared);
  CHECK(prepared.whole > 0);
  CHECK(prepared.of_tiles > 0);
  CHECK(prepared.of_bodies > 0);
}

TEST_CASE("placement_faults: sees values moved onto living ones and workspaces onto outputs") {
  const ReferenceModel reference("lenet");
  const auto compiled = compile(reference.model, reference.options(GraphMode::kTrain));
  int found = 0;
  int moved = 0;
  for (const CallId id : calls_by_time(compiled->program)) {
    const Node& node = compiled->program.graph.node(compiled->program.call(id).node);
    Program broken = compiled->program;
    const ValueId input = node.inputs[0];
    const ValueId output = node.outputs[0];
    if (node.op->in_place || broken.offset_of(input) == broken.offset_of(output)) continue;
    ++moved;
    move_value(broken, output, broken.place(input));
    if (!placement_faults(broken).empty()) ++found;
  }
  CHECK(moved > 10);
  CHECK(found == moved);
}

TEST_CASE("lower: reference kernels, two threads, micro-batches and all gradients kept") {
  const ReferenceModel reference("resnet18");
  CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 2});
  options.training.micro_batches = 3;
  options.training.keep_gradients = true;
  check_program(compile(reference.model, options)->program);
  options.lower.kernels = KernelChoice::kReference;
  const auto compiled = compile(reference.model, options);
  check_program(compiled->program);
  CHECK(compiled->program.threads == 2);
  for (const Call& call : compiled->program.calls) {
    if (call.kernel != nullptr) CHECK_FALSE(contains(call.kernel->name, "onednn"));
  }
}

TEST_CASE("lower: in-place results never need more bytes at a time") {
  for (const std::string& name : kReferenceModels) {
    const ReferenceModel reference(name);
    const auto bytes = [&](bool in_place) {
      return compile(reference.model, reference.options(GraphMode::kTrain, {.in_place = in_place}))
          ->program.arena()
          .lower_bound_bytes;
    };
    CHECK(bytes(true) <= bytes(false));
  }
}

TEST_CASE("lower: every optimizer writes parameters and moments in place, without copies") {
  const ReferenceModel reference("mlp");
  for (OptimizerKind kind : kOptimizerKinds) {
    CompileOptions options = reference.options(GraphMode::kTrain);
    options.training.optimizer.kind = kind;
    options.training.optimizer.momentum = 0.9;
    const auto compiled = compile(reference.model, options);
    const Program& program = compiled->program;
    CHECK(std::ranges::count(program.calls, CallKind::kStateCopy, &Call::kind) == 0);
    for (const Update& u : program.graph.updates) {
      CHECK(program.place(u.state).buffer == program.place(u.value).buffer);
    }
  }
}

TEST_CASE("lower: two programs of the same graph are the same plan") {
  const ReferenceModel reference("gpt2");
  const auto one = compile(reference.model, reference.options(GraphMode::kTrain));
  const auto other = compile(reference.model, reference.options(GraphMode::kTrain));
  CHECK(placement_of(one->program).offsets == placement_of(other->program).offsets);
  CHECK(one->program.arena().bytes == other->program.arena().bytes);
}

TEST_CASE("lower: views are no calls, the rest runs in phase order") {
  const Program program = lower(graph("(float[4] x) => (float[2,2] y) <int64[2] s = {2,2}>"
                                      "{ a = Exp(x)  v = Reshape(a, s)  y = Neg(v) }"),
                                test_device(), {});
  CHECK(program.calls.size() == 2);
  CHECK(program.times == 2);
  CHECK(program.update_begin == CallId{2});
  check_program(program);
}

TEST_CASE("lower: each call of a step has a node of its own name") {
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const auto compiled = compile(reference.model, reference.options(GraphMode::kTrain));
    std::set<std::string> names;
    for (const CallId id : calls_by_time(compiled->program)) {
      const NodeId node = compiled->program.call(id).node;
      CHECK(names.insert(compiled->program.graph.node(node).name).second);
    }
  }
}

TEST_CASE("lower: every missing kernel is listed at once with its nodes") {
  const std::optional<Error> error = error_of([] {
    lower(graph("(float[2,2] x) => (float[2,2] y)"
                "{ a = Exp(x)  b = Neg(a)  c = Neg(b)  d = MatMul(c, c)  i = Cast <to = 7> (d)"
                "  j = Neg(i)  k = Cast <to = 1> (j)  y = Exp(k) }"),
          cpu_with(only({"Exp", "Cast"})), {});
  });
  REQUIRE(error.has_value());
  CHECK(error->code() == ErrorCode::kBadInput);
  CHECK(error->message() == "the model needs kernels that do not exist");
  REQUIRE(error->context().size() == 3);
  CHECK(error->context()[0] == "MatMul for f32: 1 node: MatMul_3");
  CHECK(error->context()[1] == "Neg for f32: 2 nodes: Neg_1, Neg_2");
  CHECK(error->context()[2] == "Neg for i64: 1 node: Neg_5");
}

TEST_CASE("lower: a model stored in float16 is told what to do") {
  const std::optional<Error> error = error_of([] {
    lower(graph("(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }",
                {.float_type = DType::kF16}),
          cpu_with(only({"Exp"})), {});
  });
  REQUIRE(error.has_value());
  CHECK(error->context()[0] == "MatMul for f16: 1 node: MatMul_0");
  CHECK(error->hint() ==
        "the model's parameters are f16: export it in float32, and train with --precision fp16 for "
        "activations and matmuls in f16");
}

TEST_CASE("lower: empty tensors and graphs without nodes have a plan") {
  check_program(lower(graph("(float[0,3] x) => (float[0,3] y) { y = Exp(x) }"), test_device(), {}));
  Graph nothing = graph("(float[3] x) => (float[3] y) { y = Identity(x) }");
  check_program(lower(std::move(nothing), test_device(), {}));
}

}  // namespace trainscope::test
