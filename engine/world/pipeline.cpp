// Pieces between single activations, their balance, and the graph of each stage.
#include "engine/world/pipeline.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/core/error.h"
#include "engine/ir/builder.h"
#include "engine/world/collective_ops.h"
#include "engine/world/zero.h"

namespace trainscope {
namespace {

constexpr int kNone = -1;
constexpr std::string_view kPass = "pipeline";

std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }
std::size_t index(NodeId v) { return static_cast<std::size_t>(v); }

// The piece of each forward and backward node; kNone: needs no parameter, runs anywhere.
class Pieces {
 public:
  explicit Pieces(const Graph& graph)
      : graph_(graph),
        order_(graph.order()),
        of_(graph.node_capacity(), kNone),
        bound_(graph.value_capacity(), false) {
    for (const OptimizerNode& step : optimizer_nodes(graph)) optimizers_.insert(step.node);
    find_bound();
    cut_forward();
    follow_backward();
  }

  int of(NodeId id) const { return of_[index(id)]; }
  int count() const { return count_; }
  bool is_optimizer(NodeId id) const { return optimizers_.contains(id); }

 private:
  bool is_bound(ValueId v) const { return v != kNoValue && bound_[index(v)]; }

  // Parameters, and what is made of them.
  void find_bound() {
    for (ValueId v : graph_.values_of(ValueKind::kParameter)) bound_[index(v)] = true;
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      const auto any = [this](ValueId v) { return is_bound(v); };
      if (!std::ranges::any_of(node.inputs, any)) continue;
      for (ValueId v : node.outputs) {
        if (v != kNoValue) bound_[index(v)] = true;
      }
    }
  }

  bool runs_forward(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.phase == Phase::kForward &&
           std::ranges::any_of(node.inputs, [this](ValueId v) { return is_bound(v); });
  }

  // Bytes that a view shows count once; views of parameters are parameters.
  void cut_forward() {
    std::vector<NodeId> forward;
    for (NodeId id : order_) {
      if (runs_forward(id)) forward.push_back(id);
    }
    std::vector<ValueId> root(graph_.value_capacity(), kNoValue);
    std::vector<int> made(graph_.value_capacity(), kNone);
    std::vector<int> last(graph_.value_capacity(), kNone);
    for (std::size_t i = 0; i < forward.size(); ++i) {
      const Node& node = graph_.node(forward[i]);
      for (ValueId v : node.inputs) {
        if (is_bound(v) && root[index(v)] != kNoValue) {
          last[index(root[index(v)])] = static_cast<int>(i);
        }
      }
      const ValueId from = node.op->is_view ? node.inputs[0] : kNoValue;
      const bool of_parameter = from != kNoValue && is_bound(from) && root[index(from)] == kNoValue;
      for (ValueId v : node.outputs) {
        if (v == kNoValue || of_parameter) continue;
        root[index(v)] = from == kNoValue ? v : root[index(from)];
        if (from == kNoValue) made[index(v)] = static_cast<int>(i);
      }
    }
    std::vector<int> crossing(forward.size() + 1, 0);
    for (std::size_t v = 0; v < made.size(); ++v) {
      if (made[v] == kNone || last[v] <= made[v]) continue;
      ++crossing[static_cast<std::size_t>(made[v])];
      --crossing[static_cast<std::size_t>(last[v])];
    }
    int piece = 0;
    int passing = 0;
    for (std::size_t i = 0; i < forward.size(); ++i) {
      of_[index(forward[i])] = piece;
      passing += crossing[i];
      if (i + 1 == forward.size()) continue;
      const OpDef* next = graph_.node(forward[i + 1]).op;
      if (passing == 1 && !next->is_view && next != &all_reduce_op()) ++piece;
    }
    count_ = forward.empty() ? 0 : piece + 1;
  }

  void follow_backward() {
    std::unordered_map<std::string_view, int> piece_of;  // by source
    for (NodeId id : order_) {
      if (of_[index(id)] == kNone) continue;
      for (const std::string& source : graph_.node(id).provenance.sources) {
        int& piece = piece_of.emplace(source, of_[index(id)]).first->second;
        piece = std::max(piece, of_[index(id)]);
      }
    }
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.phase == Phase::kForward || optimizers_.contains(id)) continue;
      if (node.phase == Phase::kUpdate) continue;
      of_[index(id)] = backward_piece(node, piece_of);
    }
  }

  int backward_piece(const Node& node,
                     const std::unordered_map<std::string_view, int>& piece_of) const {
    int least = std::numeric_limits<int>::max();  // gradients come from later pieces
    int gradients = 0;
    bool reads_forward = false;
    bool bound = false;
    for (ValueId v : node.inputs) {
      if (!is_bound(v)) continue;
      bound = true;
      const NodeId producer = graph_.value(v).producer;
      if (producer == kNoNode || graph_.node(producer).phase == Phase::kForward) {
        reads_forward = true;
        continue;
      }
      ++gradients;
      if (of_[index(producer)] != kNone) least = std::min(least, of_[index(producer)]);
    }
    if (!bound) return kNone;
    int own = kNone;
    for (const std::string& source : node.provenance.sources) {
      const auto found = piece_of.find(source);
      if (found != piece_of.end()) own = std::max(own, found->second);
    }
    const bool joins = gradients > 1 && !reads_forward;  // where the last of them is made
    if (own == kNone || joins) own = least;
    return std::min({own, least, count_ - 1});
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<int> of_;      // by NodeId
  std::vector<bool> bound_;  // by ValueId
  std::unordered_set<NodeId> optimizers_;
  int count_ = 0;
};

