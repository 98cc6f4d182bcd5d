// First what each value's shard is, then the graph with these shards.
#include "engine/world/tensor_split.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/ops/rules/split_rules.h"
#include "engine/world/collective_ops.h"
#include "engine/world/zero.h"

namespace trainscope {
namespace {

// One pass over the step finds shards, or weights that must stay whole; then it starts again.
class ShardFinder {
 public:
  ShardFinder(const Graph& graph, std::int64_t devices)
      : graph_(graph),
        devices_(devices),
        order_(graph.order()),
        optimizers_(optimizer_nodes(graph)) {
    for (std::size_t i = 0; i < optimizers_.size(); ++i) {
      optimizer_at_.emplace(optimizers_[i].node, i);
    }
  }

  void run() {
    for (bool again = true; again;) {
      const std::size_t barred = barred_.size();
      pass();
      again = barred_.size() > barred;
    }
  }

  const Shard& shard(ValueId v) const { return shards_[index(v)]; }
  // Partials that some reader needs the sum of, in order.
  std::vector<ValueId> summed() const {
    std::vector<ValueId> list(summed_.begin(), summed_.end());
    std::ranges::sort(list);
    return list;
  }
  // Whether this use works on the partial as it is.
  bool reads_partial(const Use& use) const {
    const ValueId made = graph_.node(use.node).outputs[0];
    return partial_uses_.contains(use_key(made, static_cast<std::size_t>(use.input)));
  }
  const std::vector<OptimizerNode>& optimizers() const { return optimizers_; }
  bool any() const {
    return std::ranges::any_of(weights_, [this](ValueId v) { return shard(v).is_split(); });
  }

 private:
  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
  // Of the node that makes a value.
  static std::uint64_t use_key(ValueId made, std::size_t input) {
    return (static_cast<std::uint64_t>(index(made)) << 32) | input;
  }

  std::size_t find(std::size_t v) {
    while (group_[v] != v) v = group_[v] = group_[group_[v]];
    return v;
  }
  void join(ValueId a, ValueId b) { group_[find(index(a))] = find(index(b)); }

  void pass() {
    shards_.assign(graph_.value_capacity(), {});
    summed_.clear();
    partial_uses_.clear();
    group_.resize(graph_.value_capacity());
    std::iota(group_.begin(), group_.end(), std::size_t{0});
    failed_.clear();
    weights_.clear();
    for (const OptimizerNode& step : optimizers_) {
      for (ValueId p : step.parameters) {
        if (!barred_.contains(p)) shards_[index(p)].kind = Shard::Kind::kOpen;
      }
    }
    want_gradients();
    for (NodeId id : order_) {
      const auto optimizer = optimizer_at_.find(id);
      if (optimizer == optimizer_at_.end()) {
        visit(graph_.node(id));
      } else {
        update(optimizers_[optimizer->second]);
      }
    }
    std::unordered_set<std::size_t> groups;
    for (ValueId v : failed_) groups.insert(find(index(v)));
    for (ValueId weight : weights_) {
      if (groups.contains(find(index(weight)))) barred_.insert(weight);
    }
  }

  // The gradient of a table of tokens is cut because the table is, not because its inputs are.
  void want_gradients() {
    wanted_of_.clear();
    for (const OptimizerNode& step : optimizers_) {
      for (std::size_t i = 0; i < step.parameters.size(); ++i) {
        std::vector<ValueId> open = {raw_gradient(graph_, step.gradients[i])};
        while (!open.empty()) {
          const ValueId v = open.back();
          open.pop_back();
          wanted_of_[v] = step.parameters[i];
          const NodeId producer = graph_.value(v).producer;
          if (producer == kNoNode) continue;
          const Node& node = graph_.node(producer);
          if (node.op->name == "Add")
            open.insert(open.end(), node.inputs.begin(), node.inputs.end());
          if (node.op->name == "GatherGrad" && node.inputs.size() > 2) {
            open.push_back(node.inputs[2]);
          }
        }
      }
    }
  }

  void visit(const Node& node) {
    std::vector<Shard> inputs;
    for (ValueId v : node.inputs) inputs.push_back(v == kNoValue ? Shard{} : shards_[index(v)]);
    const auto idle = [](const Shard& shard) { return shard.is_whole(); };
    std::vector<Shard> wanted;
    for (ValueId v : node.outputs) {
      const auto parameter = wanted_of_.find(v);
      wanted.push_back(parameter == wanted_of_.end() ? Shard{} : shards_[index(parameter->second)]);
    }
    if (std::ranges::all_of(inputs, idle) && std::ranges::all_of(wanted, idle)) return;
    const SplitRow* row = find_split_row(node);
    const NodeArgs args(graph_, node);
    const auto attempt = [&]() -> std::optional<std::vector<Shard>> {
      if (row == nullptr) return std::nullopt;
      return row->rule({.graph = graph_,
                        .node = node,
                        .op = *args,
                        .shards = devices_,
                        .inputs = inputs,
                        .wanted = wanted});
    };
    std::optional<std::vector<Shard>> outputs;
    const bool partial = std::ranges::any_of(inputs, &Shard::is_partial);
    const std::vector<Shard> before = inputs;
    if (!partial || (row != nullptr && row->linear)) outputs = attempt();
    if (!outputs && partial) {
      inputs = before;
      sum_partials(node, inputs);
      outputs = attempt();
    }
    settle(node, inputs, outputs);
  }

