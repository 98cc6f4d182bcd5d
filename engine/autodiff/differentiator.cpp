// Reverse-mode differentiation by the gradient rules of the op table.
#include "engine/autodiff/differentiator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/rewriter.h"
#include "engine/ir/well_known.h"
#include "engine/ops/rules/straight_through.h"

namespace trainscope {
namespace {

// Reverse-mode differentiation over the linear order: no recursion. Contributions to a value's
// gradient are added up as they arise, so that two of them are in memory at most.
class Differentiator {
 public:
  Differentiator(Rewriter& rewriter, Differentiation what, const TrainingOptions& options)
      : rewriter_(rewriter),
        graph_(rewriter.graph()),
        what_(std::move(what)),
        depends_(graph_.value_capacity(), false),
        sum_(graph_.value_capacity(), kNoValue),
        loss_scale_(options.mode == GraphMode::kTrain && options.precision == StepPrecision::kF16),
        straight_through_(options.straight_through) {
    find_dependents();
  }

  void run() {
    Builder& b = rewriter_.at_end(Phase::kBackward);
    b.set_prefix("grad/");
    add_contribution(b, what_.loss, first_gradient(b));
    for (auto id = what_.nodes.rbegin(); id != what_.nodes.rend(); ++id) differentiate(b, *id);
    refuse_missing_gradients();
    for (ValueId target : what_.targets) record_gradient(b, target);
    tie_gradients();
  }

  std::size_t without_gradient() const { return without_gradient_; }

 private:
  // That of the loss by itself; with loss scaling a state, which optimizer_step divides by.
  ValueId first_gradient(Builder& b) {
    constexpr float kFirstScale = 65536.0F;
    const DType dtype = b.type(what_.loss).dtype;
    if (!loss_scale_) return b.scalar(1.0, dtype);
    Tensor scale = convert(Tensor::scalar(kFirstScale), dtype);
    return b.state(kLossScaleState, scale.type(), std::make_shared<const Tensor>(std::move(scale)));
  }

  static std::size_t index(ValueId v) { return static_cast<std::size_t>(v); }

  bool is_straight(const Node& node) const { return straight_through_ && passes_straight(node); }
  bool has_no_gradient(const Node& node) const {
    return node.op->differentiable == Differentiable::kNo && !is_straight(node);
  }

  // Values through which a target can influence something.
  void find_dependents() {
    for (ValueId v : what_.targets) depends_[index(v)] = true;
    for (NodeId id : what_.nodes) {
      const Node& node = graph_.node(id);
      if (has_no_gradient(node)) continue;
      bool any = std::ranges::any_of(node.inputs, [this](ValueId v) {
        return v != kNoValue && depends_[index(v)] && is_float(graph_.value(v).type.dtype);
      });
      if (!any) continue;
      for (ValueId v : node.outputs) {
        if (v != kNoValue && is_float(graph_.value(v).type.dtype)) depends_[index(v)] = true;
      }
    }
  }

  void add_contribution(Builder& b, ValueId of, ValueId gradient) {
    if (of == kNoValue || gradient == kNoValue || !depends_[index(of)]) return;
    ValueId& sum = sum_[index(of)];
    sum = sum == kNoValue ? gradient : b("Add", {sum, gradient});
  }

  void differentiate(Builder& b, NodeId id) {
    const Node node = graph_.node(id);  // a copy: the graph's storage grows below
    b.set_provenance(
        {.sources = node.provenance.sources, .pass = "differentiate", .backward_of = node.serial});
    std::vector<ValueId> dy;
    for (ValueId v : node.outputs) dy.push_back(v == kNoValue ? kNoValue : sum_[index(v)]);
    if (std::ranges::all_of(dy, [](ValueId v) { return v == kNoValue; })) return;
    std::unique_ptr<bool[]> wanted = std::make_unique<bool[]>(node.inputs.size());
    bool any = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId v = node.inputs[i];
      wanted[i] = v != kNoValue && depends_[index(v)] && is_float(graph_.value(v).type.dtype);
      any = any || wanted[i];
    }
    if (!any || has_no_gradient(node)) return;
    if (is_straight(node)) return add_contribution(b, node.inputs[0], dy[0]);
    GradArgs args{.b = b,
                  .node = node,
                  .x = node.inputs,
                  .y = node.outputs,
                  .dy = dy,
                  .wanted = {wanted.get(), node.inputs.size()}};
    const std::vector<ValueId> dx = gradients_of_inputs(args);
    CHECK_INVARIANT(dx.size() == node.inputs.size());
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (!wanted[i] || dx[i] == kNoValue) continue;
      CHECK_INVARIANT(graph_.value(dx[i]).type == graph_.value(node.inputs[i]).type);
      add_contribution(b, node.inputs[i], dx[i]);
    }
  }

