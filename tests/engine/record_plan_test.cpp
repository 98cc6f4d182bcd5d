// The record of a plan is one to one with the program that it is of.
#include "engine/record_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/call_costs.h"
#include "tests/engine/record_matches.h"
#include "tests/support/graph_text.h"
#include "tests/support/looping_graph.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

std::vector<const PlanCall*> calls_of(const PlanView& plan, PlanCallKind kind) {
  std::vector<const PlanCall*> calls;
  for (const PlanCall& call : plan.calls) {
    if (call.kind == kind) calls.push_back(&call);
  }
  return calls;
}

std::vector<std::string> names_of(const PlanView& plan, RowRange operands) {
  std::vector<std::string> names;
  for (const PlanOperand& operand : rows_of(plan.operands, operands)) {
    names.emplace_back(operand.value == kNoRow ? "" : plan.text(plan.values[operand.value].name));
  }
  return names;
}

// Everything that a program and its record share.
void check_record(const Compiled& compiled) {
  const PlanRecord record = plan_record(compiled);
  const PlanView plan = view_of(record);
  CHECK(find_fault(plan) == "");
  check_record_of(compiled.program, plan);
}

}  // namespace

TEST_CASE("plan record: each row is the program's, in every kind of step") {
  for (const char* name : {"mlp", "resnet18", "gpt2"}) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 2});
    check_record(*compile(reference.model, options));
    options.training.micro_batches = 2;
    check_record(*compile(reference.model, options));
    options.recompute = {.mode = RecomputeMode::kAuto, .max_overhead = 0.3, .link = HostLink{}};
    check_record(*compile(reference.model, options));
  }
}

TEST_CASE("plan record: a body's calls, values and buffers are a record within the record") {
  const Program program = lower(looping_graph(), test_device(), {});
  const PlanRecord record = plan_record(program);
  const PlanView plan = view_of(record);
  CHECK(find_fault(plan) == "");
  check_record_of(program, plan);
  REQUIRE(plan.body_plans.size() == 1);
  CHECK(plan.body_plans[0].calls.size() == 2);
  const auto runs = calls_of(plan, PlanCallKind::kProgram);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0]->body == 0);
  CHECK(plan.body_plans[0].arena().bytes == runs[0]->workspace_bytes);
}

TEST_CASE("plan record: what a kernel does is said beside what its op means") {
  const ReferenceModel reference("gpt2");
  const auto compiled = compile(reference.model, reference.options(GraphMode::kTrain));
  const PlanRecord record = plan_record(*compiled);
  const auto differs = std::ranges::count_if(record.calls, [](const PlanCall& call) {
    return call.kernel_flops != call.flops || call.kernel_bytes_read != call.bytes_read;
  });
  CHECK(differs > 0);
  CHECK(differs < std::ssize(record.calls));
}

TEST_CASE("plan record: nodes and gradients of a training step lead back by serials") {
  const ReferenceModel reference("mlp");
  const auto compiled = compile(reference.model, reference.options(GraphMode::kTrain));
  const PlanRecord record = plan_record(*compiled);
  const PlanView plan = view_of(record);
  const Graph& graph = compiled->program.graph;
  int gradients = 0;
  int backward = 0;
  for (std::size_t i = 0; i < plan.values.size(); ++i) {
    if (plan.values[i].gradient_of == kNoRow) continue;
    ++gradients;
    const Serials& of = graph.value(static_cast<ValueId>(i)).gradient_of;
    const auto serial = static_cast<Serial>(plan.values[plan.values[i].gradient_of].serial);
    CHECK(std::ranges::count(of, serial) == 1);
  }
  for (NodeId id : graph.order()) {
    const PlanNode& row = plan.nodes[static_cast<std::size_t>(id)];
    CHECK(row.serial == static_cast<std::uint32_t>(graph.node(id).serial));
    if (row.backward_of != 0) ++backward;
  }
  CHECK(gradients > 0);  // the graph's own list of gradients ends with the optimizer's step
  CHECK(backward > 0);
}

