// A rule of a row says what shards its results are; here they meet along the step.
#include "engine/world/shard_finder.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace trainscope {
namespace {

// Of the node that makes a value.
std::uint64_t use_key(ValueId made, std::size_t input) {
  return (static_cast<std::uint64_t>(static_cast<std::size_t>(made)) << 32) | input;
}

// What v is a sum of, where its node adds.
std::vector<ValueId> partials_of(const Node& node, ValueId v) {
  if (node.op->is_sum) return node.inputs;
  const int added = node.op->added_input;
  const bool adds = added >= 0 && added < std::ssize(node.inputs) && v == node.outputs[0] &&
                    node.inputs[static_cast<std::size_t>(added)] != kNoValue;
  if (!adds) return {};
  return {node.inputs[static_cast<std::size_t>(added)]};
}

}  // namespace

ShardFinder::ShardFinder(const Graph& graph, std::int64_t devices)
    : graph_(graph), devices_(devices), order_(graph.order()), optimizers_(optimizer_nodes(graph)) {
  for (std::size_t i = 0; i < optimizers_.size(); ++i) {
    optimizer_at_.emplace(optimizers_[i].node, i);
  }
}

void ShardFinder::run() {
  for (bool again = true; again;) {
    const std::size_t barred = barred_.size();
    pass();
    again = barred_.size() > barred;
  }
}

std::vector<ValueId> ShardFinder::reduced() const {
  std::vector<ValueId> list(reduced_.begin(), reduced_.end());
  std::ranges::sort(list);
  return list;
}

bool ShardFinder::reads_partial(const Use& use) const {
  const ValueId made = graph_.node(use.node).outputs[0];
  return partial_uses_.contains(use_key(made, static_cast<std::size_t>(use.input)));
}

bool ShardFinder::any() const {
  return std::ranges::any_of(weights_, [this](ValueId v) { return shard(v).is_split(); });
}

std::size_t ShardFinder::find(std::size_t v) {
  while (group_[v] != v) v = group_[v] = group_[group_[v]];
  return v;
}

void ShardFinder::pass() {
  shards_.assign(graph_.value_capacity(), {});
  reduced_.clear();
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

void ShardFinder::want_gradients() {
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
        const std::vector<ValueId> partials = partials_of(graph_.node(producer), v);
        open.insert(open.end(), partials.begin(), partials.end());
      }
    }
  }
}

void ShardFinder::visit(const Node& node) {
  std::vector<Shard> inputs;
  for (ValueId v : node.inputs) inputs.push_back(v == kNoValue ? Shard{} : shards_[index(v)]);
  const auto idle = [](const Shard& shard) { return shard.is_whole(); };
  std::vector<Shard> wanted;
  for (ValueId v : node.outputs) {
    const auto parameter = wanted_of_.find(v);
    wanted.push_back(parameter == wanted_of_.end() ? Shard{} : shards_[index(parameter->second)]);
  }
  if (std::ranges::all_of(inputs, idle) && std::ranges::all_of(wanted, idle)) return;
  const Sharding* sharding = sharding_of(*node.op);
  const NodeArgs args(graph_, node);
  const auto attempt = [&]() -> std::optional<std::vector<Shard>> {
    if (sharding == nullptr) return std::nullopt;
    return sharding->rule({.graph = graph_,
                           .node = node,
                           .op = *args,
                           .shards = devices_,
                           .inputs = inputs,
                           .wanted = wanted});
  };
  std::optional<std::vector<Shard>> outputs;
  const bool partial = std::ranges::any_of(inputs, &Shard::is_partial);
  const std::vector<Shard> before = inputs;
  if (!partial || (sharding != nullptr && sharding->linear)) outputs = attempt();
  if (!outputs && partial) {
    inputs = before;
    sum_partials(node, inputs);
    outputs = attempt();
  }
  settle(node, inputs, outputs);
}

void ShardFinder::sum_partials(const Node& node, std::vector<Shard>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_partial()) continue;
    reduced_.insert(node.inputs[i]);
    shards_[index(node.inputs[i])] = {};
    inputs[i] = {};
  }
}

void ShardFinder::settle(const Node& node, const std::vector<Shard>& inputs,
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
    if ((*outputs)[i].is_partial() && node.op->traits.sharding->sums_at_once) reduced_.insert(v);
    if (reduced_.contains(v)) shards_[index(v)] = {};
  }
}

void ShardFinder::update(const OptimizerNode& step) {
  for (std::size_t i = 0; i < step.parameters.size(); ++i) {
    const ValueId parameter = step.parameters[i];
    Shard& own = shards_[index(parameter)];
    if (own.is_open()) own = {};
    const ValueId gradient = step.gradients[i];
    Shard& of_gradient = shards_[index(gradient)];
    if (of_gradient.is_partial()) {
      reduced_.insert(gradient);
      of_gradient = {};
    }
    if (of_gradient == own) continue;
    for (ValueId v : {parameter, gradient}) {
      if (shards_[index(v)].is_split()) failed_.push_back(v);
    }
  }
}

}  // namespace trainscope
