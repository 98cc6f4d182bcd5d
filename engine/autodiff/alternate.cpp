// Losses that train groups of parameters of their own in turn, as adversarial nets are trained
// (Goodfellow et al. 2014). What the next loss reads of a group that has been updated is
// computed again with the new parameters.
#include "engine/autodiff/alternate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/differentiator.h"
#include "engine/autodiff/optimizer_update.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/ir/well_known.h"

namespace trainscope {
namespace {

// Random numbers of a turn are others than those of the turns before.
constexpr std::int64_t kStreamsOfTurn = std::int64_t{1} << 32;

void check_alternation(const TrainingOptions& options) {
  const std::pair<bool, std::string_view> refused[] = {
      {options.micro_batches > 1, "accumulation"},
      {options.ranks > 1, "several ranks"},
      {options.precision == StepPrecision::kF16, "fp16"},
      {options.loss_chunks > 1, "chunks of the loss"},
      {options.skip_ignored, "--skip-ignored"},
      {!options.skip_padding.empty(), "--skip-padding"},
      {options.optimizer.in_backward, "the optimizer in the backward phase"},
      {options.optimizer.clip_norm > 0.0, "clipping"},
      {options.optimizer.sparse_embeddings, "sparse embeddings"}};
  for (const auto& [is_wanted, what] : refused) {
    require(!is_wanted, ErrorCode::kUsage, "losses that alternate do not go together with {}",
            what);
  }
}

// The parameters of each turn: every one is in one of them.
std::vector<std::vector<ValueId>> groups_of(const Graph& graph,
                                            const std::vector<AlternatingLoss>& turns) {
  std::vector<std::vector<ValueId>> groups(turns.size());
  for (ValueId p : graph.values_of(ValueKind::kParameter)) {
    const std::string& name = graph.value(p).name;
    int found = 0;
    for (std::size_t turn = 0; turn < turns.size(); ++turn) {
      if (!matches_pattern(name, turns[turn].pattern)) continue;
      groups[turn].push_back(p);
      ++found;
    }
    if (found == 1) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("parameter '{}' is in {} of the groups that alternate, it must be in "
                            "one",
                            printable(name), found == 0 ? "none" : "several"))
        .hint(found == 0 ? fmt::format("another pattern, or --freeze '{}'", printable(name))
                         : "other patterns");
  }
  for (std::size_t turn = 0; turn < turns.size(); ++turn) {
    require(!groups[turn].empty(), ErrorCode::kUsage, "'{}' of the loss '{}' matches no parameter",
            printable(turns[turn].pattern), printable(turns[turn].output));
  }
  return groups;
}

// A batch norm in training reads a running statistic as an input and gives what it becomes as an
// output. Where one is called twice, the second call reads what the first one gave.
struct CarriedState {
  NodeId node = kNoNode;
  std::size_t input = 0;
  std::size_t output = 0;
  ValueId state = kNoValue;
};

// The output of a batch norm that belongs to input i is i - 2, also where it is fused with others.
constexpr std::size_t kInputsBefore = 2;

std::vector<CarriedState> carried_states(const Graph& graph) {
  std::vector<CarriedState> all;
  for (const Update& update : graph.updates) {
    std::vector<CarriedState> chain;
    ValueId v = update.value;
    while (v != update.state && graph.value(v).producer != kNoNode) {
      const NodeId id = graph.value(v).producer;
      const auto output = static_cast<std::size_t>(graph.value(v).producer_output);
      const std::size_t input = output + kInputsBefore;
      if (output == 0 || input >= graph.node(id).inputs.size()) break;
      chain.push_back({.node = id, .input = input, .output = output, .state = update.state});
      v = graph.node(id).inputs[input];
    }
    if (v == update.state) all.insert(all.end(), chain.begin(), chain.end());
  }
  return all;
}

class Alternation {
 public:
  Alternation(Rewriter& rewriter, const PassContext& context)
      : rewriter_(rewriter),
        graph_(rewriter.graph()),
        options_(context.options),
        pass_(context.pass),
        carried_(carried_states(graph_)),
        model_(graph_.order()),
        groups_(groups_of(graph_, options_.alternation)) {}

  void run() {
    check_all_groups();
    ValueId sum = kNoValue;
    for (std::size_t turn = 0; turn < groups_.size(); ++turn) {
      const ValueId loss = turn == 0 ? loss_of(turn) : computed_again(turn);
      update(turn, loss);
      sum = sum == kNoValue ? loss : backward_builder("")("Add", {sum, loss});
    }
    graph_.replace_output(graph_.loss, sum);
  }

 private:
  Builder& backward_builder(std::string prefix) {
    Builder& b = rewriter_.at_end(Phase::kBackward);
    b.set_prefix(std::move(prefix));
    return b;
  }

  // A group of the optimizer may hold parameters of one turn alone.
  void check_all_groups() const {
    Trained all;
    for (const std::vector<ValueId>& group : groups_) {
      all.parameters.insert(all.parameters.end(), group.begin(), group.end());
    }
    check_groups(graph_, all, options_.optimizer);
  }

  ValueId loss_of(std::size_t turn) const {
    const ValueId loss = graph_.find(kLossTermPrefix + options_.alternation[turn].output);
    CHECK_INVARIANT(loss != kNoValue);  // the pass `loss` made it an output
    return loss;
  }