  // A node without a gradient is noted, and zeros go on in its place: one error names all of them.
  std::vector<ValueId> gradients_of_inputs(const GradArgs& args) {
    const Node& node = args.node;
    if (node.op->gradient == nullptr) {
      without_rule_[std::string(node.op->name)].push_back(node.name);
      return zeros(args);
    }
    try {
      return node.op->gradient(args);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kBadInput) throw;
      refusals_.push_back(fmt::format("gradient of {} '{}': {}", node.op->name,
                                      printable(node.name), error.message()));
      return zeros(args);
    }
  }

  std::vector<ValueId> zeros(const GradArgs& args) const {
    std::vector<ValueId> dx(args.x.size(), kNoValue);
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (!args.wanted[i]) continue;
      const TensorType type = args.type(args.x[i]);  // a copy: the graph grows
      const ValueId zero = args.b.scalar(0.0, type.dtype);
      const std::span<const std::int64_t> dims = type.shape.span();
      dx[i] = args.b("Expand", {zero, args.b.ints(Ints(dims.begin(), dims.end()))});
    }
    return dx;
  }

  void refuse_missing_gradients() {
    if (without_rule_.empty() && refusals_.empty()) return;
    Error error(ErrorCode::kBadInput, "the model cannot be trained: ops without a gradient");
    for (auto& [op, nodes] : without_rule_) {
      std::ranges::reverse(nodes);
      error.at(fmt::format("{}: {} node{}: {}", op, nodes.size(), nodes.size() == 1 ? "" : "s",
                           printable(join(nodes, ", "), 400)));
    }
    std::ranges::reverse(refusals_);
    for (std::string& refusal : refusals_) error.at(std::move(refusal));
    throw error.mark_unsupported().hint(
        "freeze the parameters before these nodes (--freeze PATTERN)");
  }

  void record_gradient(Builder& b, ValueId target) {
    b.set_provenance({.sources = {}, .pass = "differentiate"});
    ValueId gradient = sum_[index(target)];
    if (gradient == kNoValue) {
      ++without_gradient_;
      return;
    }
    // Two targets may share one gradient value (x and y of x + y): each gets a name of its own.
    bool plain_node =
        graph_.value(gradient).kind == ValueKind::kNode && !graph_.is_output(gradient);
    if (!plain_node) gradient = b("Identity", {gradient});
    graph_.rename(gradient, graph_.unique_name("grad/" + graph_.value(target).name));
    graph_.gradients.push_back({target, gradient});
    sum_[index(target)] = gradient;
  }

  // Each gradient knows the values that it is of.
  void tie_gradients() {
    for (std::size_t v = 0; v < sum_.size(); ++v) {
      if (sum_[v] == kNoValue) continue;
      const Serial of = graph_.value(static_cast<ValueId>(v)).serial;
      graph_.value(sum_[v]).gradient_of.add(of);
    }
  }

  Rewriter& rewriter_;
  Graph& graph_;
  const Differentiation what_;
  std::vector<bool> depends_;
  std::vector<ValueId> sum_;  // by value: its gradient so far
  bool loss_scale_;
  bool straight_through_;
  std::map<std::string, std::vector<std::string>> without_rule_;  // op: its nodes, last first
  std::vector<std::string> refusals_;                             // last node first
  std::size_t without_gradient_ = 0;
};

}  // namespace

std::size_t append_gradients(Rewriter& rewriter, Differentiation what,
                             const TrainingOptions& options) {
  Differentiator differentiator(rewriter, std::move(what), options);
  differentiator.run();
  return differentiator.without_gradient();
}

}  // namespace trainscope
