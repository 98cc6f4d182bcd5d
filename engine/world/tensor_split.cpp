// The graph with the shapes of its shards, and sums over the devices.
#include "engine/world/tensor_split.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/ops/rules/sharding_rules.h"
#include "engine/world/collective_ops.h"
#include "engine/world/shard_finder.h"
#include "engine/world/zero.h"

namespace trainscope {
namespace {

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
    for (ValueId v : shards_.reduced()) add_sum(v);
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
    const Sharding* told = sharding_of(*node.op);
    if (told == nullptr) return;
    if (told->shape_input >= 0) rewriter_.set_input(id, told->shape_input, constant(dims));
    if (!told->shape_attribute.empty()) {
      graph_.node(id).attributes.set(std::string(told->shape_attribute), dims);
    }
    cut_heads(graph_.node(id).attributes, told->head_attributes);
    if (told->sizes_input >= 0) cut_sizes(id, told->sizes_input, shard.axis);
  }

  void cut_heads(Attributes& attributes, std::span<const std::string_view> counts) {
    for (std::string_view heads : counts) {
      const std::int64_t all = attributes.integer(heads, 0);
      if (all > 0) attributes.set(std::string(heads), all / devices_);
    }
  }

  // An input that holds the sizes of the outputs along the op's axis.
  void cut_sizes(NodeId id, int input, int cut_axis) {
    const Node& node = graph_.node(id);
    const bool given =
        input < std::ssize(node.inputs) && node.inputs[static_cast<std::size_t>(input)] != kNoValue;
    const int rank = graph_.value(node.outputs[0]).type.shape.rank;
    const int axis =
        normalized_axis(node.attributes.integer("axis", node.op->axis.value_or(0)), rank);
    if (!given || axis != cut_axis) return;
    Ints sizes;
    for (ValueId v : node.outputs) sizes.push_back(graph_.value(v).type.shape[axis]);
    rewriter_.set_input(id, input, constant(sizes));
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
