// Graphs changed by the rewriter, run node by node into a trace, and replayed.
#include "tests/engine/bisect/planting.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "engine/core/system/scratch_folder.h"
#include "engine/ir/op_def.h"
#include "tests/support/graph_text.h"

namespace trainscope::test {
namespace {

CompileOptions options_of(const ReferenceModel& reference, OptimizerKind optimizer,
                          StepPrecision precision, int threads, KernelChoice kernels) {
  CompileOptions options =
      reference.options(GraphMode::kTrain, {.threads = threads, .kernels = kernels});
  options.training.optimizer.kind = optimizer;
  if (optimizer == OptimizerKind::kSgd) options.training.optimizer.momentum = 0.9;
  options.training.precision = precision;
  return options;
}

NamedTensors named(const Batch& batch) {
  NamedTensors result;
  for (const auto& [name, tensor] : batch.tensors) result.emplace(name, tensor);
  return result;
}

}  // namespace

Subject::Subject(const OnnxModel& model, CompileOptions of_training,
                 std::vector<NamedTensors> of_steps)
    : options(std::move(of_training)),
      defined(model, options),
      plain(model, options, UnfusedEnd::kUpdate),
      batches(std::move(of_steps)) {}

Subject::Subject(std::string_view model, OptimizerKind optimizer, StepPrecision precision,
                 int threads, KernelChoice kernels)
    : Subject(ReferenceModel(model), optimizer, precision, threads, kernels) {}

Subject::Subject(const ReferenceModel& reference, OptimizerKind optimizer, StepPrecision precision,
                 int threads, KernelChoice kernels)
    : Subject(reference.model, options_of(reference, optimizer, precision, threads, kernels),
              {named(reference.batches[0]), named(reference.batches[1])}) {}

Planter::Planter(const Subject& subject)
    : graph_(subject.plain.graph()), rewriter_(graph_, op_table(), "planted", nullptr) {}

NodeId Planter::node(std::string_view op, int nth, Phase phase) const {
  for (const NodeId id : graph_.order()) {
    const Node& found = graph_.node(id);
    if (found.op->name == op && found.phase == phase && nth-- == 0) return id;
  }
  FAIL("no node of op " << op);
  return kNoNode;
}

NodeId Planter::gradient_node(NodeId forward, std::string_view op) const {
  const Serial serial = graph_.node(forward).serial;
  for (const NodeId id : graph_.order()) {
    const Node& found = graph_.node(id);
    if (found.provenance.backward_of == serial && found.op->name == op) return id;
  }
  FAIL("no gradient node of op " << op);
  return kNoNode;
}

NodeId Planter::gradient_sum(int nth) const {
  for (const NodeId id : graph_.order()) {
    const Node& found = graph_.node(id);
    if (found.op->name != "Add" || found.phase != Phase::kBackward) continue;
    if (graph_.value(found.outputs[0]).gradient_of.empty()) continue;
    if (nth-- == 0) return id;
  }
  FAIL("no sum of gradients");
  return kNoNode;
}

ValueId Planter::gradient_of(std::string_view parameter) const {
  for (const GradientOf& gradient : graph_.gradients) {
    if (graph_.value(gradient.of).name == parameter) return gradient.gradient;
  }
  FAIL("no gradient of " << parameter);
  return kNoValue;
}

void Planter::set(NodeId node, std::string attribute, Attribute value) {
  graph_.node(node).attributes.set(std::move(attribute), std::move(value));
}

void Planter::set_op(NodeId node, std::string_view op) {
  graph_.node(node).op = &op_table().get(op);
}

void Planter::swap_inputs(NodeId node, int a, int b) {
  const ValueId first = graph_.node(node).inputs[static_cast<std::size_t>(a)];
  const ValueId second = graph_.node(node).inputs[static_cast<std::size_t>(b)];
  rewriter_.set_input(node, a, second);
  rewriter_.set_input(node, b, first);
}

// A graph output takes its name along by itself.
void Planter::take_name(ValueId from, ValueId to) {
  const std::string name = graph_.value(from).name;
  if (graph_.is_output(from)) return;
  graph_.rename(from, graph_.unique_name("before/" + name));
  graph_.rename(to, name);
}

void Planter::remake(NodeId id, const Make& make) {
  const Node old = graph_.node(id);
  const ValueId made = make(rewriter_.before(id), old.inputs);
  take_name(old.outputs[0], made);
  rewriter_.replace(old.outputs[0], made);
}

void Planter::transform(ValueId value, const Change& change) {
  const NodeId producer = graph_.value(value).producer;
  const auto output = static_cast<std::size_t>(graph_.value(value).producer_output);
  const Node old = graph_.node(producer);
  Builder& b = rewriter_.before(producer);
  const std::vector<ValueId> again =
      b.multi(old.op->name, old.inputs, static_cast<int>(old.outputs.size()), old.attributes);
  const ValueId made = change(b, again[output]);
  take_name(value, made);
  rewriter_.replace(value, made);
}

void Planter::change_input(NodeId id, int input, const Change& change) {
  const ValueId old = graph_.node(id).inputs[static_cast<std::size_t>(input)];
  rewriter_.set_input(id, input, change(rewriter_.before(id), old));
}

void Planter::forget_update(std::string_view state) {
  for (Update& update : graph_.updates) {
    if (graph_.value(update.state).name == state) update.value = update.state;
  }
}

ValueId times(Builder& b, ValueId value, double factor) {
  return b("Mul", {value, b.scalar(factor, b.type(value).dtype)});
}

void record(const Subject& subject, const Graph& graph, const ReplayOf& of, const Folder& folder) {
  std::vector<NamedTensors> batches;
  for (std::int64_t step = 0; step < of.steps; ++step) {
    batches.push_back(subject.batches[static_cast<std::size_t>(step) % subject.batches.size()]);
  }
  record_steps({.step = subject.plain,
                .graph = graph,
                .evaluate = subject.plain.evaluate(),
                .schedule = subject.schedule,
                .with_elements = of.with_elements,
                .from = of.from,
                .kept = of.kept},
               batches, {.producer = "test", .version = "1", .mode = "all"}, folder);
}

RunReplay replayed(const Subject& subject, const Graph& graph, const ReplayOf& of) {
  const ScratchFolder scratch;
  record(subject, graph, of, Folder::open(scratch.path()));
  const profiler::IndexedTrace trace(profiler::Trace::open(scratch.path()));
  std::vector<std::int64_t> steps;
  for (std::int64_t step = 1; step <= of.steps; ++step) steps.push_back(step);
  const auto start = [&](std::int64_t step) -> std::optional<StepStart> {
    const std::size_t at = static_cast<std::size_t>(step - 1) % subject.batches.size();
    return StepStart{.batches = {subject.batches[at]}, .kept = {}};
  };
  return replay_run({.step = subject.defined,
                     .trace = trace,
                     .limit_of = [](std::size_t) { return 1.6e-5; },
                     .schedule = subject.schedule,
                     .start = start,
                     .steps = steps,
                     .rounding = of.rounding});
}

}  // namespace trainscope::test