TEST_CASE("plan record: what runs once more, and what is offloaded, leads back to the first") {
  constexpr HostLink kQuick{.bytes_per_second = 1e15, .seconds_per_transfer = 0.0};
  const ReferenceModel reference("gpt2");
  std::size_t repeated = 0;
  std::size_t transferred = 0;
  for (const RecomputeOptions& recompute :
       {RecomputeOptions{.mode = RecomputeMode::kLevel2},
        RecomputeOptions{.mode = RecomputeMode::kAuto, .max_overhead = 0.02, .link = kQuick}}) {
    CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 2});
    options.recompute = recompute;
    const auto compiled = compile(reference.model, options);
    const PlanRecord record = plan_record(*compiled);
    const PlanView plan = view_of(record);
    const Graph& graph = compiled->program.graph;
    const std::vector<std::uint32_t> originals = original_values(plan);
    for (const NodeId id : graph.order()) {
      const Node& node = graph.node(id);
      CAPTURE(node.name);
      const std::uint32_t first = plan.nodes[static_cast<std::size_t>(id)].rematerialized_of;
      const bool is_new = node.provenance.pass == kRematerializedBy;
      const bool moves = node.op->to_host || node.op->from_host;
      CHECK((first != kNoRow) == (is_new && !moves));
      if (first != kNoRow) {
        ++repeated;
        const Node& original = graph.node(static_cast<NodeId>(first));
        CHECK(original.provenance.pass != kRematerializedBy);
        CHECK(original.op == node.op);
        CHECK(node.name.starts_with(original.name + "/"));
      }
      for (const ValueId v : node.outputs) {
        if (v == kNoValue || node.op->is_view) continue;
        const auto of = static_cast<ValueId>(originals[static_cast<std::size_t>(v)]);
        CHECK((of != v) == is_new);
        if (of == v) continue;
        CHECK(graph.value(v).name.starts_with(graph.value(of).name + "/"));
        CHECK(graph.value(v).type == graph.value(of).type);
        if (moves) ++transferred;
      }
    }
  }
  CHECK(repeated > 0);
  CHECK(transferred > 0);
}

TEST_CASE("plan record: classes of buffers are those of what they hold") {
  const ReferenceModel reference("mlp");
  const CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 2});
  const auto compiled = compile(reference.model, options);
  const PlanRecord record = plan_record(*compiled);
  const PlanView plan = view_of(record);
  std::size_t parameters = 0;
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.owner_kind != BufferOwner::kValue) continue;
    const PlanValue& owner = plan.values[buffer.owner];
    CAPTURE(plan.text(owner.name));
    CHECK((buffer.holds == BufferClass::kParameter) == (owner.kind == PlanValueKind::kParameter));
    CHECK((buffer.holds == BufferClass::kState) == (owner.kind == PlanValueKind::kState));
    CHECK((buffer.holds == BufferClass::kInput) == (owner.kind == PlanValueKind::kInput));
    if (buffer.holds == BufferClass::kParameter) ++parameters;
    if (owner.producer == kNoRow) continue;
    constexpr BufferClass kOfPhase[] = {BufferClass::kActivation, BufferClass::kGradient,
                                        BufferClass::kUpdate};
    const PlanPhase phase = plan.nodes[owner.producer].phase;
    CHECK(buffer.holds == kOfPhase[static_cast<std::size_t>(phase)]);
  }
  CHECK(parameters == compiled->program.graph.values_of(ValueKind::kParameter).size());
}

TEST_CASE("plan record: what runs a second time makes activations, what waits in host memory too") {
  const ReferenceModel reference("gpt2");
  CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 2});
  options.recompute = {.mode = RecomputeMode::kAuto,
                       .max_overhead = 0.05,
                       .link = HostLink{.bytes_per_second = 1e13, .seconds_per_transfer = 1e-9}};
  const PlanRecord record = plan_record(*compile(reference.model, options));
  const PlanView plan = view_of(record);
  REQUIRE(plan.recompute.size() == 1);
  const auto transfers = calls_of(plan, PlanCallKind::kTransfer);
  CHECK(!transfers.empty());
  for (const PlanCall* call : transfers) {
    const auto space = [&](RowRange range) {
      return plan.buffers[plan.operands[range.begin].buffer].space;
    };
    CHECK(space(call->inputs) != space(call->outputs));
  }
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.owner_kind != BufferOwner::kValue) continue;
    const std::uint32_t producer = plan.values[buffer.owner].producer;
    if (producer == kNoRow || plan.text(plan.nodes[producer].pass) != kRematerializedBy) continue;
    CHECK(buffer.holds == BufferClass::kActivation);
  }
}

