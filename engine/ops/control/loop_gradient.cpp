// The gradient of Loop: a Loop over the trips from the last to the first.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/control/loop.h"
#include "engine/ops/rules/straight_through.h"

namespace trainscope {
namespace {

// Reverse mode over the body's nodes, computed once more in another graph.
class BodyGradient {
 public:
  BodyGradient(const Graph& body, Builder& inside, bool straight_through)
      : body_(body), b_(inside), straight_through_(straight_through) {}

  // What stands for a value of the body in the other graph.
  void set_copy(ValueId of, ValueId copy) { copies_[of] = copy; }
  // The gradient of a value of the body, or one that is added to it.
  void add(ValueId of, ValueId gradient) {
    const auto [sum, fresh] = sums_.emplace(of, gradient);
    if (!fresh) sum->second = b_("Add", {sum->second, gradient});
  }
  ValueId of(ValueId value) const {
    const auto sum = sums_.find(value);
    return sum == sums_.end() ? kNoValue : sum->second;
  }

  // `active`: the inputs whose gradients are asked for.
  void run(const std::vector<ValueId>& active) {
    const std::vector<NodeId> order = body_.order();
    find_dependents(order, active);
    for (const NodeId id : order) copy_node(id);
    for (auto id = order.rbegin(); id != order.rend(); ++id) differentiate(*id);
  }

 private:
  bool is_wanted(ValueId v) const {
    return v != kNoValue && depends_[static_cast<std::size_t>(v)] &&
           is_float(body_.value(v).type.dtype);
  }

  bool is_straight(const Node& node) const { return straight_through_ && passes_straight(node); }
  bool has_no_gradient(const Node& node) const {
    return node.op->differentiable == Differentiable::kNo && !is_straight(node);
  }

  void find_dependents(const std::vector<NodeId>& order, const std::vector<ValueId>& active) {
    depends_.assign(body_.value_capacity(), false);
    for (const ValueId v : active) depends_[static_cast<std::size_t>(v)] = true;
    for (const NodeId id : order) {
      const Node& node = body_.node(id);
      if (has_no_gradient(node)) continue;
      const bool any = std::ranges::any_of(node.inputs, [this](ValueId v) { return is_wanted(v); });
      for (const ValueId v : node.outputs) {
        if (any && v != kNoValue) depends_[static_cast<std::size_t>(v)] = true;
      }
    }
  }

  ValueId copy_of(ValueId v) {
    if (v == kNoValue) return kNoValue;
    const auto known = copies_.find(v);
    if (known != copies_.end()) return known->second;
    const Value& value = body_.value(v);
    CHECK_INVARIANT(value.kind == ValueKind::kConstant);
    return copies_[v] = b_.constant(*value.data, value.name);
  }

  void copy_node(NodeId id) {
    Node node = body_.node(id);
    for (ValueId& input : node.inputs) input = copy_of(input);
    std::vector<Value> outputs;
    for (const ValueId v : node.outputs) {
      outputs.push_back(v == kNoValue ? Value{} : body_.value(v));
      outputs.back().uses.clear();
      if (v != kNoValue) outputs.back().name = b_.graph().unique_name(outputs.back().name);
    }
    const NodeId copy = b_.graph().add_node(std::move(node), outputs, kNoNode);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const ValueId original = body_.node(id).outputs[i];
      if (original != kNoValue) copies_[original] = b_.graph().node(copy).outputs[i];
    }
    node_copies_[id] = copy;
  }

