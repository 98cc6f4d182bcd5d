// sparse_rows: the gradient of an embedding is the rows that a batch names, and its update changes
// these alone.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/passes/pass.h"
#include "kernels/api/params.h"

namespace trainscope {
namespace {

// A node that updates parameters: its inputs and outputs lie in groups of as many.
struct Step {
  NodeId id = kNoNode;
  Node node;  // a copy: the graph grows
  OptimizerParams params;

  std::size_t parameters() const { return params.weight_decay.size(); }
  std::size_t kept_groups() const { return node.outputs.size() / parameters(); }
  ValueId parameter(std::size_t i) const { return node.inputs[i]; }
  ValueId gradient(std::size_t i) const { return node.inputs[parameters() + i]; }
  ValueId state(std::size_t group, std::size_t i) const {
    return node.inputs[(1 + group) * parameters() + i];
  }
  ValueId next(std::size_t group, std::size_t i) const {
    return node.outputs[group * parameters() + i];
  }
  auto scalars() const {
    return node.inputs.begin() + static_cast<std::ptrdiff_t>((1 + kept_groups()) * parameters());
  }
  // Whether rows without a gradient stay as they are: without moments and decay.
  bool changes_named_rows_alone(std::size_t i) const {
    return kept_groups() == 1 && params.weight_decay[i] == 0.0;
  }
};

// What adds rows up to a gradient, the one that does so last first, and what it is added to.
struct RowSum {
  std::vector<NodeId> scatters;
  ValueId rest = kNoValue;
};

RowSum row_sum(const Graph& graph, ValueId gradient) {
  RowSum sum{.scatters = {}, .rest = gradient};
  while (sum.rest != kNoValue) {
    const NodeId producer = graph.value(sum.rest).producer;
    if (producer == kNoNode || graph.node(producer).op->scatters.empty()) break;
    sum.scatters.push_back(producer);
    const std::vector<ValueId>& inputs = graph.node(producer).inputs;
    sum.rest = inputs.size() > 2 ? inputs[2] : kNoValue;
  }
  return sum;
}

std::int64_t ids_of(const Graph& graph, const RowSum& sum) {
  std::int64_t ids = 0;
  for (NodeId id : sum.scatters) ids += graph.value(graph.node(id).inputs[1]).type.elements();
  return ids;
}

// Who else reads the gradient, or a partial of it; empty: nobody.
std::string other_reader(const Graph& graph, const RowSum& sum) {
  for (NodeId id : sum.scatters) {
    const ValueId v = graph.node(id).outputs[0];
    if (graph.is_output(v)) return fmt::format("'{}' is asked for", printable(graph.value(v).name));
    int readers = 0;
    for (const Use& use : graph.value(v).uses) {
      readers += graph.node(use.node).op->sums_squares ? 0 : 1;
    }
    if (readers > 1) {
      return fmt::format("'{}' has {} readers", printable(graph.value(v).name), readers);
    }
  }
  return {};
}

std::string other_lookup(const Graph& graph, const RowSum& sum) {
  const DType first = graph.value(graph.node(sum.scatters[0]).inputs[1]).type.dtype;
  for (NodeId id : sum.scatters) {
    const Node& node = graph.node(id);
    const auto axis = std::get<AxisParams>(node.op->params(*NodeArgs(graph, node))).axis;
    if (axis != 0) return fmt::format("it is looked up along axis {}", axis);
    if (graph.value(node.inputs[1]).type.dtype != first) return "its ids have several types";
  }
  return {};
}

// The gradient behind a sum over micro-batches, to say why it stays.
ValueId accumulated(const Graph& graph, ValueId gradient) {
  const NodeId producer = graph.value(gradient).producer;
  const bool is_sum = producer != kNoNode && graph.node(producer).op->accumulates;
  return is_sum ? graph.node(producer).inputs[1] : kNoValue;
}

class Sparsifier {
 public:
  Sparsifier(Rewriter& rewriter, PassContext& context)
      : rewriter_(rewriter), graph_(rewriter.graph()), context_(context) {}

  void visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op->rows_form.empty() && !node.op->scales_by_norm) return;
    const Step step{.id = id,
                    .node = node,
                    .params = std::get<OptimizerParams>(node.op->params(*NodeArgs(graph_, node)))};
    std::vector<std::size_t> dense;
    for (std::size_t i = 0; i < step.parameters(); ++i) {
      const RowSum sum = row_sum(graph_, step.gradient(i));
      if (is_sparse(step, i, sum)) {
        make_sparse(step, i, sum);
        context_.count("embeddings");
      } else {
        dense.push_back(i);
      }
    }
    if (dense.size() < step.parameters()) finish(step, dense);
  }

 private:
  // Empty: parameter i of the step may have a sparse gradient.
  std::string why_not(const Step& step, std::size_t i, const RowSum& sum) const {
    if (sum.rest != kNoValue) {
      return fmt::format("its rows are added to '{}', the gradient of all rows",
                         printable(graph_.value(sum.rest).name));
    }
    if (step.node.op->scales_by_norm) {
      return fmt::format("{} changes all rows by the norm of their update", step.node.op->name);
    }
    std::string why = other_reader(graph_, sum);
    if (why.empty()) why = other_lookup(graph_, sum);
    if (!why.empty() || context_.options.optimizer.sparse_embeddings) return why;
    if (!step.changes_named_rows_alone(i)) {
      return fmt::format(
          "{} changes rows that no id names, by {}; with --sparse-embeddings they stay",
          step.node.op->name, step.kept_groups() > 2 ? "moments and decay" : "momentum or decay");
    }
    const std::int64_t rows = graph_.value(step.parameter(i)).type.shape[0];
    const std::int64_t ids = ids_of(graph_, sum);
    return ids < rows ? "" : fmt::format("{} ids are no fewer than {} rows", ids, rows);
  }

