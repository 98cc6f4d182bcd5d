// Hypotheses one after the other, each held against what the run has.
#include "engine/bisect/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "engine/bisect/contributions.h"
#include "engine/bisect/variants.h"
#include "engine/core/error.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

using profiler::TraceKind;

// Cones of more nodes, and more variants, take too long to be tried.
constexpr std::size_t kMostNodes = 12;
constexpr std::size_t kMostVariants = 400;

// A part of a gradient's sum, and the reader of the value that it comes from.
struct Contribution {
  ValueId value;
  NamedNode reader;
};

class Diagnoser {
 public:
  explicit Diagnoser(const Suspect& suspect)
      : suspect_(suspect),
        graph_(suspect.step.graph()),
        seen_(suspect.seen.coordinates()),
        producer_(graph_.value(suspect.out).producer) {
    const TraceKind kind = suspect.seen.row().kind;
    is_gradient_ = kind == TraceKind::kGradient || kind == TraceKind::kActivationGradient;
  }

  Diagnosis run() {
    found_.node = is_gradient_ ? reader_or_producer() : model_node(graph_, node(producer_));
    const Tensor& computed = tensor(suspect_.out);
    if (!suspect_.seen.fits(computed)) return of_other_count(computed);
    if (suspect_.special) return of_specials(computed);
    made_ = suspect_.seen.coordinates_of(computed);
    error_ = distance(made_, seen_);
    const bool done = is_gradient_ ? by_contributions() : by_move();
    // What an optimizer's setting explains is no factor by chance.
    const bool of_update = node(producer_).phase == Phase::kUpdate;
    if (!done && !(of_update && by_variants()) && !by_factor() && !by_variants()) by_order();
    return std::move(found_);
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  const Tensor& tensor(ValueId id) const { return *suspect_.values[static_cast<std::size_t>(id)]; }
  bool explains(const Coordinates& other) const {
    return distance(other, seen_) <= std::max(suspect_.tolerance, kLeft * error_);
  }
  bool say(FaultKind kind, std::string cause) {
    found_.kind = kind;
    found_.cause = std::move(cause);
    return true;
  }

  Diagnosis of_other_count(const Tensor& computed) {
    const std::int64_t count = suspect_.seen.row().statistics.count;
    say(is_gradient_ ? FaultKind::kGraph : FaultKind::kOp,
        fmt::format("{} elements, not {}{}", count, computed.elements(),
                    is_gradient_ ? ": a broadcast is not reduced" : ""));
    return std::move(found_);
  }

  Diagnosis of_specials(const Tensor& computed) {
    const profiler::TensorStatistics& s = suspect_.seen.row().statistics;
    const profiler::TensorStatistics exact =
        profiler::summary_of(computed.dtype(), {computed.data(), computed.bytes()}).statistics;
    const double largest = std::max(std::abs(exact.least), std::abs(exact.most));
    const bool overflows = s.nan + s.positive_infinite > exact.nan + exact.positive_infinite;
    if (overflows) {
      say(FaultKind::kOverflow,
          fmt::format("{} NaN and {} +infinity where the largest exact element is {:.4g}", s.nan,
                      s.positive_infinite, largest));
    } else {
      say(FaultKind::kOp, "finite elements where NaN or infinities belong");
    }
    return std::move(found_);
  }

  // --- Gradients ---------------------------------------------------------------------------------
  // The value whose gradient this is: its name is that of the key.
  ValueId differentiated() const {
    const std::string name = suspect_.key.substr(suspect_.key.find(':') + 1);
    for (const ValueId id : graph_.live_values()) {
      const TracedAs& as = suspect_.step.values().of(id);
      const bool is_value = as.kind == TraceKind::kActivation || as.kind == TraceKind::kParameter ||
                            as.kind == TraceKind::kInput || as.kind == TraceKind::kLoss;
      if (is_value && as.name == name) return id;
    }
    return kNoValue;
  }

  std::vector<NodeId> readers() const {
    std::vector<NodeId> result;
    const ValueId value = differentiated();
    if (value == kNoValue) return result;
    for (const Use& use : graph_.value(value).uses) {
      const bool of_model = node(use.node).phase == Phase::kForward;
      if (of_model && std::ranges::find(result, use.node) == result.end()) {
        result.push_back(use.node);
      }
    }
    return result;
  }

  // A gradient that several values have is made by the last one's reader: where it is wrong for one
  // of them alone, by that one's.
  NamedNode reader_or_producer() const {
    const std::vector<NodeId> nodes = readers();
    const bool by_reader = suspect_.alone && nodes.size() == 1;
    return model_node(graph_, node(by_reader ? nodes.front() : producer_));
  }

  bool in_cone(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return std::ranges::find(suspect_.cone, producer) != suspect_.cone.end();
  }

  // Whether a node adds two readers' contributions, not two terms of one rule.
  bool adds_readers(const Node& sum) const {
    if (!is_op(sum, kOnnxDomain, "Add") || sum.provenance.backward_of == kNoSerial) return false;
    const auto reader = [this](ValueId value) {
      const NodeId producer = graph_.value(value).producer;
      return producer == kNoNode || !in_cone(value) ? kNoSerial
                                                    : node(producer).provenance.backward_of;
    };
    const Serial a = reader(sum.inputs[0]);
    const Serial b = reader(sum.inputs[1]);
    return a == kNoSerial || b == kNoSerial || a != b;
  }

  std::vector<Contribution> contributions() const {
    std::vector<Contribution> result;
    std::vector<ValueId> open = {suspect_.out};
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (in_cone(value) && adds_readers(node(graph_.value(value).producer))) {
        const Node& sum = node(graph_.value(value).producer);
        open.insert(open.end(), sum.inputs.rbegin(), sum.inputs.rend());
        continue;
      }
      result.push_back({.value = value, .reader = reader_of(value)});
    }
    return result;
  }