  void differentiate(NodeId id) {
    const Node& original = body_.node(id);
    const Node node = b_.graph().node(node_copies_.at(id));  // a copy: the graph's storage grows
    Values dy;
    for (const ValueId v : original.outputs) dy.push_back(v == kNoValue ? kNoValue : of(v));
    const std::size_t count = original.inputs.size();
    const auto wanted = std::make_unique<bool[]>(count);
    for (std::size_t i = 0; i < count; ++i) wanted[i] = is_wanted(original.inputs[i]);
    const bool any = std::any_of(wanted.get(), wanted.get() + count, [](bool w) { return w; });
    const bool reached = std::ranges::any_of(dy, [](ValueId v) { return v != kNoValue; });
    if (!any || !reached || has_no_gradient(node)) return;
    if (is_straight(node)) return add(original.inputs[0], dy[0]);
    require_supported(node.op->gradient != nullptr, "{} '{}' in its body has no gradient",
                      node.op->name, printable(node.name));
    const Values dx = node.op->gradient({.b = b_,
                                         .node = node,
                                         .x = node.inputs,
                                         .y = node.outputs,
                                         .dy = dy,
                                         .wanted = {wanted.get(), count}});
    CHECK_INVARIANT(dx.size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      if (wanted[i] && dx[i] != kNoValue) add(original.inputs[i], dx[i]);
    }
  }

  const Graph& body_;
  Builder& b_;
  bool straight_through_;
  std::map<ValueId, ValueId> copies_;
  std::map<NodeId, NodeId> node_copies_;
  std::map<ValueId, ValueId> sums_;
  std::vector<bool> depends_;  // by value of the body: through it an active input has an influence
};

// Inputs are added in the order of Loop's: what is carried, what is sliced, what is the same in all
// trips. The body's gradient has all of them before it is made.
class LoopGradient {
 public:
  explicit LoopGradient(const GradArgs& g)
      : g_(g),
        form_(g.node.attributes),
        body_(form_.body),
        inside_(graph_, g.b.ops()),
        gradient_(body_, inside_, g.node.attributes.integer(kStraightThrough, 0) != 0) {
    inside_.set_provenance({.sources = g.node.provenance.sources, .pass = "differentiate"});
  }

  Values run() {
    add_number();
    add_carried_gradients();
    add_sums();
    const int carried = static_cast<int>(inputs_.size()) - 1;
    add_saved();
    add_slices();
    add_stack_gradients();
    const int sliced = static_cast<int>(inputs_.size()) - 1 - carried;
    add_outer();
    gradient_.run(active_);
    return results(carried, sliced);
  }

 private:
  ValueId body_input(int i) const { return body_.inputs[static_cast<std::size_t>(i)]; }
  ValueId body_output(int i) const { return body_.outputs[static_cast<std::size_t>(i)]; }
  ValueId x(int i) const { return g_.x[static_cast<std::size_t>(i)]; }
  ValueId y(int i) const { return g_.y[static_cast<std::size_t>(i)]; }
  ValueId dy(int i) const { return g_.dy[static_cast<std::size_t>(i)]; }
  bool is_float_value(ValueId v) const { return is_float(body_.value(v).type.dtype); }
  bool is_wanted(int i) const { return g_.wants(i) && is_float_value(body_input(i)); }

  // An input of the new body, and of the new node.
  ValueId add_input(ValueId like, const std::string& prefix, ValueId outer) {
    inputs_.push_back(outer);
    const Value& value = body_.value(like);
    return inside_.input(prefix + value.name, value.type);
  }

  void add_number() {
    const ValueId trips = form_.has_condition ? y(form_.output_count() - 1) : x(0);
    CHECK_INVARIANT(trips != kNoValue);
    gradient_.set_copy(body_input(0), add_input(body_input(0), "", trips));
  }

  // Of what a trip carries on: at first what reaches the loop's results.
  void add_carried_gradients() {
    for (int i = 0; i < form_.carried; ++i) {
      const ValueId in = body_input(1 + i);
      if (!is_float_value(in)) continue;
      const ValueId last = dy(i) != kNoValue ? dy(i) : zeros(g_.b, body_.value(in).type);
      gradient_.add(body_output(i), add_input(in, "grad/", last));
      active_.push_back(in);
      carried_.push_back(i);
    }
  }