TEST_CASE("plan record: kernels that were not taken are named with the reason") {
  const ReferenceModel reference("mlp");
  const auto reasons = [&reference](const LowerOptions& lower) {
    const CompileOptions options = reference.options(GraphMode::kTrain, lower);
    const PlanRecord record = plan_record(*compile(reference.model, options));
    const PlanView plan = view_of(record);
    std::vector<std::string> texts;
    for (const PlanCall& call : plan.calls) {
      for (const PlanOtherKernel& other : rows_of(plan.other_kernels, call.other_kernels)) {
        CHECK(plan.text(other.kernel) != plan.text(call.kernel));
        texts.emplace_back(plan.text(other.reason));
      }
    }
    return texts;
  };
  const std::string varies =
      "its bits depend on the number of threads, which --deterministic strict leaves out";
  const auto plain = reasons({.threads = 2});
  const auto strict = reasons({.threads = 2, .same_bits = SameBits::kAnyThreads});
  CHECK(std::ranges::count(strict, varies) > 0);
  CHECK(std::ranges::count(plain, varies) == 0);
}

TEST_CASE("plan record: every kernel of the device for a call is its own or named with a reason") {
  const ReferenceModel reference("lenet");
  const auto compiled = compile(reference.model, reference.options(GraphMode::kTrain, {}));
  const Program& program = compiled->program;
  const PlanRecord record = plan_record(*compiled);
  const PlanView plan = view_of(record);
  std::size_t behind = 0;
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    const PlanCall& call = plan.calls[i];
    if (call.kind != PlanCallKind::kKernel || call.tile != kNoRow) continue;
    const Call& planned = program.calls[i];
    const Node& node = program.graph.node(planned.node);
    std::vector<std::string_view> named;
    for (const auto& other : plan.kernels_before(call)) named.push_back(plan.text(other.kernel));
    named.push_back(plan.text(call.kernel));
    for (const auto& other : plan.kernels_behind(call)) named.push_back(plan.text(other.kernel));
    std::vector<std::string_view> there;
    const KernelTable& table = program.device->kernels();
    for (const Kernel* kernel : table.find(node.op->name, dtype_of(planned))) {
      there.push_back(kernel->name);
    }
    CAPTURE(node.name);
    CHECK(named == there);
    behind += call.behind;
    for (const PlanOtherKernel& other : rows_of(plan.other_kernels, call.other_kernels)) {
      CHECK(!plan.text(other.reason).empty());
    }
  }
  CHECK(behind > 0);
}

TEST_CASE("plan record: a state that cannot be written in place is a copy behind its phase") {
  Graph g = graph(
      "(float[4] x) => (float[4] y) <float[4] w = {1,2,3,4}>"
      "{ n = Add(w, x)  y = Exp(w)  z = Neg(n) }");
  g.updates.push_back({.state = g.find("w"), .value = g.find("n")});
  const Program program = lower(std::move(g), test_device(), {});
  const PlanRecord record = plan_record(program);
  const PlanView plan = view_of(record);
  const auto copies = calls_of(plan, PlanCallKind::kStateCopy);
  REQUIRE(copies.size() == 1);
  CHECK(names_of(plan, copies[0]->inputs) == std::vector<std::string>{"n"});
  CHECK(names_of(plan, copies[0]->outputs) == std::vector<std::string>{"w"});
  CHECK(copies[0]->bytes_written == 16);
  CHECK(copies[0]->time + 1 == plan.facts().update_begin);
  CHECK(find_fault(plan).empty());
}

TEST_CASE("plan record: partials of batch tiles are added up behind their section") {
  const ReferenceModel reference("mlp");
  CompileOptions options = reference.options(GraphMode::kTrain, {.threads = 2});
  options.batch_tiles = BatchTileOptions{.least_ops = 1, .least_share = 0.0};
  const auto compiled = compile(reference.model, options);
  REQUIRE(!compiled->program.sections.empty());
  const PlanRecord record = plan_record(*compiled);
  const PlanView plan = view_of(record);
  CHECK(!plan.sections.empty());
  const auto sums = calls_of(plan, PlanCallKind::kAddPartials);
  REQUIRE(!sums.empty());
  for (const PlanCall* sum : sums) {
    CHECK(sum->outputs.count == 1);
    CHECK(sum->inputs.count == 2);
    CHECK(sum->section != kNoRow);
    const auto inputs = rows_of(plan.operands, sum->inputs);
    CHECK(inputs.front().slice == PlanSlice::kPartial);
    CHECK(inputs.front().buffer == plan.operands[sum->outputs.begin].buffer);
    const PlanBuffer& workspace = plan.buffers[inputs.back().buffer];
    CHECK(workspace.holds == BufferClass::kWorkspace);
    CHECK(inputs.back().offset < workspace.bytes);
  }
  const auto tiled = std::ranges::count_if(
      plan.calls, [](const PlanCall& call) { return call.section != kNoRow && call.tile == 1; });
  CHECK(tiled > 0);
  check_record(*compiled);
}

}  // namespace trainscope::test
