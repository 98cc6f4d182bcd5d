// The pass that changes a result is named; the pipeline as it is changes none.
#include "engine/bisect/stage_bisect.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/ir/op_def.h"
#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/passes/pass_manager.h"
#include "tests/support/graph_text.h"
#include "tests/support/reference_models.h"

namespace trainscope::test {
namespace {

NodeId first_of(const Graph& graph, std::string_view op) {
  for (const NodeId id : graph.order()) {
    if (graph.node(id).op->name == op) return id;
  }
  return kNoNode;
}

// Passes with a mistake: each rewrites the first node of an op to what computes something else.
bool swap_operands(Graph& graph, PassContext& context) {
  const NodeId id = first_of(graph, "Sub");
  if (id == kNoNode || graph.node(id).attributes.has("planted")) return false;
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  const std::vector<ValueId> inputs = graph.node(id).inputs;
  rewriter.set_input(id, 0, inputs[1]);
  rewriter.set_input(id, 1, inputs[0]);
  graph.node(id).attributes.set("planted", std::int64_t{1});
  return true;
}

bool scale_products(Graph& graph, PassContext& context) {
  const NodeId id = first_of(graph, "Gemm");
  if (id == kNoNode || graph.node(id).attributes.has("planted")) return false;
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  graph.node(id).attributes.set("alpha", 1.0001);
  graph.node(id).attributes.set("planted", std::int64_t{1});
  return true;
}

bool drop_a_contribution(Graph& graph, PassContext& context) {
  for (const NodeId id : graph.order()) {
    const Node node = graph.node(id);
    if (node.op->name != "Add" || node.phase != Phase::kBackward) continue;
    if (node.provenance.pass != "differentiate") continue;
    Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
    if (!rewriter.can_replace(node.outputs[0], node.inputs[0])) continue;
    rewriter.replace_node(id, {node.inputs[0]});
    return true;
  }
  return false;
}

bool lose_epsilon(Graph& graph, PassContext& context) {
  const NodeId id = first_of(graph, "LayerNormalization");
  if (id == kNoNode || graph.node(id).attributes.number("epsilon", 1e-5) == 1e-3) return false;
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  graph.node(id).attributes.set("epsilon", 1e-3);
  return true;
}

bool forget_decay(Graph& graph, PassContext& context) {
  const NodeId id = first_of(graph, "AdamWStep");
  if (id == kNoNode) return false;
  const Floats decay = graph.node(id).attributes.numbers("weight_decay");
  const Floats none(decay.size(), 0.0);
  if (decay == none) return false;
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  graph.node(id).attributes.set("weight_decay", none);
  return true;
}

struct PlantedPass {
  const char* model;
  const char* before;  // the pass of the pipeline that it comes before
  bool (*run)(Graph&, PassContext&);
};
constexpr PlantedPass kPlanted[] = {
    {"bert", "fuse_gelu", swap_operands},
    {"mlp", "loss", scale_products},
    {"bert", "fuse_softmax", swap_operands},
    {"gpt2", "upcast_gradients", drop_a_contribution},
    {"resnet18", "accumulate", drop_a_contribution},
    {"gpt2", "fuse_bias", lose_epsilon},
    {"bert", "differentiate", lose_epsilon},
    {"mlp", "sparse_rows", forget_decay},
};

CompileOptions options_of(const ReferenceModel& reference) {
  CompileOptions options = reference.options(GraphMode::kTrain);
  options.import.float_type = DType::kF64;
  options.training.keep_gradients = true;
  options.training.keep_outputs = true;
  return options;
}

std::map<std::string, Tensor> inputs_of_step(const ReferenceModel& reference) {
  std::map<std::string, Tensor> inputs;
  for (const auto& [name, tensor] : reference.batches[0].tensors) inputs.emplace(name, tensor);
  inputs.emplace(kStepInput, Tensor::scalar<std::int64_t>(1));
  inputs.emplace(kMicroStepInput, Tensor::scalar<std::int64_t>(0));
  inputs.emplace(kRandomStepInput, Tensor::scalar<std::int64_t>(1));
  inputs.emplace(kLearningRateInput, Tensor::scalar(1e-3));
  return inputs;
}

Stages stages_with(const ReferenceModel& reference, const PlantedPass& planted) {
  const CompileOptions options = options_of(reference);
  std::vector<Pass> passes(default_passes().begin(), default_passes().end());
  const auto place = std::ranges::find(passes, planted.before, &Pass::name);
  REQUIRE(place != passes.end());
  passes.insert(place, Pass{.name = "planted", .doc = "A mistake.", .run = planted.run});
  const Evaluate evaluate = evaluator(op_table(), cpu_kernels());
  const PassContext context{
      .ops = op_table(), .evaluate = &evaluate, .options = options.training, .pass = {}};
  return run_passes(graph(reference.model, options.import), passes, context, {});
}

}  // namespace

TEST_CASE("stages: the pass with a mistake is named") {
  const Evaluate evaluate = evaluator(op_table(), cpu_kernels());
  for (const PlantedPass& planted : kPlanted) {
    CAPTURE(std::string(planted.model));
    CAPTURE(std::string(planted.before));
    const ReferenceModel reference(planted.model);
    const Stages stages = stages_with(reference, planted);
    const StageBisect found = bisect_stages(stages, inputs_of_step(reference), evaluate);
    CHECK(found.fault.has_value());
    if (!found.fault) continue;
    CHECK(found.fault->stage == "planted");
    CHECK(found.fault->error > 2.0 * found.fault->limit);
    MESSAGE(found.fault->label, ": ", found.fault->end, ", ", found.fault->value, " of ",
            found.fault->node, ": ", found.fault->error);
  }
}

TEST_CASE("stages: the pipeline of each model is silent") {
  const Evaluate evaluate = evaluator(op_table(), cpu_kernels());
  for (const std::string& name : kReferenceModels) {
    CAPTURE(name);
    const ReferenceModel reference(name);
    const Stages stages = build_stages(reference.model, options_of(reference));
    const StageBisect found = bisect_stages(stages, inputs_of_step(reference), evaluate);
    CHECK_FALSE(found.fault.has_value());
    if (found.fault) MESSAGE(found.fault->label, ": ", found.fault->end, " ", found.fault->error);
    CHECK(found.stages >= 5);
    CHECK(found.ends > 20);
  }
}

}  // namespace trainscope::test
