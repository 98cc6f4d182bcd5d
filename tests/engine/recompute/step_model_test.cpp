// The units of a step: what waits for what, and whose bytes are counted where.
#include "engine/recompute/step_model.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/ir/builder.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

struct Units {
  std::unique_ptr<Compiled> compiled;
  StepModel model;

  explicit Units(std::string_view name) {
    const ReferenceModel reference(name);
    compiled = compile(reference.model, reference.options(GraphMode::kTrain));
    model = step_model(compiled->program, step_seconds(compiled->program, {}));
  }

  const Graph& graph() const { return compiled->program.graph; }
  // The unit of the only node of an op that `wanted` says yes to.
  template <typename Wanted>
  const StepUnit& unit_of(const Wanted& wanted) const {
    const auto holds = [&](const StepUnit& unit) {
      return std::ranges::any_of(unit.nodes, [&](NodeId id) { return wanted(graph().node(id)); });
    };
    REQUIRE(std::ranges::count_if(model.units, holds) == 1);
    return *std::ranges::find_if(model.units, holds);
  }
  std::int64_t input_bytes(const StepUnit& unit) const {
    std::int64_t bytes = 0;
    for (int i : unit.inputs) bytes += model.units[static_cast<std::size_t>(i)].bytes;
    return bytes;
  }
  std::int64_t parameter_bytes() const {
    std::int64_t bytes = 0;
    for (ValueId v : graph().values_of(ValueKind::kParameter)) {
      bytes += static_cast<std::int64_t>(graph().value(v).type.bytes());
    }
    return bytes;
  }
};

constexpr std::int64_t kScalars = 64;  // bytes: loss, norm of the gradients, clip factor

// Whether a Mul writes over a result of LayerNormalizationGrad other than its largest, the first.
bool writes_over_side_result(const Program& program) {
  const Graph& graph = program.graph;
  return std::ranges::any_of(graph.order(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.op->name == "Mul" && std::ranges::any_of(node.inputs, [&](ValueId in) {
             const NodeId maker = graph.value(in).producer;
             if (maker == kNoNode || graph.node(maker).op->name != "LayerNormalizationGrad" ||
                 in == graph.node(maker).outputs[0]) {
               return false;
             }
             const PlannedValue from = program.place(in);
             const PlannedValue to = program.place(node.outputs[0]);
             return program.keeps(in) && from.buffer == to.buffer && from.offset == to.offset;
           });
  });
}

}  // namespace

TEST_CASE("step model: the update waits for gradients, not for what is made with them") {
  for (const std::string name : {"resnet18", "gpt2", "bert"}) {
    CAPTURE(name);
    const Units units(name);
    const StepUnit& update =
        units.unit_of([](const Node& node) { return node.op->name == "AdamWStep"; });
    CHECK(units.input_bytes(update) >= units.parameter_bytes());
    CHECK(units.input_bytes(update) <= units.parameter_bytes() + kScalars);
  }
}

TEST_CASE("step model: running statistics stay, the results made with them need not") {
  const Units units("resnet18");
  CHECK(units.input_bytes(units.model.units.back()) <= kScalars);
  CHECK(units.model.fixed_bytes >= units.compiled->program.persistent_bytes);
}

TEST_CASE("step model: rows added into a sum have no bytes of their own") {
  const Units units("gpt2");
  const StepUnit& sum = units.unit_of(
      [](const Node& node) { return node.op->name == "GatherGrad" && node.inputs.size() == 3; });
  CHECK(sum.bytes == 0);
  const std::int64_t peak = [&] {
    std::int64_t most = 0;
    for (const StepUnit& unit : units.model.units) {
      most = std::max(most, unit.bytes + unit.workspace_bytes + units.input_bytes(unit));
    }
    return most;
  }();
  CHECK(peak <= units.compiled->program.arena().bytes - units.model.fixed_bytes);
}

TEST_CASE("step model: no second execution waits for the view of a slice, which may come late") {
  Graph graph;
  Builder b(graph, op_table());
  b.set_provenance({.sources = {"n"}, .pass = "test"});
  const ValueId x = b.input("x", {.dtype = DType::kF32, .shape = {4, 6}});
  const ValueId recomputed = b("Exp", {x});
  const std::vector<ValueId> slices = b.multi("Split", {recomputed}, 2);
  const ValueId reader = b("Mul", {recomputed, recomputed});
  const ValueId view = b("Flatten", {slices[1]});
  const auto made_by = [&](ValueId v) { return graph.value(v).producer; };
  StepModel model;
  for (const std::vector<NodeId>& nodes : {std::vector{made_by(recomputed)},
                                           {made_by(slices[0])},
                                           {made_by(view)},
                                           {made_by(reader)},
                                           {}}) {
    model.units.push_back({.nodes = nodes, .inputs = {}});
  }
  model.position.assign(graph.node_capacity(), 0);
  const std::vector<NodeId> order = graph.order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    model.position[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  }
  CHECK(order.back() == made_by(view));
  const std::vector<Rematerialization> rematerializations =
      rematerializations_of(graph, model, {.units = {0, 1, 0, 2, 0, 3, 4}, .in_host = {}});
  REQUIRE(rematerializations.size() == 2);
  for (const Rematerialization& each : rematerializations) {
    CHECK(each.node == made_by(recomputed));
    CHECK(each.before == made_by(reader));
  }
}

// The gradient of a norm's scale is a side result of its call; it is written over in place after
// calls that read the other results.
TEST_CASE("step model: units are in the order of their first calls") {
  const auto values = [](int count) {
    std::string text = "{0";
    for (int i = 1; i < count; ++i) text += "," + std::to_string(i);
    return text + "}";
  };
  const OnnxModel model = OnnxModel::parse_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[8,4] x) => (float[8,4] y)"
      "<float[4,4] u = " +
      values(16) + ", float[4,4] v = " + values(16) + ", float[4] s = " + values(4) +
      "> { e = Exp(s) a = MatMul(x, v) n = LayerNormalization(a, e) y = MatMul(n, u) }");
  CompileOptions options;
  options.device = test_device();
  options.training.mode = GraphMode::kTrain;
  options.training.loss = {.kind = LossKind::kMse, .output = "y"};
  options.order = OpOrder::kGiven;
  const auto compiled = compile(model, options);
  REQUIRE(writes_over_side_result(compiled->program));
  const StepModel steps = step_model(compiled->program, step_seconds(compiled->program, {}));
  std::int64_t latest = -1;
  for (const StepUnit& unit : steps.units) {
    if (unit.nodes.empty()) continue;
    const std::int64_t first = steps.position[static_cast<std::size_t>(unit.nodes.front())];
    CHECK(first > latest);
    latest = first;
  }
}

}  // namespace trainscope::test