  // Over all trips, of what is the same in them.
  void add_sums() {
    for (int i = form_.first_outer(); i < form_.input_count(); ++i) {
      if (!is_wanted(i)) continue;
      const ValueId in = body_input(i);
      sums_.emplace_back(i, add_input(in, "sum/", zeros(g_.b, body_.value(in).type)));
      active_.push_back(in);
    }
  }

  // What had been carried to each trip: the stacked output that is this input of the body.
  void add_saved() {
    for (int i = 0; i < form_.carried; ++i) {
      const ValueId in = body_input(1 + i);
      if (body_.value(in).uses.empty()) continue;
      const auto first = body_.outputs.begin() + form_.carried;
      const auto found = std::find(first, first + form_.stacked, in);
      const auto at = static_cast<int>(found - body_.outputs.begin());
      const bool is_saved = found != first + form_.stacked && y(at) != kNoValue;
      require(is_saved, ErrorCode::kBadInput,
              "'{}' is carried, but what each trip had of it is no output",
              printable(body_.value(in).name));
      gradient_.set_copy(in, add_input(in, "", y(at)));
    }
  }

  void add_slices() {
    for (int i = form_.first_sliced(); i < form_.first_outer(); ++i) {
      gradient_.set_copy(body_input(i), add_input(body_input(i), "", x(i)));
      if (is_wanted(i)) active_.push_back(body_input(i));
    }
  }

  void add_stack_gradients() {
    for (int i = form_.carried; i < form_.carried + form_.stacked; ++i) {
      if (dy(i) == kNoValue) continue;
      gradient_.add(body_output(i), add_input(body_output(i), "grad/", dy(i)));
    }
  }

  void add_outer() {
    for (int i = form_.first_outer(); i < form_.input_count(); ++i) {
      gradient_.set_copy(body_input(i), add_input(body_input(i), "", x(i)));
    }
  }

  ValueId gradient_or_zeros(ValueId of) {
    const ValueId gradient = gradient_.of(of);
    return gradient != kNoValue ? gradient : zeros(inside_, body_.value(of).type);
  }

  Values results(int carried, int sliced) {
    std::vector<int> of;  // input that an output is the gradient of
    for (const int i : carried_) {
      graph_.outputs.push_back(gradient_or_zeros(body_input(1 + i)));
      of.push_back(1 + i);
    }
    for (const auto& [input, sum] : sums_) {
      const ValueId more = gradient_.of(body_input(input));
      graph_.outputs.push_back(more == kNoValue ? sum : inside_("Add", {sum, more}));
      of.push_back(input);
    }
    for (int i = form_.first_sliced(); i < form_.first_outer(); ++i) {
      if (!is_wanted(i)) continue;
      graph_.outputs.push_back(gradient_or_zeros(body_input(i)));
      of.push_back(i);
    }
    Values gradients(g_.x.size(), kNoValue);
    if (of.empty()) return gradients;
    const Values made = g_.b.multi("Loop", inputs_, static_cast<int>(of.size()),
                                   {{"body", std::make_shared<const Graph>(std::move(graph_))},
                                    {"carried", std::int64_t{carried}},
                                    {"sliced", std::int64_t{sliced}},
                                    {"max_trips", form_.most},
                                    {"reverse", std::int64_t{form_.backwards ? 0 : 1}}});
    for (std::size_t k = 0; k < of.size(); ++k)
      gradients[static_cast<std::size_t>(of[k])] = made[k];
    return gradients;
  }

  const GradArgs& g_;
  LoopForm form_;
  const Graph& body_;
  Graph graph_;  // the new body
  Builder inside_;
  BodyGradient gradient_;
  Values inputs_;                              // of the new node
  std::vector<int> carried_;                   // of the floats that the loop carries
  std::vector<std::pair<int, ValueId>> sums_;  // input of the loop, its sum before a trip
  std::vector<ValueId> active_;
};

}  // namespace

Values loop_gradient(const GradArgs& g) { return LoopGradient(g).run(); }

}  // namespace trainscope
