// Rewrites a training step into what one of several data-parallel devices keeps and runs.
#include "engine/world/zero.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/ir/rewriter.h"
#include "engine/world/collective_ops.h"

namespace trainscope {
namespace {

constexpr std::string_view kPass = "zero";

class ZeroSharding {
 public:
  ZeroSharding(Graph& graph, const OpTable& ops, std::int64_t devices)
      : graph_(graph), rewriter_(graph, ops, kPass, nullptr), devices_(devices) {}

  void run(int stage) {
    const std::vector<OptimizerNode> steps = optimizer_nodes(graph_);
    std::vector<Work> work;
    for (const OptimizerNode& step : steps) work.push_back(shard_work(step));
    if (stage >= 3) gather_parameters(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (ValueId state : steps[i].states) shrink(state);
      if (stage >= 2) {
        for (ValueId gradient : steps[i].gradients) scatter(gradient);
      }
      replace_step(steps[i], work[i]);
    }
  }

 private:
  TensorType shard_type(ValueId v) const {
    const TensorType& type = graph_.value(v).type;
    return {.dtype = type.dtype, .shape = {shard_elements(type.elements(), devices_)}};
  }

  // A parameter or state keeps one shard; what nobody reads any more is left as it is.
  void shrink(ValueId v) {
    Value& value = graph_.value(v);
    value.type = shard_type(v);
    value.data = nullptr;
  }

  ValueId add(Builder& b, const OpDef& op, ValueId input, Attributes attributes) {
    const std::string name =
        graph_.unique_name(std::string(op.name) + "/" + graph_.value(input).name);
    return graph_
        .node(b.add({.op = &op,
                     .name = name,
                     .inputs = {input},
                     .output_names = {name},
                     .attributes = std::move(attributes),
                     .provenance = {.sources = {}, .pass = std::string(kPass)}}))
        .outputs[0];
  }

  // The gradient's readers get the shard of the sum instead. Two parameters may have one gradient.
  void scatter(ValueId gradient) {
    const ValueId raw = raw_gradient(graph_, gradient);
    if (!scattered_.contains(raw)) reduce(raw);
    if (raw == gradient) return;
    const NodeId accumulation = graph_.value(gradient).producer;
    const ValueId sum = graph_.node(accumulation).inputs[0];
    shrink(sum);
    graph_.value(gradient).type = graph_.value(sum).type;
  }

  void reduce(ValueId raw) {
    scattered_.insert(raw);
    const NodeId producer = graph_.value(raw).producer;
    if (producer == kNoNode) return;  // known before the step: nothing to reduce
    const std::vector<Use> uses = graph_.value(raw).uses;
    const NodeId next = graph_.node(producer).next;
    const Phase phase = graph_.node(producer).phase;
    Builder& b = next == kNoNode ? rewriter_.at_end(phase) : rewriter_.before(next);
    b.set_phase(phase);
    const ValueId shard = add(b, reduce_scatter_op(), raw, {{"devices", devices_}});
    for (const Use& use : uses) rewriter_.set_input(use.node, use.input, shard);
    scattered_.insert(shard);
  }

  // --- Parameters in shards ----------------------------------------------------------------------
  // A node that reads a parameter, perhaps through views of it.
  struct Read {
    std::size_t position = 0;  // of the reader
    NodeId reader = kNoNode;
    ValueId parameter = kNoValue;
    struct Place {
      int input = 0;
      std::vector<NodeId> views;  // from the parameter to the input
    };
    std::vector<Place> places;
  };

  void gather_parameters(const std::vector<OptimizerNode>& steps) {
    std::unordered_set<NodeId> optimizer;
    for (const OptimizerNode& step : steps) optimizer.insert(step.node);
    order_ = graph_.order();
    for (std::size_t i = 0; i < order_.size(); ++i) position_[order_[i]] = i;
    std::vector<Read> reads;
    std::unordered_set<NodeId> views;
    std::unordered_map<ValueId, Shape> whole;
    for (const OptimizerNode& step : steps) {
      for (ValueId parameter : step.parameters) {
        find_reads(parameter, optimizer, views, reads);
        whole.emplace(parameter, graph_.value(parameter).type.shape);
      }
    }
    std::ranges::stable_sort(reads, {}, &Read::position);
    for (const auto& [parameter, shape] : whole) shrink(parameter);
    gather_ahead(reads, whole);
    erase_unread(views);
  }

  // Each as early as what waits to be read then allows.
  void gather_ahead(const std::vector<Read>& reads,
                    const std::unordered_map<ValueId, Shape>& whole) {
    const auto elements = [&](const Read& read) { return whole.at(read.parameter).elements(); };
    const auto phase = [this](const Read& read) { return graph_.node(read.reader).phase; };
    const std::int64_t most = most_waiting(reads, whole);
    std::size_t first = 0;  // of those that may be gathered this early
    std::int64_t waiting = 0;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      waiting += elements(reads[i]);
      while (first < i && (waiting > most || phase(reads[first]) != phase(reads[i]))) {
        waiting -= elements(reads[first++]);
      }
      gather(reads[i], whole.at(reads[i].parameter), reads[first].reader);
    }
  }

  // Elements; of parameters that nobody reads none are gathered.
  static std::int64_t most_waiting(const std::vector<Read>& reads,
                                   const std::unordered_map<ValueId, Shape>& whole) {
    std::unordered_set<ValueId> read;
    std::int64_t elements = 0;
    for (const Read& each : reads) {
      if (read.insert(each.parameter).second) elements += whole.at(each.parameter).elements();
    }
    return std::min(kPrefetchElements, elements / kPrefetchDivisor);
  }

