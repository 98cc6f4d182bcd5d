// The graph of each stage of a pipeline.
#include "engine/world/pipeline.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/ir/builder.h"
#include "engine/world/collective_ops.h"
#include "engine/world/pieces.h"
#include "engine/world/stage_balance.h"
#include "engine/world/tied_gradients.h"
#include "engine/world/zero.h"

namespace trainscope {
namespace {

constexpr std::string_view kPass = "pipeline";

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
std::size_t index(NodeId v) { return static_cast<std::size_t>(v); }

// Which stage does what.
struct Division {
  std::vector<int> stage_of;  // by NodeId; kNoPiece: runs wherever it is needed
  std::vector<TiedGradient> tied;
};

class StageBuilder {
 public:
  StageBuilder(const Graph& graph, const OpTable& ops, const Division& division, int stage,
               std::span<const std::int64_t> workspaces)
      : from_(graph),
        stage_of_(division.stage_of),
        stage_(stage),
        workspaces_(workspaces),
        builder_(result_.graph, ops),
        new_of_(graph.value_capacity(), kNoValue) {
    for (OptimizerNode& step : optimizer_nodes(graph)) {
      const NodeId id = step.node;
      optimizers_.emplace(id, std::move(step));
    }
    for (const TiedGradient& tied : division.tied) take_over(tied);
  }

  PipelineStage run() {
    result_.graph.name = from_.name;
    result_.graph.opset = from_.opset;
    const std::vector<NodeId> order = from_.order();
    choose(order);
    for (NodeId id : order) {
      const auto optimizer = optimizers_.find(id);
      if (optimizer != optimizers_.end()) {
        add_optimizer(optimizer->second);
      } else if (tied_.contains(id)) {
        add_tied(*tied_.at(id));
      } else if (chosen_.contains(id)) {
        add(id);
      }
    }
    add_ends();
    return std::move(result_);
  }

 private:
  // On each stage that makes a partial of the sum all that adds it up runs.
  void take_over(const TiedGradient& tied) {
    const bool holds = std::ranges::find(tied.stages, stage_) != tied.stages.end();
    for (NodeId id : tied.additions) elsewhere_.insert(id);
    if (!holds) {
      for (NodeId id : tied.kept) elsewhere_.insert(id);
      return;
    }
    tied_.emplace(from_.value(tied.sum).producer, &tied);
    for (NodeId id : tied.kept) shared_.insert(id);
    shared_.insert(from_.value(tied.sum).producer);
  }

  bool is_own(NodeId id) const {
    if (shared_.contains(id)) return true;
    return stage_of_[index(id)] == stage_ && !elsewhere_.contains(id);
  }

  // The stage's nodes, and those without a stage that they need; its parameters.
  void choose(const std::vector<NodeId>& order) {
    std::unordered_set<ValueId> needed;
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const Node& node = from_.node(*id);
      const bool wanted =
          stage_of_[index(*id)] == kNoPiece &&
          std::ranges::any_of(node.outputs, [&needed](ValueId v) { return needed.contains(v); });
      const bool update = node.phase == Phase::kUpdate || optimizers_.contains(*id);
      if (!(is_own(*id) || update || wanted)) continue;
      chosen_.insert(*id);
      if (tied_.contains(*id)) continue;  // its own partials are the stage's anyway
      for (ValueId v : node.inputs) {
        if (v == kNoValue) continue;
        needed.insert(v);
        const bool parameter = from_.value(v).kind == ValueKind::kParameter;
        if (parameter && !update) parameters_.insert(v);
      }
    }
  }

  ValueId map(ValueId v, Phase phase) {
    if (v == kNoValue) return kNoValue;
    ValueId& made = new_of_[index(v)];
    if (made != kNoValue) return made;
    const Value& value = from_.value(v);
    if (value.kind != ValueKind::kNode) {
      Value copy = value;
      copy.uses.clear();
      copy.producer = kNoNode;
      return made = result_.graph.add_value(std::move(copy));
    }
    // Made on another stage.
    const Ints dims(value.type.shape.span().begin(), value.type.shape.span().end());
    builder_.set_phase(phase);
    const NodeId node = builder_.add(
        {.op = &receive_op(),
         .name = "Receive/" + value.name,
         .inputs = {},
         .output_names = {value.name},
         .attributes = {{"shape", dims}, {"dtype", static_cast<std::int64_t>(value.type.dtype)}},
         .provenance = {.sources = {}, .pass = std::string(kPass)}});
    return made = result_.graph.node(node).outputs[0];
  }

