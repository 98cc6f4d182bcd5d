// Values of all rows, and what may go wrong with each of them.
#include "tests/engine/bisect/generated_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>
#include <vector>

#include "engine/bisect/variants.h"
#include "engine/core/error.h"
#include "engine/ir/op_def.h"
#include "kernels/api/random.h"

namespace trainscope::test {
namespace {

constexpr std::array<double, 6> kFactors = {1.01, 0.5, 2.0, -1.0, 0.9, 1.001};
constexpr std::array<std::string_view, 8> kUnary = {"Relu", "Tanh", "Erf", "Sigmoid",
                                                    "Exp",  "Neg",  "Abs", "Identity"};

struct NamedChange {
  std::string what;
  Planter::Change change;
};

ValueId sliced(Builder& b, ValueId x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
  return b("Slice", {x, b.ints({begin}), b.ints({end}), b.ints({axis})});
}

// The elements along an axis one place further, the last one first.
ValueId rolled(Builder& b, ValueId x, std::int64_t axis) {
  const std::int64_t size = b.shape(x)[static_cast<int>(axis)];
  return b("Concat", {sliced(b, x, axis, size - 1, size), sliced(b, x, axis, 0, size - 1)},
           {{"axis", axis}});
}

// The first slice of an axis twice as large.
ValueId first_doubled(Builder& b, ValueId x, std::int64_t axis) {
  const std::int64_t size = b.shape(x)[static_cast<int>(axis)];
  return b("Concat", {times(b, sliced(b, x, axis, 0, 1), 2.0), sliced(b, x, axis, 1, size)},
           {{"axis", axis}});
}

ValueId rounded(Builder& b, ValueId x) {
  const auto bf16 = static_cast<std::int64_t>(row_of(DType::kBF16).onnx_number);
  const auto f32 = static_cast<std::int64_t>(row_of(DType::kF32).onnx_number);
  return b("Cast", {b("Cast", {x}, {{"to", bf16}})}, {{"to", f32}});
}

// What may be wrong with any value of this type.
NamedChange any_change(const TensorType& type, Draw& draw) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < type.shape.rank; ++axis) {
    if (type.shape[axis] > 1) axes.push_back(axis);
  }
  const std::size_t kind = draw.below(axes.empty() ? 3 : 5);
  if (kind == 0) return {"zeros", [](Builder& b, ValueId x) { return times(b, x, 0.0); }};
  if (kind == 1) return {"rounded to bf16", rounded};
  if (kind == 2) {
    const double factor = kFactors[draw.below(kFactors.size())];
    return {fmt::format("scaled by {}", factor),
            [factor](Builder& b, ValueId x) { return times(b, x, factor); }};
  }
  const std::int64_t axis = axes[draw.below(axes.size())];
  if (kind == 3) {
    return {fmt::format("off by one along axis {}", axis),
            [axis](Builder& b, ValueId x) { return rolled(b, x, axis); }};
  }
  return {fmt::format("the first slice of axis {} doubled", axis),
          [axis](Builder& b, ValueId x) { return first_doubled(b, x, axis); }};
}

class Generator {
 public:
  Generator(Planter& planter, const Subject& subject, Draw& draw)
      : p_(planter), subject_(subject), draw_(draw) {}

  std::optional<GeneratedFault> run() {
    const std::size_t phase = draw_.below(100);
    if (phase < 45) return forward();
    if (phase < 80) return backward();
    return update();
  }

 private:
  bool has_row(ValueId value) const {
    const TracedAs& as = subject_.plain.values().of(value);
    return as.kind != profiler::TraceKind::kOwn && as.kind != profiler::TraceKind::kInput;
  }
  bool is_single(ValueId value) const {
    const TensorType& type = p_.graph().value(value).type;
    return type.dtype == DType::kF32 && type.elements() > 1;
  }

  std::vector<NodeId> nodes_of(Phase phase) const {
    std::vector<NodeId> nodes;
    for (const NodeId id : p_.graph().order()) {
      const Node& node = p_.graph().node(id);
      const ValueId out = node.outputs.front();
      if (node.phase == phase && out != kNoValue && has_row(out) && is_single(out)) {
        nodes.push_back(id);
      }
    }
    return nodes;
  }

  // An attribute with another value: by the variants that a diagnosis tries too, which is how a
  // mistake is explained, not how it is found.
  std::optional<std::string> change_attribute(NodeId id) {
    const Node node = p_.graph().node(id);
    std::vector<NodeVariant> variants = variants_of(p_.graph(), node);
    std::erase_if(variants, [&](const NodeVariant& v) { return v.node.inputs != node.inputs; });
    if (variants.empty()) return std::nullopt;
    const NodeVariant& variant = variants[draw_.below(variants.size())];
    for (const auto& [name, value] : variant.node.attributes.map()) p_.set(id, name, value);
    return variant.what;
  }

  std::optional<std::string> change_op(NodeId id) {
    const Node& node = p_.graph().node(id);
    if (std::ranges::find(kUnary, node.op->name) == kUnary.end()) return std::nullopt;
    const std::string_view other = kUnary[draw_.below(kUnary.size())];
    if (other == node.op->name) return std::nullopt;
    const std::string what = fmt::format("{} for {}", other, node.op->name);
    p_.set_op(id, other);
    return what;
  }