  void sum_partials(const Node& node, std::vector<Shard>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].is_partial()) continue;
      summed_.insert(node.inputs[i]);
      shards_[index(node.inputs[i])] = {};
      inputs[i] = {};
    }
  }

  // What was open is decided now. Without an answer the node works on whole values: where an input
  // is cut, the weights that cut it must not be.
  void settle(const Node& node, const std::vector<Shard>& inputs,
              const std::optional<std::vector<Shard>>& outputs) {
    ValueId cut = kNoValue;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue) continue;
      Shard& own = shards_[index(v)];
      if (own.is_open()) {
        own = outputs && inputs[i].is_split() ? inputs[i] : Shard{};
        if (own.is_split()) weights_.push_back(v);
      }
      if (!own.is_split()) continue;
      if (cut != kNoValue) join(v, cut);
      cut = v;
    }
    if (!outputs) {
      if (cut != kNoValue) failed_.push_back(cut);
      return;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].is_partial()) partial_uses_.insert(use_key(node.outputs[0], i));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (v == kNoValue) continue;
      shards_[index(v)] = (*outputs)[i];
      if ((*outputs)[i].is_split() && cut != kNoValue) join(v, cut);
      // Nobody can be given a partial of a loss.
      if ((*outputs)[i].is_partial() && node.op->name == "CrossEntropy") summed_.insert(v);
      if (summed_.contains(v)) shards_[index(v)] = {};
    }
  }

  void update(const OptimizerNode& step) {
    for (std::size_t i = 0; i < step.parameters.size(); ++i) {
      const ValueId parameter = step.parameters[i];
      Shard& own = shards_[index(parameter)];
      if (own.is_open()) own = {};
      const ValueId gradient = step.gradients[i];
      Shard& of_gradient = shards_[index(gradient)];
      if (of_gradient.is_partial()) {
        summed_.insert(gradient);
        of_gradient = {};
      }
      if (of_gradient == own) continue;
      for (ValueId v : {parameter, gradient}) {
        if (shards_[index(v)].is_split()) failed_.push_back(v);
      }
    }
  }

  const Graph& graph_;
  std::int64_t devices_;
  std::vector<NodeId> order_;
  std::vector<OptimizerNode> optimizers_;
  std::unordered_map<NodeId, std::size_t> optimizer_at_;
  std::unordered_map<ValueId, ValueId> wanted_of_;  // parameter by (a partial of) its gradient
  std::unordered_set<ValueId> barred_;              // weights that stay whole
  // Of one pass.
  std::vector<Shard> shards_;  // by ValueId
  std::unordered_set<ValueId> summed_;
  std::vector<ValueId> weights_;                    // that are cut
  std::vector<std::size_t> group_;                  // by ValueId: values that are cut together
  std::vector<ValueId> failed_;                     // values that a node needs whole
  std::unordered_set<std::uint64_t> partial_uses_;  // uses of partials as they are
};

// Gives the values of the graph the shapes of their shards.
class ShardCutter {
 public:
  ShardCutter(Graph& graph, const OpTable& ops, std::int64_t devices, const ShardFinder& shards)
      : graph_(graph),
        rewriter_(graph, ops, "tensor_parallel", nullptr),
        devices_(devices),
        shards_(shards) {}

