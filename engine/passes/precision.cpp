// precision: mixed precision. Activations are stored in two bytes and matmuls computed with them;
// parameters, statistics and losses stay f32. Which op runs how is a field of its row.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/ir/rewriter.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/passes/pass.h"

namespace trainscope {

std::string_view name_of(StepPrecision precision) {
  switch (precision) {
    case StepPrecision::kF32:
      return "f32";
    case StepPrecision::kTf32:
      return "tf32";
    case StepPrecision::kBF16:
      return "bf16";
    case StepPrecision::kF16:
      return "fp16";
  }
  return "?";
}

namespace {

bool is_one_of(const std::vector<int>& list, std::size_t i) {
  return std::ranges::find(list, static_cast<int>(i)) != list.end();
}

// Goes through the forward graph once, in order: what comes before a node is settled.
class MixedPrecision {
 public:
  MixedPrecision(Rewriter& rewriter, PassContext& context, DType low)
      : rewriter_(rewriter), graph_(rewriter.graph()), context_(context), low_(low) {
    find_fixed();
  }

  void run() {
    for (NodeId id : graph_.order()) visit(id);
  }

 private:
  DType dtype(ValueId v) const { return graph_.value(v).type.dtype; }
  bool is_f32(ValueId v) const { return v != kNoValue && dtype(v) == DType::kF32; }
  bool is_low(ValueId v) const { return v != kNoValue && dtype(v) == low_; }
  bool is_fixed(ValueId v) const {
    return static_cast<std::size_t>(v) < fixed_.size() && fixed_[static_cast<std::size_t>(v)];
  }

  // Parameters, constants and what is made of nothing else: they take the type that is asked for.
  void find_fixed() {
    fixed_.assign(graph_.value_capacity(), false);
    for (ValueKind kind : {ValueKind::kParameter, ValueKind::kConstant}) {
      for (ValueId v : graph_.values_of(kind)) fixed_[static_cast<std::size_t>(v)] = true;
    }
    for (NodeId id : graph_.order()) {
      const Node& node = graph_.node(id);
      const bool all = std::ranges::all_of(
          node.inputs, [this](ValueId v) { return v == kNoValue || is_fixed(v); });
      for (ValueId v : node.outputs) {
        if (v != kNoValue) fixed_[static_cast<std::size_t>(v)] = all;
      }
    }
  }

  bool is_known(const Node& node) const {
    return std::ranges::any_of(node.outputs, [this](ValueId v) {
      return v != kNoValue && graph_.value(v).data != nullptr;
    });
  }

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (is_known(node)) return;  // a constant in all but name
    if (runs_low(node)) {
      if (downcast(id)) context_.count(fmt::format("nodes in {}", name_of(low_)));
      return;
    }
    upcast(id);
    if (node.op->precision == Precision::kRounded) round_results(id);
  }

  bool runs_low(const Node& node) {
    switch (node.op->precision) {
      case Precision::kLow:
        return true;
      case Precision::kFollow:
      case Precision::kRounded:
        return can_follow(node);
      case Precision::kF32:
        return false;
    }
    return false;
  }

  // Whether the node would give a single number in the low type: losses and factors stay f32.
  bool rounds_a_number(const Node& node) const {
    const NodeArgs args(graph_, node);
    std::vector<TensorType> inputs(args->inputs.begin(), args->inputs.end());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (is_f32(node.inputs[i]) && !is_one_of(node.op->f32_inputs, i)) inputs[i].dtype = low_;
    }
    OpArgs lowered = *args;
    lowered.inputs = inputs;
    lowered.outputs = {};
    const TensorType result = node.op->shape(lowered)[0];
    return result.dtype == low_ && result.elements() <= 1;
  }