  // Gradients of the loss by the turn's parameters, and their update.
  void update(std::size_t turn, ValueId loss) {
    const std::size_t gradients = graph_.gradients.size();
    const std::size_t updates = graph_.updates.size();
    append_gradients(rewriter_, {.loss = loss, .targets = groups_[turn], .nodes = nodes_},
                     options_);
    Trained trained;
    for (std::size_t i = gradients; i < graph_.gradients.size(); ++i) {
      trained.parameters.push_back(graph_.gradients[i].of);
      trained.gradients.push_back(graph_.gradients[i].gradient);
    }
    require(!trained.parameters.empty(), ErrorCode::kUsage,
            "no parameter of '{}' influences the loss '{}'",
            printable(options_.alternation[turn].pattern),
            printable(options_.alternation[turn].output));
    TrainingOptions own = options_;
    own.optimizer = options_.alternation[turn].optimizer;
    Builder& b = backward_builder("update/");
    if (!inputs_) inputs_ = add_step_inputs(b, trained, own);
    append_update(b, trained, *inputs_, own);
    for (std::size_t i = updates; i < graph_.updates.size(); ++i) {
      const Update& each = graph_.updates[i];
      if (graph_.value(each.state).kind != ValueKind::kParameter) continue;
      parameters_[each.state] = each.value;
    }
  }

  // The turn's loss of the parameters as they are now.
  ValueId computed_again(std::size_t turn) {
    const ValueId before = loss_of(turn);
    const std::vector<bool> wanted = needed_for(before);
    now_ = parameters_;
    nodes_ = model_;
    for (NodeId id : model_) {
      if (wanted[static_cast<std::size_t>(id)] && has_changed(id)) {
        nodes_.push_back(copy(id, turn));
      }
    }
    const auto found = now_.find(before);
    if (found == now_.end()) return before;
    const ValueId again = found->second;
    // What was computed with the old parameters is no use to anybody.
    const std::string name = graph_.value(before).name;
    graph_.rename(before, graph_.unique_name("before/" + name));
    graph_.rename(again, name);
    graph_.replace_output(before, again);
    return again;
  }

  std::vector<bool> needed_for(ValueId loss) const {
    std::vector<bool> wanted(graph_.node_capacity(), false);
    std::vector<NodeId> open = {graph_.value(loss).producer};
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (id == kNoNode || wanted[static_cast<std::size_t>(id)]) continue;
      wanted[static_cast<std::size_t>(id)] = true;
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] == kNoValue || carries_on(id, i)) continue;
        open.push_back(graph_.value(inputs[i]).producer);
      }
    }
    return wanted;
  }

  // Whether something that the node reads has another value by now.
  bool has_changed(NodeId id) const {
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (now_.contains(inputs[i]) && !carries_on(id, i)) return true;
    }
    return false;
  }

  NodeId copy(NodeId id, std::size_t turn) {
    const Node node = graph_.node(id);  // a copy: the graph's storage grows
    std::vector<ValueId> states(node.outputs.size(), kNoValue);  // by output, what it carries on
    Builder::Spec spec{
        .op = node.op,
        .name = "again/" + node.name,
        .inputs = node.inputs,
        .output_names = {},
        .attributes = node.attributes,
        .provenance = {.sources = node.provenance.sources, .pass = std::string(pass_)}};
    for (ValueId& input : spec.inputs) {
      if (const auto found = now_.find(input); found != now_.end()) input = found->second;
    }
    carry_on_states(id, spec.inputs, states);
    if (node.attributes.has("stream")) {
      spec.attributes.set("stream", node.attributes.integer("stream", 0) +
                                        static_cast<std::int64_t>(turn) * kStreamsOfTurn);
    }
    for (ValueId output : node.outputs) {
      spec.output_names.push_back(output == kNoValue ? "" : "again/" + graph_.value(output).name);
    }
    const NodeId made = backward_builder("again/").add(std::move(spec));
    rewriter_.copies(made, id);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      const ValueId now = graph_.node(made).outputs[i];
      if (states[i] != kNoValue) graph_.replace_output(states[i], now);
      now_[node.outputs[i]] = now;
    }
    return made;
  }

  // A batch norm that is computed again carries on the running statistics as they are by then.
  void carry_on_states(NodeId id, std::vector<ValueId>& inputs,
                       std::vector<ValueId>& states) const {
    for (const CarriedState& each : carried_) {
      if (each.node != id) continue;
      const auto update = std::ranges::find(graph_.updates, each.state, &Update::state);
      inputs[each.input] = update->value;
      states[each.output] = update->value;
    }
  }

  // What the node computes does not depend on the states that it carries on.
  bool carries_on(NodeId id, std::size_t input) const {
    return std::ranges::any_of(
        carried_, [&](const CarriedState& each) { return each.node == id && each.input == input; });
  }

  Rewriter& rewriter_;
  Graph& graph_;
  const TrainingOptions& options_;
  std::string_view pass_;
  const std::vector<CarriedState> carried_;
  const std::vector<NodeId> model_;
  std::vector<NodeId> nodes_ = model_;  // and what the present turn computes again, in order
  std::vector<std::vector<ValueId>> groups_;
  std::optional<StepInputs> inputs_;
  std::map<ValueId, ValueId> parameters_;  // what those that were updated are now
  std::map<ValueId, ValueId> now_;         // and the values of the turn that depend on them
};

}  // namespace

void append_alternation(Graph& graph, PassContext& context) {
  const TrainingOptions& options = context.options;
  check_alternation(options);
  Rewriter rewriter(graph, context.ops, context.pass, context.evaluate);
  Alternation(rewriter, context).run();
  if (!options.keep_outputs) release_model_outputs(graph);
  if (!options.keep_gradients) release_gradients(graph);
  context.count("turns", std::ssize(options.alternation));
}

}  // namespace trainscope