// Whether the pieces fall into so many runs of at most `most` each.
std::vector<int> runs_within(const std::vector<double>& pieces, std::int64_t runs, double most) {
  std::vector<int> run_of;
  double sum = 0.0;
  int run = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto left = static_cast<std::int64_t>(pieces.size() - i);
    const bool forced = left <= runs - 1 - run;  // each later run needs a piece
    if (i > 0 && (sum + pieces[i] > most || forced) && run + 1 < runs) {
      ++run;
      sum = 0.0;
    }
    sum += pieces[i];
    if (sum > most * (1.0 + 1e-12)) return {};
    run_of.push_back(run);
  }
  return run + 1 == runs ? run_of : std::vector<int>{};
}

// Contiguous runs whose largest sum is as small as can be.
std::vector<int> balanced(const std::vector<double>& pieces, std::int64_t runs) {
  double low = 0.0;
  double high = 0.0;
  for (double piece : pieces) high += piece;
  std::vector<int> best;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = i == 0 ? high : low + (high - low) / 2;
    std::vector<int> found = runs_within(pieces, runs, middle);
    if (found.empty()) {
      low = middle;
    } else {
      high = middle;
      best = std::move(found);
    }
  }
  return best;
}

class StageBuilder {
 public:
  StageBuilder(const Graph& graph, const OpTable& ops, const std::vector<int>& stage_of, int stage,
               std::span<const std::int64_t> workspaces)
      : from_(graph),
        stage_of_(stage_of),
        stage_(stage),
        workspaces_(workspaces),
        builder_(result_.graph, ops),
        new_of_(graph.value_capacity(), kNoValue) {
    for (OptimizerNode& step : optimizer_nodes(graph)) {
      const NodeId id = step.node;
      optimizers_.emplace(id, std::move(step));
    }
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
      } else if (chosen_.contains(id)) {
        add(id);
      }
    }
    add_ends();
    return std::move(result_);
  }

 private:
  // The stage's nodes, and those without a stage that they need; its parameters.
  void choose(const std::vector<NodeId>& order) {
    std::unordered_set<ValueId> needed;
    for (auto id = order.rbegin(); id != order.rend(); ++id) {
      const Node& node = from_.node(*id);
      const int stage = stage_of_[index(*id)];
      const bool wanted =
          std::ranges::any_of(node.outputs, [&needed](ValueId v) { return needed.contains(v); });
      const bool update = node.phase == Phase::kUpdate || optimizers_.contains(*id);
      if (!(stage == stage_ || update || (stage == kNone && wanted))) continue;
      chosen_.insert(*id);
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
      if (own_only && producer != kNoNode && stage_of_[index(producer)] != stage_) continue;
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
  std::unordered_set<NodeId> chosen_;
  std::unordered_set<ValueId> parameters_;
};

}  // namespace

std::vector<PipelineStage> cut_stages(const Graph& graph, const OpTable& ops, std::int64_t stages,
                                      std::span<const double> seconds,
                                      std::span<const std::int64_t> workspaces) {
  const Pieces pieces(graph);
  require(stages <= pieces.count(), ErrorCode::kUsage,
          "--pipeline {}: the graph has {} places at most where one activation alone passes on: {} "
          "stages can be made",
          stages, pieces.count() - 1, pieces.count());
  std::vector<double> time(static_cast<std::size_t>(pieces.count()), 0.0);
  for (NodeId id : graph.order()) {
    if (pieces.of(id) == kNone) continue;
    time[static_cast<std::size_t>(pieces.of(id))] += seconds[index(id)];
  }
  const std::vector<int> run_of = balanced(time, stages);
  CHECK_INVARIANT(!run_of.empty());
  std::vector<int> stage_of(graph.node_capacity(), kNone);
  for (NodeId id : graph.order()) {
    if (pieces.of(id) != kNone) {
      stage_of[index(id)] = run_of[static_cast<std::size_t>(pieces.of(id))];
    }
  }
  std::vector<PipelineStage> result;
  for (int stage = 0; stage < static_cast<int>(stages); ++stage) {
    result.push_back(StageBuilder(graph, ops, stage_of, stage, workspaces).run());
  }
  return result;
}

std::int64_t micro_batches_in_flight(std::int64_t stage, std::int64_t stages,
                                     std::int64_t micro_batches) {
  return std::min(stages - stage, micro_batches);
}

}  // namespace trainscope