  // A norm over all gradients is one over the stage's own.
  std::vector<ValueId> inputs_of(const Node& node) {
    std::vector<ValueId> inputs;
    const bool own_only = node.phase == Phase::kUpdate && node.op->max_inputs == kVariadic;
    for (ValueId v : node.inputs) {
      const NodeId producer = v == kNoValue ? kNoNode : from_.value(v).producer;
      if (own_only && producer != kNoNode && !is_own(producer)) continue;
      inputs.push_back(map(v, node.phase));
    }
    return inputs;
  }

  void add(NodeId id) {
    Node node = from_.node(id);
    node.inputs = inputs_of(node);
    if (node.inputs.empty() && !from_.node(id).inputs.empty()) return;
    append(std::move(node), from_.node(id).outputs, id);
  }

  // The stage's own partials, added up, and the message that adds those of the others.
  void add_tied(const TiedGradient& tied) {
    const NodeId root = from_.value(tied.sum).producer;
    const std::string& name = from_.value(tied.sum).name;
    builder_.set_phase(Phase::kBackward);
    ValueId sum = kNoValue;
    const auto add_node = [&](const OpDef* op, std::vector<ValueId> inputs, Attributes attributes) {
      const std::string unique = result_.graph.unique_name(std::string(op->name) + "/" + name);
      const NodeId made = builder_.add({.op = op,
                                        .name = unique,
                                        .inputs = std::move(inputs),
                                        .output_names = {unique},
                                        .attributes = std::move(attributes),
                                        .provenance = {.sources = {}, .pass = std::string(kPass)}});
      return result_.graph.node(made).outputs[0];
    };
    for (ValueId partial : tied.partials) {
      if (stage_of_[index(from_.value(partial).producer)] != stage_) continue;
      const ValueId own = new_of_[index(partial)];
      sum = sum == kNoValue ? own : add_node(from_.node(root).op, {sum, own}, {});
    }
    const auto holders = static_cast<std::int64_t>(tied.stages.size());
    new_of_[index(tied.sum)] = add_node(&all_reduce_op(), {sum},
                                        {{"group", std::string(kTiedGroup)}, {"devices", holders}});
  }

  void append(Node node, const std::vector<ValueId>& outputs, NodeId id) {
    std::vector<Value> values;
    for (ValueId v : outputs) {
      values.push_back(v == kNoValue ? Value{} : from_.value(v));
      values.back().uses.clear();
    }
    const NodeId made = result_.graph.add_node(std::move(node), values, kNoNode);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] != kNoValue) {
        new_of_[index(outputs[i])] = result_.graph.node(made).outputs[i];
      }
    }
    if (index(id) >= workspaces_.size() || workspaces_[index(id)] == 0) return;
    result_.workspaces.resize(index(made) + 1, 0);
    result_.workspaces[index(made)] = workspaces_[index(id)];
  }

  // With the stage's parameters alone.
  void add_optimizer(const OptimizerNode& step) {
    Node node = from_.node(step.node);
    const std::size_t count = step.parameters.size();
    const std::size_t groups = step.states.size() / count;
    std::vector<ValueId> inputs;
    std::vector<ValueId> outputs;
    const auto own = [&](std::size_t i) { return parameters_.contains(step.parameters[i]); };
    for (std::size_t group = 0; group < 2 + groups; ++group) {
      for (std::size_t i = 0; i < count; ++i) {
        if (own(i)) inputs.push_back(map(node.inputs[group * count + i], node.phase));
      }
    }
    if (inputs.empty()) return;
    for (std::size_t i = (2 + groups) * count; i < node.inputs.size(); ++i) {
      inputs.push_back(map(node.inputs[i], node.phase));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (own(i % count)) outputs.push_back(node.outputs[i]);
    }
    for (const char* list : {"weight_decay", "learning_rate_scale"}) keep_own(node, list, step);
    node.inputs = std::move(inputs);
    append(std::move(node), outputs, step.node);
  }

  void keep_own(Node& node, const char* list, const OptimizerNode& step) const {
    if (step.parameters.size() < 2) return;  // all of it; a plugin's step has numbers, not lists
    const Floats all = node.attributes.numbers(list);
    if (all.size() != step.parameters.size()) return;
    Floats own;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (parameters_.contains(step.parameters[i])) own.push_back(all[i]);
    }
    node.attributes.set(list, std::move(own));
  }

  void add_ends() {
    const auto made = [this](ValueId v) { return v == kNoValue ? kNoValue : new_of_[index(v)]; };
    const auto own = [&](ValueId v) {
      const NodeId producer = v == kNoValue ? kNoNode : from_.value(v).producer;
      return producer != kNoNode && chosen_.contains(producer) && made(v) != kNoValue;
    };
    for (ValueId v : from_.inputs) {
      if (made(v) != kNoValue) result_.graph.inputs.push_back(made(v));
    }
    for (ValueId v : from_.outputs) {
      if (own(v)) result_.graph.outputs.push_back(made(v));
    }
    for (const Update& update : from_.updates) {
      if (!own(update.value) || made(update.state) == kNoValue) continue;
      result_.graph.updates.push_back({made(update.state), made(update.value)});
    }
    if (own(from_.loss)) result_.graph.loss = made(from_.loss);
  }

  const Graph& from_;
  const std::vector<int>& stage_of_;  // by NodeId
  int stage_;
  std::span<const std::int64_t> workspaces_;
  PipelineStage result_;
  Builder builder_;
  std::vector<ValueId> new_of_;  // by ValueId of the whole graph
  std::unordered_map<NodeId, OptimizerNode> optimizers_;
  std::unordered_map<NodeId, const TiedGradient*> tied_;  // by the node that makes the sum
  std::unordered_set<NodeId> shared_;                     // that run here and on other stages
  std::unordered_set<NodeId> elsewhere_;
  std::unordered_set<NodeId> chosen_;
  std::unordered_set<ValueId> parameters_;
};