  std::optional<std::string> change_operands(NodeId id) {
    const Node node = p_.graph().node(id);
    if (node.inputs.size() != 2) return std::nullopt;
    const auto type = [&](std::size_t i) { return p_.graph().value(node.inputs[i]).type; };
    if (type(0) != type(1)) return std::nullopt;
    if (node.op->name == "Add" || node.op->name == "Mul") {
      p_.remake(id,
                [](Builder& b, const std::vector<ValueId>& x) { return b("Identity", {x[0]}); });
      return "the second operand left out";
    }
    p_.swap_inputs(id, 0, 1);
    return "operands swapped";
  }

  std::optional<GeneratedFault> forward() {
    const std::vector<NodeId> nodes = nodes_of(Phase::kForward);
    const NodeId id = nodes[draw_.below(nodes.size())];
    GeneratedFault fault{.phase = Phase::kForward, .what = {}, .expected = {.node = p_.name(id)}};
    std::optional<std::string> what;
    switch (draw_.below(5)) {
      case 0:
      case 1:
        what = change_attribute(id);
        break;
      case 2:
        what = change_op(id);
        break;
      case 3:
        what = change_operands(id);
        break;
      default: {
        const ValueId out = p_.output(id);
        NamedChange change = any_change(p_.graph().value(out).type, draw_);
        p_.transform(out, change.change);
        what = change.what;
      }
    }
    if (!what) return std::nullopt;
    fault.what =
        fmt::format("{} '{}': {}", p_.graph().node(id).op->name, fault.expected.node, *what);
    return fault;
  }

  std::optional<GeneratedFault> backward() {
    const std::vector<NodeId> nodes = nodes_of(Phase::kBackward);
    const NodeId id = nodes[draw_.below(nodes.size())];
    const Node node = p_.graph().node(id);
    if (node.provenance.backward_of == kNoSerial) return std::nullopt;
    GeneratedFault fault{.phase = Phase::kBackward, .what = {}, .expected = {.node = p_.name(id)}};
    // A sum of two readers' contributions: one of them is wrong.
    const bool is_sum = node.op->name == "Add" && node.inputs.size() == 2;
    NamedChange change = any_change(p_.graph().value(node.outputs[0]).type, draw_);
    if (is_sum) {
      const NodeId part = p_.graph().value(node.inputs[1]).producer;
      if (part == kNoNode ||
          p_.graph().node(part).provenance.backward_of != node.provenance.backward_of) {
        return std::nullopt;
      }
      p_.change_input(id, 1, change.change);
    } else {
      p_.transform(node.outputs[0], change.change);
    }
    fault.what = fmt::format("gradient {} of '{}': {}", p_.graph().value(node.outputs[0]).name,
                             fault.expected.node, change.what);
    return fault;
  }

  std::optional<GeneratedFault> update() {
    GeneratedFault fault{
        .phase = Phase::kUpdate, .what = {}, .expected = {.kind = FaultKind::kOptimizer}};
    NodeId step = kNoNode;
    for (const NodeId id : p_.graph().order()) {
      const Node& node = p_.graph().node(id);
      if (node.phase == Phase::kUpdate && node.op->name.ends_with("Step")) step = id;
    }
    if (step == kNoNode) return std::nullopt;
    const std::vector<ValueId> parameters = p_.graph().values_of(ValueKind::kParameter);
    const ValueId parameter = parameters[draw_.below(parameters.size())];
    const std::string name = p_.graph().value(parameter).name;
    const std::size_t kind = draw_.below(3);
    if (kind == 0) {
      p_.forget_update(name);
      fault.expected.key = "param:" + name;
      fault.what = fmt::format("{} is not updated", name);
      return fault;
    }
    if (kind == 1) {
      const std::optional<std::string> what = change_attribute(step);
      if (!what) return std::nullopt;
      fault.what = *what;
      return fault;
    }
    const std::vector<ValueId> inputs = p_.graph().node(step).inputs;
    const auto place = std::ranges::find(inputs, p_.gradient_of(name));
    if (place == inputs.end()) return std::nullopt;
    NamedChange change = any_change(p_.graph().value(parameter).type, draw_);
    p_.change_input(step, static_cast<int>(place - inputs.begin()), change.change);
    fault.what = fmt::format("the gradient of {} as the update reads it: {}", name, change.what);
    return fault;
  }

  Planter& p_;
  const Subject& subject_;
  Draw& draw_;
};

}  // namespace

std::size_t Draw::below(std::size_t bound) {
  return static_cast<std::size_t>(random_u64(seed_, 77, next_++) % bound);
}

bool Draw::chance(double share) { return static_cast<double>(below(1000)) < 1000.0 * share; }

std::optional<GeneratedFault> plant_any(Planter& planter, const Subject& subject, Draw& draw) {
  try {
    return Generator(planter, subject, draw).run();
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace trainscope::test