  bool is_sparse(const Step& step, std::size_t i, const RowSum& sum) {
    if (sum.scatters.empty()) {
      const ValueId gradient = accumulated(graph_, step.gradient(i));
      const RowSum one = gradient == kNoValue ? RowSum{} : row_sum(graph_, gradient);
      if (!one.scatters.empty()) {
        std::vector<NodeId> matched = one.scatters;
        matched.push_back(graph_.value(step.gradient(i)).producer);
        context_.near_miss(graph_, matched[0], matched, "its rows are summed over micro-batches");
      }
      return false;
    }
    std::string why = why_not(step, i, sum);
    if (why.empty()) return true;
    // The step is that of other parameters too.
    context_.near_miss(graph_, sum.scatters[0], sum.scatters, std::move(why));
    return false;
  }

  void make_sparse(const Step& step, std::size_t i, const RowSum& sum) {
    const std::vector<ValueId> rows = add_sums(sum, step.gradient(i));
    for (const Use& use : std::vector<Use>(graph_.value(step.gradient(i)).uses)) {
      if (use.node != step.id) rewriter_.set_input(use.node, use.input, rows[0]);
    }
    std::vector<ValueId> inputs = {step.parameter(i), rows[0]};
    for (std::size_t g = 1; g < step.kept_groups(); ++g) inputs.push_back(step.state(g, i));
    inputs.insert(inputs.end(), {rows[1], rows[2]});
    add_update(step, {i}, step.node.op->rows_form, std::move(inputs));
    for (NodeId scatter : sum.scatters) scatters_.emplace_back(scatter, rows[0]);
  }

  // Of several lookups the rows lie one after the other, in the order in which they were added up.
  std::vector<ValueId> add_sums(const RowSum& sum, ValueId gradient) {
    const Shape shape = graph_.value(gradient).type.shape;
    const std::string name = graph_.value(gradient).name + "/rows";
    Builder& b = rewriter_.before(sum.scatters.front());
    b.set_prefix("grad/");
    std::vector<ValueId> rows;
    std::vector<ValueId> ids;
    for (auto id = sum.scatters.rbegin(); id != sum.scatters.rend(); ++id) {
      const std::vector<ValueId> inputs = graph_.node(*id).inputs;
      Shape flat = shape;
      flat[0] = b.type(inputs[1]).elements();
      const bool alone = sum.scatters.size() == 1;
      rows.push_back(alone ? inputs[0] : b.reshape(inputs[0], flat));
      ids.push_back(alone ? inputs[1] : b.reshape(inputs[1], {flat[0]}));
    }
    const ValueId size = b.constant(Tensor::scalar<std::int64_t>(shape[0]), "size");
    const auto joined = [&b](std::vector<ValueId>& pieces) {
      return pieces.size() == 1 ? pieces[0] : b("Concat", pieces, {{"axis", std::int64_t{0}}});
    };
    const std::vector<ValueId> made = b.multi("SumRowsById", {joined(rows), joined(ids), size}, 3);
    graph_.rename(made[0], graph_.unique_name(name));
    return made;
  }

  // A step of these parameters in the place of the one of all.
  void add_update(const Step& step, const std::vector<std::size_t>& parameters, std::string_view op,
                  std::vector<ValueId> inputs) {
    inputs.insert(inputs.end(), step.scalars(), step.node.inputs.end());
    Attributes attributes = step.node.attributes;
    for (const char* name : {"weight_decay", "learning_rate_scale"}) {
      if (!attributes.has(name)) continue;
      Floats own;
      for (std::size_t i : parameters) own.push_back(attributes.numbers(name)[i]);
      attributes.set(name, own);
    }
    Builder& b = rewriter_.before(step.id);
    b.set_prefix("update/");
    const std::size_t outputs = step.kept_groups() * parameters.size();
    const std::vector<ValueId> made =
        b.multi(op, std::move(inputs), static_cast<int>(outputs), std::move(attributes));
    for (std::size_t n = 0; n < outputs; ++n) {
      rewriter_.replace(step.next(n / parameters.size(), parameters[n % parameters.size()]),
                        made[n]);
    }
  }

  void finish(const Step& step, const std::vector<std::size_t>& dense) {
    if (!dense.empty()) {
      std::vector<ValueId> inputs;
      for (std::size_t group = 0; group <= step.kept_groups(); ++group) {
        for (std::size_t i : dense)
          inputs.push_back(step.node.inputs[group * step.parameters() + i]);
      }
      add_update(step, dense, step.node.op->name, std::move(inputs));
    }
    rewriter_.erase(step.id);
    for (const auto& [scatter, rows] : scatters_) rewriter_.erase_into(scatter, rows);
    scatters_.clear();
  }

  Rewriter& rewriter_;
  Graph& graph_;
  PassContext& context_;
  // That nobody reads when the step is gone, and the rows that stand for them.
  std::vector<std::pair<NodeId, ValueId>> scatters_;
};

bool make_rows_sparse(Graph& graph, PassContext& context) {
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  Sparsifier sparsifier(rewriter, context);
  for (NodeId id : graph.order()) sparsifier.visit(id);
  return rewriter.changed();
}

}  // namespace

Pass sparse_rows_pass() {
  return {.name = "sparse_rows",
          .doc = "Keep of an embedding's gradient the rows that a batch names, and update these.",
          .run = make_rows_sparse};
}

}  // namespace trainscope