  // Whether a node's inputs are in the low type already or take it on.
  bool can_follow(const Node& node) {
    bool any_low = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      any_low = any_low || is_low(node.inputs[i]);
    }
    if (!any_low || rounds_a_number(node)) return false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (!is_f32(v) || is_one_of(node.op->f32_inputs, i)) continue;
      if (is_fixed(v) && fits(v)) continue;
      context_.near_miss(node, fmt::format("stays f32: its input '{}' is {}", graph_.value(v).name,
                                           is_fixed(v) ? "too large" : "f32"));
      return false;
    }
    return true;
  }

  // Whether no known element becomes infinite: masks hold the largest numbers of f32.
  bool fits(ValueId v) const {
    const Value& value = graph_.value(v);
    if (!value.data || value.kind == ValueKind::kParameter) return true;
    const Tensor rounded = convert(convert(*value.data, low_), DType::kF32);
    const std::span<const float> exact = value.data->values<float>();
    const std::span<const float> stored = rounded.values<float>();
    for (std::size_t i = 0; i < exact.size(); ++i) {
      if (std::isfinite(exact[i]) && std::isinf(stored[i])) return false;
    }
    return true;
  }

  // Every cast of a parameter is a node of its own, so that its gradients are added up in f32;
  // common_subexpression leaves one of them. Other values have one cast a type.
  ValueId cast(NodeId before, ValueId v, DType to) {
    const std::pair<ValueId, DType> key{v, to};
    const auto known = casts_.find(key);
    if (known != casts_.end()) return known->second;
    Builder& b = rewriter_.before(before);
    b.set_prefix(fmt::format("{}/", name_of(to)));
    const ValueId result = cast_to(b, v, to);
    if (!is_fixed(v)) casts_.emplace(key, result);
    context_.count("casts");
    return result;
  }

  // Inputs of type `from` become `to`; those on the row's list keep theirs, or become f32 again.
  bool cast_inputs(NodeId id, DType from, DType to) {
    bool any = false;
    const std::vector<ValueId> inputs = graph_.node(id).inputs;  // a copy: the graph grows
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i] == kNoValue || dtype(inputs[i]) != from) continue;
      if (to == low_ && is_one_of(graph_.node(id).op->f32_inputs, i)) continue;
      rewriter_.set_input(id, static_cast<int>(i), cast(id, inputs[i], to));
      any = true;
    }
    return any;
  }

  bool downcast(NodeId id) {
    cast_inputs(id, DType::kF32, low_);
    for (int i : graph_.node(id).op->f32_inputs) {
      const auto at = static_cast<std::size_t>(i);
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      if (at >= inputs.size() || !is_low(inputs[at])) continue;
      rewriter_.set_input(id, i, cast(id, inputs[at], DType::kF32));
    }
    return retype(id);
  }

  void upcast(NodeId id) {
    if (!cast_inputs(id, low_, DType::kF32)) return;
    const Node& node = graph_.node(id);
    context_.count("nodes in f32 between casts");
    if (node.op->precision != Precision::kF32) return;
    context_.near_miss(
        node, fmt::format("stays f32: {} has no form in {}", node.op->name, name_of(low_)));
  }

  // The outputs' types as the op's rule now has them.
  bool retype(NodeId id) {
    const NodeArgs args(graph_, graph_.node(id));
    OpArgs without_outputs = *args;
    without_outputs.outputs = {};
    const std::vector<TensorType> types = graph_.node(id).op->shape(without_outputs);
    bool any = false;
    const std::vector<ValueId> outputs = graph_.node(id).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kNoValue || graph_.value(outputs[i]).type == types[i]) continue;
      graph_.value(outputs[i]).type = types[i];
      any = true;
      if (keeps_type(outputs[i])) restore_output(id, outputs[i]);
    }
    return any;
  }

  // What the caller reads stays f32, unless it asks for the gradient: that of the value itself.
  bool keeps_type(ValueId v) const {
    const std::vector<std::string>& named = context_.options.gradient_of;
    return graph_.is_output(v) && std::ranges::find(named, graph_.value(v).name) == named.end();
  }

  // Under the output's name the reader finds an f32 copy.
  void restore_output(NodeId producer, ValueId output) {
    const NodeId next = graph_.node(producer).next;
    Builder& b =
        next == kNoNode ? rewriter_.at_end(graph_.node(producer).phase) : rewriter_.before(next);
    b.set_provenance(
        {.sources = graph_.node(producer).provenance.sources, .pass = std::string(context_.pass)});
    b.set_prefix("f32/");
    const ValueId copy = cast_to(b, output, DType::kF32);
    casts_.emplace(std::pair{output, DType::kF32}, copy);
    graph_.replace_output(output, copy);
    std::string name = graph_.value(output).name;
    graph_.rename(output, graph_.unique_name(fmt::format("{}/{}", name, name_of(low_))));
    graph_.rename(copy, std::move(name));
    context_.count("casts");
  }

  // Readers of the node's f32 results get them in the low type.
  void round_results(NodeId id) {
    const Node node = graph_.node(id);  // a copy: the graph grows
    for (ValueId output : node.outputs) {
      if (!is_f32(output) || is_fixed(output) || !is_fixed(node.inputs[0])) continue;
      const std::vector<Use> uses = graph_.value(output).uses;
      if (uses.empty()) continue;
      const ValueId rounded = cast(node.next, output, low_);
      for (const Use& use : uses) rewriter_.set_input(use.node, use.input, rounded);
    }
  }

  Rewriter& rewriter_;
  Graph& graph_;
  PassContext& context_;
  DType low_;
  std::vector<bool> fixed_;  // by value
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
};

bool has_low_values(const Graph& graph, DType low) {
  return std::ranges::any_of(graph.live_values(),
                             [&](ValueId v) { return graph.value(v).type.dtype == low; });
}

bool run_precision(Graph& graph, PassContext& context) {
  const StepPrecision wanted = context.options.precision;
  if (wanted == StepPrecision::kF32 || wanted == StepPrecision::kTf32) return false;
  const DType low = wanted == StepPrecision::kBF16 ? DType::kBF16 : DType::kF16;
  if (context.has_gradients(graph) || has_low_values(graph, low)) return false;
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  MixedPrecision(rewriter, context, low).run();
  return rewriter.changed();
}

}  // namespace

Pass precision_pass() {
  return {.name = "precision",
          .doc = "Store activations and compute matmuls in bf16 or f16, by the ops' rows.",
          .run = run_precision,
          .in_bodies = true};
}

}  // namespace trainscope