  void erase_unread(const std::unordered_set<NodeId>& views) {
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) {
      if (views.contains(*id) && graph_.value(graph_.node(*id).outputs[0]).uses.empty()) {
        rewriter_.erase(*id);
      }
    }
  }

  void find_reads(ValueId parameter, const std::unordered_set<NodeId>& optimizer,
                  std::unordered_set<NodeId>& views, std::vector<Read>& reads) {
    std::unordered_map<NodeId, std::size_t> read_of;
    std::vector<std::pair<ValueId, std::vector<NodeId>>> open = {{parameter, {}}};
    while (!open.empty()) {
      const auto [value, path] = std::move(open.back());
      open.pop_back();
      for (const Use& use : graph_.value(value).uses) {
        const Node& node = graph_.node(use.node);
        if (optimizer.contains(use.node)) continue;
        if (node.op->is_view && use.input == 0 && !graph_.is_output(node.outputs[0])) {
          views.insert(use.node);
          open.emplace_back(node.outputs[0], path);
          open.back().second.push_back(use.node);
          continue;
        }
        const auto [at, fresh] = read_of.emplace(use.node, reads.size());
        if (fresh) {
          reads.push_back({.position = position_.at(use.node),
                           .reader = use.node,
                           .parameter = parameter,
                           .places = {}});
        }
        reads[at->second].places.push_back({.input = use.input, .views = path});
      }
    }
  }

  // Gathers before `early`, drops after the reader: nothing else reads the copy.
  void gather(const Read& read, const Shape& shape, NodeId early) {
    const ValueId whole =
        add(rewriter_.before(early), all_gather_op(), read.parameter,
            {{"shape", Ints(shape.span().begin(), shape.span().end())}, {"devices", devices_}});
    Builder& b = rewriter_.before(read.reader);
    for (const Read::Place& place : read.places) {
      ValueId value = whole;
      for (NodeId view : place.views) {
        const Node& node = graph_.node(view);
        std::vector<ValueId> inputs = node.inputs;
        inputs[0] = value;
        value = graph_
                    .node(b.add({.op = node.op,
                                 .name = graph_.unique_name(node.name),
                                 .inputs = std::move(inputs),
                                 .output_names = {graph_.value(node.outputs[0]).name},
                                 .attributes = node.attributes,
                                 .provenance = node.provenance}))
                    .outputs[0];
      }
      rewriter_.set_input(read.reader, place.input, value);
    }
  }

  // --- The optimizer's node ----------------------------------------------------------------------
  struct Work {
    std::int64_t flops = 0;
    std::int64_t bytes = 0;  // of the parameters' shards
  };
  Work shard_work(const OptimizerNode& step) const {
    const Node& node = graph_.node(step.node);
    Work work{.flops = shard_elements(cost_of(*node.op, *NodeArgs(graph_, node)).flops, devices_)};
    for (ValueId parameter : step.parameters) {
      add_saturating(work.bytes, static_cast<std::int64_t>(shard_type(parameter).bytes()));
    }
    return work;
  }

  void replace_step(const OptimizerNode& step, const Work& work) {
    const Node node = graph_.node(step.node);
    const auto parameters = static_cast<std::int64_t>(step.parameters.size());
    const std::int64_t states = static_cast<std::int64_t>(step.states.size()) / parameters;
    Builder::Spec spec{
        .op = &sharded_step_op(),
        .name = graph_.unique_name("sharded/" + node.name),
        .inputs = node.inputs,
        .output_names = {},
        .attributes = {{"parameters", parameters},
                       {"states", states},
                       {"flops", work.flops},
                       {"shard_bytes", work.bytes}},
        .provenance = {.sources = node.provenance.sources, .pass = std::string(kPass)}};
    for (ValueId output : node.outputs) {
      spec.output_names.push_back("sharded/" + graph_.value(output).name);
    }
    const NodeId made = rewriter_.before(step.node).add(std::move(spec));
    rewriter_.replace_node(step.node, graph_.node(made).outputs);
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::int64_t devices_;
  std::unordered_set<ValueId> scattered_;  // gradients and their shards
  std::vector<NodeId> order_;
  std::unordered_map<NodeId, std::size_t> position_;
};

}  // namespace

std::vector<OptimizerNode> optimizer_nodes(const Graph& graph) {
  std::unordered_map<ValueId, ValueId> state_of;  // by new value
  for (const Update& update : graph.updates) state_of.emplace(update.value, update.state);
  std::vector<OptimizerNode> found;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    std::size_t count = 0;
    for (ValueId output : node.outputs) {
      const auto state = state_of.find(output);
      if (state == state_of.end()) continue;
      if (graph.value(state->second).kind == ValueKind::kParameter) ++count;
    }
    if (count == 0) continue;
    const std::size_t groups = node.outputs.size() / count;
    CHECK_INVARIANT(node.inputs.size() >= (groups + 1) * count);
    const auto begin = node.inputs.begin();
    const auto at = [&](std::size_t group) {
      return begin + static_cast<std::ptrdiff_t>(group * count);
    };
    found.push_back({.node = id,
                     .parameters = {at(0), at(1)},
                     .gradients = {at(1), at(2)},
                     .states = {at(2), at(groups + 1)}});
  }
  return found;
}

ValueId raw_gradient(const Graph& graph, ValueId gradient) {
  const NodeId producer = graph.value(gradient).producer;
  if (producer == kNoNode || !graph.node(producer).op->accumulates) return gradient;
  return graph.node(producer).inputs[1];
}

void apply_zero(Graph& graph, const OpTable& ops, int stage, std::int64_t devices) {
  CHECK_INVARIANT(stage >= 0 && stage <= 3 && devices >= 1);
  if (stage > 0 && devices > 1) ZeroSharding(graph, ops, devices).run(stage);
}

}  // namespace trainscope