  // A gradient that passes through a node unchanged is that of one of its outputs.
  NamedNode reader_of(ValueId contribution) const {
    if (in_cone(contribution)) {
      return model_node(graph_, node(graph_.value(contribution).producer));
    }
    const Serials& of = graph_.value(contribution).gradient_of;
    for (const NodeId id : readers()) {
      for (const ValueId out : node(id).outputs) {
        const bool passes =
            out != kNoValue && std::ranges::find(of, graph_.value(out).serial) != of.end();
        if (passes) return model_node(graph_, node(id));
      }
    }
    return reader_or_producer();
  }

  bool by_contributions() {
    if (norm_of(seen_) <= kLeft * norm_of(made_)) {
      return say(FaultKind::kGraph, "no gradient arrives: an edge is missing");
    }
    const std::vector<Contribution> parts = contributions();
    if (parts.size() < 2) return false;
    std::vector<Coordinates> elements;
    for (const Contribution& part : parts) {
      elements.push_back(suspect_.seen.coordinates_of(tensor(part.value)));
    }
    const std::optional<Explanation> best = explained_by(sum_of(seen_, -1.0, made_), elements);
    if (!best) return false;
    found_.node = parts[best->part].reader;
    if (best->left > std::max(suspect_.tolerance, kLeft * error_)) return false;
    ContributionFault fault = contribution_fault(found_.node, 1.0 + best->factor);
    return say(fault.kind, std::move(fault.cause));
  }

  // --- Parameters after the update ---------------------------------------------------------------
  bool by_move() {
    if (suspect_.seen.row().kind != TraceKind::kParameter) return false;
    const ValueId parameter = parameter_before();
    if (parameter == kNoValue) return false;
    const Coordinates before = suspect_.seen.coordinates_of(tensor(parameter));
    if (explains(before)) return say(FaultKind::kOptimizer, "the parameter is not updated");
    const Coordinates move = sum_of(made_, -1.0, before);
    const Coordinates moved = sum_of(seen_, -1.0, before);
    const double square = inner_product(move, move);
    if (square == 0.0) return false;
    const double factor = inner_product(moved, move) / square;
    if (!explains(sum_of(before, factor, move))) return false;
    return say(
        FaultKind::kOptimizer,
        fmt::format("it moves {:.4g} times as far as it must: another learning rate or scale "
                    "of gradients",
                    factor));
  }

  ValueId parameter_before() const {
    for (const Update& update : graph_.updates) {
      if (update.value == suspect_.out) return update.state;
    }
    return kNoValue;
  }

  // --- Any result --------------------------------------------------------------------------------
  bool by_factor() {
    const double square = inner_product(made_, made_);
    if (square == 0.0) return false;
    const double factor = inner_product(seen_, made_) / square;
    Coordinates scaled = made_;
    for (double& x : scaled) x *= factor;
    if (!explains(scaled)) return false;
    const std::string text =
        std::abs(factor) < kLeft ? "zeros" : fmt::format("it is {}", factor_text(factor));
    return say(FaultKind::kOp, text);
  }

  bool by_variants() {
    if (suspect_.cone.size() > kMostNodes) return false;
    std::size_t tried = 0;
    for (const NodeId id : suspect_.cone) {
      for (const NodeVariant& variant : variants_of(graph_, node(id))) {
        if (++tried > kMostVariants) return false;
        const std::optional<Tensor> result = with(id, variant.node);
        if (!result || !suspect_.seen.fits(*result)) continue;
        if (!explains(suspect_.seen.coordinates_of(*result))) continue;
        if (!is_gradient_) found_.node = model_node(graph_, node(id));
        return say(FaultKind::kOp, variant.what);
      }
    }
    return false;
  }

  // The value where one node of the cone is another; none where it does not fit.
  std::optional<Tensor> with(NodeId changed, const Node& other) const {
    std::vector<SharedTensor> values = suspect_.values;
    try {
      for (const NodeId id : suspect_.cone) {
        compute_node(graph_, id == changed ? other : node(id), suspect_.step.evaluate(), values);
      }
    } catch (const Error&) {
      return std::nullopt;
    }
    return *values[static_cast<std::size_t>(suspect_.out)];
  }

  bool by_order() {
    if (!suspect_.seen.elements()) return false;
    Coordinates a = made_;
    Coordinates b = seen_;
    std::ranges::sort(a);
    std::ranges::sort(b);
    if (distance(a, b) > kLeft * error_) return false;
    return say(FaultKind::kOp, "the same elements in another order: an axis or a transposition");
  }

  const Suspect& suspect_;
  const Graph& graph_;
  const Coordinates& seen_;
  const NodeId producer_;
  bool is_gradient_ = false;
  Coordinates made_;
  double error_ = 0.0;
  Diagnosis found_;
};

}  // namespace

Diagnosis diagnose(const Suspect& suspect) { return Diagnoser(suspect).run(); }

}  // namespace trainscope