PieceCosts costs_of(const Graph& graph, const Pieces& pieces, const MachineModel& machine) {
  PieceCosts costs{.seconds = std::vector<double>(pieces.with_parameters.size(), 0.0),
                   .message_seconds = {},
                   .with_parameters = pieces.with_parameters};
  const std::vector<double> kernels = kernel_seconds(graph, machine);
  const std::vector<double> messages = message_seconds(graph, machine);
  for (NodeId id : graph.order()) {
    const int piece = pieces.of[index(id)];
    if (piece == kNoPiece) continue;
    costs.seconds[static_cast<std::size_t>(piece)] += kernels[index(id)] + messages[index(id)];
  }
  const Group link = stage_link(*machine.device, machine.layout);
  for (ValueId v : pieces.passing) {
    const auto bytes = static_cast<std::int64_t>(graph.value(v).type.bytes());
    costs.message_seconds.push_back(collective_seconds(Collective::kSend, bytes, link));
  }
  return costs;
}

Division divide(const Graph& graph, const MachineModel& machine) {
  const Pieces pieces = find_pieces(graph);
  const std::int64_t stages = machine.layout.pipeline;
  const std::int64_t most = std::ranges::count(pieces.with_parameters, true);
  require(stages <= most, ErrorCode::kUsage,
          "--pipeline {}: the graph has {} pieces with parameters between which one activation "
          "alone passes on: {} stages can be made",
          stages, most, most);
  const std::vector<int> of_piece = balanced_stages(costs_of(graph, pieces, machine), stages);
  Division division{.stage_of = std::vector<int>(graph.node_capacity(), kNoPiece), .tied = {}};
  for (NodeId id : graph.order()) {
    const int piece = pieces.of[index(id)];
    if (piece == kNoPiece) continue;
    division.stage_of[index(id)] = of_piece[static_cast<std::size_t>(piece)];
  }
  division.tied = find_tied_gradients(graph, division.stage_of);
  return division;
}

}  // namespace

std::vector<PipelineStage> cut_stages(const Graph& whole, const OpTable& ops,
                                      const MachineModel& machine,
                                      std::span<const std::int64_t> all_workspaces) {
  const std::int64_t stages = machine.layout.pipeline;
  Graph graph = whole;
  std::vector<std::int64_t> workspaces(all_workspaces.begin(), all_workspaces.end());
  separate_sums(graph, ops, workspaces);
  workspaces.resize(graph.node_capacity(), 0);
  const Division division = divide(graph, machine);
  std::vector<PipelineStage> result;
  for (int stage = 0; stage < static_cast<int>(stages); ++stage) {
    result.push_back(StageBuilder(graph, ops, division, stage, workspaces).run());
  }
  return result;
}

}  // namespace trainscope
