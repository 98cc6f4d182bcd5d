// training_form: dropout and batch norm take the form that the mode asks for, whatever form the
// model was exported in; random ops draw from the step's counter.
#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/passes/pass.h"

namespace trainscope {
namespace {

constexpr std::int64_t kFirstDrawStream = std::int64_t{1} << 32;  // dropouts have those below

bool trains(const PassContext& context) {
  return context.options.mode == GraphMode::kTrain || context.options.mode == GraphMode::kGradients;
}

bool mask_is_read(const Graph& graph, const Node& node) {
  if (node.outputs.size() < 2 || node.outputs[1] == kNoValue) return false;
  return !graph.value(node.outputs[1]).uses.empty() || graph.is_output(node.outputs[1]);
}

ValueId random_step_input(Rewriter& rewriter) {
  ValueId step = rewriter.graph().find(kRandomStepInput);
  if (step != kNoValue) return step;
  return rewriter.at_end(Phase::kForward)
      .input(kRandomStepInput, {.dtype = DType::kI64, .shape = {}});
}

// Training: a dropout with a ratio above 0 draws its mask from (seed, stream, random step), each
// node from a stream of its own. Otherwise: the identity, which `decompose` makes of an inference
// Dropout.
void rewrite_dropout(Rewriter& rewriter, NodeId id, PassContext& context) {
  Graph& graph = rewriter.graph();
  const Node node = graph.node(id);  // a copy: the graph's storage grows
  double ratio = NodeArgs(graph, node)->constant_number(1, 0.5);
  require(!trains(context) || (ratio >= 0.0 && ratio < 1.0), ErrorCode::kBadInput,
          "Dropout '{}': the ratio is {}, expected a number in [0, 1)", printable(node.name),
          ratio);
  Builder* b = nullptr;
  ValueId y = kNoValue;
  if (trains(context) && ratio > 0.0) {
    require(!mask_is_read(graph, node), ErrorCode::kBadInput,
            "Dropout '{}': its mask is read, which training does not keep", printable(node.name));
    ValueId step = random_step_input(rewriter);
    b = &rewriter.before(id);
    y = (*b)(node.op->training_form, {node.inputs[0], step},
             {{"ratio", ratio},
              {"seed", static_cast<std::int64_t>(context.options.seed)},
              {"stream", context.counters["dropouts"]}});
    context.count("dropouts");
  } else {
    b = &rewriter.before(id);
    y = (*b)("Identity", {node.inputs[0]});
    context.count("dropouts removed");
  }
  std::vector<ValueId> outputs{y};
  if (mask_is_read(graph, node)) {
    const Shape& shape = graph.value(node.inputs[0]).type.shape;
    Tensor mask({.dtype = DType::kBool, .shape = shape});
    std::ranges::fill(mask.values<bool>(), true);
    outputs.push_back((*b)("Identity", {b->constant(std::move(mask))}));
  } else if (node.outputs.size() > 1) {
    outputs.push_back(y);  // nobody reads it
  }
  rewriter.replace_node(id, outputs);
}

bool is_dropout(const Node& node) { return !node.op->training_form.empty(); }

bool is_batch_norm(const Node& node) { return !node.op->inference_form.empty(); }

// The batch norm output that carries on a running statistic read as input `value`; kNoValue when no
// batch norm reads it as one.
ValueId carried_on(const Graph& graph, ValueId value) {
  for (const Use& use : graph.value(value).uses) {
    const Node& reader = graph.node(use.node);
    const auto output = static_cast<std::size_t>(use.input) - 2;
    if (is_batch_norm(reader) && use.input >= 3 && output < reader.outputs.size()) {
      return reader.outputs[output];
    }
  }
  return kNoValue;
}

// Whether an output is what a state becomes, at once or through further batch norms.
bool updates_state(const Graph& graph, ValueId value) {
  for (; value != kNoValue; value = carried_on(graph, value)) {
    const auto is_value = [value](const Update& u) { return u.value == value; };
    if (std::ranges::any_of(graph.updates, is_value)) return true;
  }
  return false;
}

bool has_wanted_form(const Graph& graph, const Node& node, bool training) {
  bool is_training = node.attributes.integer("training_mode", 0) != 0;
  if (is_training != training) return false;
  if (!training) return node.outputs.size() == 1 && node.op->inference_form == node.op->name;
  bool keeps_state = graph.value(node.inputs[3]).kind != ValueKind::kState;
  return node.outputs.size() == 3 && (keeps_state || updates_state(graph, node.outputs[1]));
}

// What a running statistic is when a batch norm reads it: layers that share it (a module called
// twice) update it one after the other.
ValueId running_value(const Graph& graph, ValueId state) {
  const auto update = std::ranges::find(graph.updates, state, &Update::state);
  return update == graph.updates.end() ? state : update->value;
}

void update_state(Graph& graph, ValueId state, ValueId value) {
  if (graph.value(state).kind != ValueKind::kState) return;
  const auto update = std::ranges::find(graph.updates, state, &Update::state);
  if (update == graph.updates.end()) {
    graph.updates.push_back({state, value});
  } else {
    update->value = value;
  }
}

// Training: batch statistics, and the running ones are updated. Otherwise, or where training keeps
// them: the running ones.
void rewrite_batch_norm(Rewriter& rewriter, NodeId id, PassContext& context) {
  Graph& graph = rewriter.graph();
  const bool training = trains(context) && !context.options.running_statistics;
  const Node node = graph.node(id);
  if (has_wanted_form(graph, node, training)) return;
  Attributes attributes = node.attributes;
  attributes.set("training_mode", std::int64_t{training});
  Builder& b = rewriter.before(id);
  std::vector<ValueId> inputs = node.inputs;
  for (std::size_t i = 3; training && i <= 4; ++i) inputs[i] = running_value(graph, inputs[i]);
  std::vector<ValueId> made = b.multi(training ? node.op->name : node.op->inference_form,
                                      std::move(inputs), training ? 3 : 1, std::move(attributes));
  for (std::size_t i = 1; training && i <= 2; ++i) {
    update_state(graph, node.inputs[i + 2], made[i]);
  }
  for (std::size_t i = made.size(); i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    bool read = !graph.value(node.outputs[i]).uses.empty() || graph.is_output(node.outputs[i]);
    require(!read, ErrorCode::kBadInput, "BatchNormalization '{}': output {} does not exist in {}",
            printable(node.name), i, training ? "training" : "inference form");
    made.push_back(made.front());
  }
  made.resize(node.outputs.size());
  rewriter.replace_node(id, made);
  context.count("batch norms rewritten");
}

// ONNX's random ops are written with numbers drawn from a counter.
bool is_random_composite(const Node& node) {
  return node.op->determinism == Determinism::kRandom && node.op->decompose != nullptr;
}

bool draws_without_stream(const Node& node) {
  return node.op->determinism == Determinism::kRandom && node.op->domain == kTrainscopeDomain &&
         node.inputs.size() == 1 && !node.attributes.has("stream");
}

// Each use of random numbers gets a stream of its own, in training also the step.
void rewrite_draw(Rewriter& rewriter, NodeId id, PassContext& context) {
  const Node node = rewriter.graph().node(id);  // a copy: the graph's storage grows
  Attributes attributes = node.attributes;
  attributes.set("seed", static_cast<std::int64_t>(context.options.seed));
  attributes.set("stream", kFirstDrawStream + context.counters["random draws"]);
  const ValueId step = trains(context) ? random_step_input(rewriter) : node.inputs[0];
  rewriter.replace_node(id, {rewriter.before(id)(node.op->name, {step}, std::move(attributes))});
  context.count("random draws");
}

void rewrite_random_ops(Rewriter& rewriter, PassContext& context) {
  Graph& graph = rewriter.graph();
  for (NodeId id : graph.order()) {
    const Node node = graph.node(id);
    if (is_dropout(node) || !is_random_composite(node)) continue;
    rewriter.replace_node(id, node.op->decompose(rewriter.before(id), node));
  }
  for (NodeId id : graph.order()) {
    if (draws_without_stream(graph.node(id))) rewrite_draw(rewriter, id, context);
  }
}

bool take_training_form(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  rewrite_random_ops(rewriter, context);
  for (NodeId id : graph.order()) {
    if (is_dropout(graph.node(id))) {
      rewrite_dropout(rewriter, id, context);
    } else if (is_batch_norm(graph.node(id))) {
      rewrite_batch_norm(rewriter, id, context);
    }
  }
  return rewriter.changed();
}

}  // namespace

Pass training_form_pass() {
  return {
      .name = "training_form",
      .doc = "Give dropout, batch norm and random ops the form that training or inference needs.",
      .run = take_training_form};
}

}  // namespace trainscope