  void run(std::vector<std::int64_t>& workspaces) {
    const std::vector<NodeId> order = graph_.order();
    std::vector<double> before;
    for (NodeId id : order) before.push_back(bytes_around(id));
    cut_values();
    for (NodeId id : order) cut_parameters_of(id);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto at = static_cast<std::size_t>(order[i]);
      if (at >= workspaces.size() || workspaces[at] == 0 || before[i] == 0.0) continue;
      const double ratio = bytes_around(order[i]) / before[i];
      workspaces[at] = static_cast<std::int64_t>(static_cast<double>(workspaces[at]) * ratio);
    }
    for (ValueId v : shards_.summed()) add_sum(v);
  }

 private:
  double bytes_around(NodeId id) const {
    double bytes = 0.0;
    for (const std::vector<ValueId>* list : {&graph_.node(id).inputs, &graph_.node(id).outputs}) {
      for (ValueId v : *list) {
        if (v != kNoValue) bytes += static_cast<double>(graph_.value(v).type.bytes());
      }
    }
    return bytes;
  }

  void cut_values() {
    for (ValueId v : graph_.live_values()) {
      const Shard& shard = shards_.shard(v);
      if (!shard.is_split()) continue;
      Value& value = graph_.value(v);
      std::int64_t& size = value.type.shape[shard.axis];
      require(size >= devices_, ErrorCode::kUsage,
              "--tensor-parallel {} is more than the {} elements of '{}' along the axis that is "
              "sharded",
              devices_, size, printable(value.name));
      size = split_size(size, devices_);
      value.data = nullptr;
    }
    for (const OptimizerNode& step : shards_.optimizers()) {
      const std::vector<ValueId>& next = graph_.node(step.node).outputs;
      for (std::size_t i = 0; i < next.size(); ++i) {
        const TensorType& type = graph_.value(step.parameters[i % step.parameters.size()]).type;
        if (i >= step.parameters.size()) {
          graph_.value(step.states[i - step.parameters.size()]).type = type;
        }
        graph_.value(next[i]).type = type;
      }
      for (ValueId gradient : step.gradients) cut_accumulator(gradient);
    }
  }

  void cut_accumulator(ValueId gradient) {
    if (raw_gradient(graph_, gradient) == gradient) return;
    const Node& node = graph_.node(graph_.value(gradient).producer);
    graph_.value(node.inputs[0]).type = graph_.value(gradient).type;
  }

  // Sizes that nodes are told: shapes, and lengths of slices.
  void cut_parameters_of(NodeId id) {
    const Node& node = graph_.node(id);
    const bool cut = std::ranges::any_of(
        node.outputs, [this](ValueId v) { return v != kNoValue && shards_.shard(v).is_split(); });
    if (!cut) return;
    const Shard shard = shards_.shard(node.outputs[0]);
    const Shape& shape = graph_.value(node.outputs[0]).type.shape;
    const Ints dims(shape.span().begin(), shape.span().end());
    if (node.op->name == "Reshape" || node.op->name == "Expand") {
      rewriter_.set_input(id, 1, constant(dims));
    } else if (node.op->name == "GatherGrad") {
      graph_.node(id).attributes.set("shape", dims);
    } else if (node.op->name == "Attention" || node.op->name == "AttentionGrad") {
      cut_heads(graph_.node(id).attributes);
    } else if (node.op->name == "Split" && node.inputs.size() > 1 && node.inputs[1] != kNoValue) {
      Ints sizes;
      const int axis = NodeArgs(graph_, node)->axis("axis", 0, shape.rank);
      for (ValueId v : node.outputs) sizes.push_back(graph_.value(v).type.shape[axis]);
      if (axis == shard.axis) rewriter_.set_input(id, 1, constant(sizes));
    }
  }

  void cut_heads(Attributes& attributes) {
    for (const char* heads : {"q_heads", "kv_heads"}) {
      const std::int64_t all = attributes.integer(heads, 0);
      if (all > 0) attributes.set(heads, all / devices_);
    }
  }

  ValueId constant(const Ints& values) {
    const auto known = constants_.find(values);
    if (known != constants_.end()) return known->second;
    const ValueId made =
        rewriter_.before(graph_.first()).constant(Tensor::ints(values), "tensor_parallel/sizes");
    return constants_.emplace(values, made).first->second;
  }

  void add_sum(ValueId v) {
    const NodeId producer = graph_.value(v).producer;
    const NodeId next = graph_.node(producer).next;
    const Phase phase = graph_.node(producer).phase;
    const std::vector<Use> uses = graph_.value(v).uses;
    Builder& b = next == kNoNode ? rewriter_.at_end(phase) : rewriter_.before(next);
    b.set_phase(phase);
    const std::string name = graph_.unique_name("AllReduce/" + graph_.value(v).name);
    const NodeId made = b.add({.op = &all_reduce_op(),
                               .name = name,
                               .inputs = {v},
                               .output_names = {name},
                               .attributes = {{"group", std::string(kTensorGroup)}},
                               .provenance = {.sources = {}, .pass = "tensor_parallel"}});
    const ValueId sum = graph_.node(made).outputs[0];
    for (const Use& use : uses) {
      if (!shards_.reads_partial(use)) rewriter_.set_input(use.node, use.input, sum);
    }
    graph_.replace_output(v, sum);
  }

  Graph& graph_;
  Rewriter rewriter_;
  std::int64_t devices_;
  const ShardFinder& shards_;
  std::map<Ints, ValueId> constants_;
};

}  // namespace

void split_tensors(Graph& graph, const OpTable& ops, std::int64_t devices,
                   std::vector<std::int64_t>& workspaces) {
  if (devices <= 1) return;
  ShardFinder shards(graph, devices);
  shards.run();
  require(shards.any(), ErrorCode::kUsage,
          "--tensor-parallel {}: no matmul of the graph can be sharded", devices);
  ShardCutter(graph, ops, devices, shards).run(workspaces);
  const std::vector<std::string> problems = verify(graph);
  if (problems.empty()) return;
  fail_unsupported("--tensor-parallel {}: the graph cannot be cut: {}", devices,
                   printable(problems.front(), 400));
}

}  // namespace trainscope
