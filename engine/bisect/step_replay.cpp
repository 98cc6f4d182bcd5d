// Node by node: what the run's inputs make, what the run has, and its elements in the place of
// ours.
#include "engine/bisect/step_replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "engine/bisect/diagnosis.h"
#include "engine/bisect/limits.h"
#include "engine/bisect/typed_inputs.h"
#include "engine/core/error.h"
#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

using profiler::TraceKind;
using profiler::TracePhase;

constexpr double kFactor = profiler::kNoiseFactor;
constexpr double kPerturbation = 0x1p-24;       // relative error of an input element
constexpr double kOfParameter = 1.5 * 0x1p-23;  // rounding of p + change, of parameters

// +1 or -1, as chance has it, another chance for each value.
double sign_at(ValueId of, std::size_t i) {
  std::uint64_t h = (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15U;
  h ^= (static_cast<std::uint64_t>(of) + 1) * 0xBF58476D1CE4E5B9U;
  h = (h ^ (h >> 32U)) * 0xD6E8FEB86659FD93U;
  return (h >> 63U) == 0 ? 1.0 : -1.0;
}

// Each element moved by `relative` of itself and `absolute`.
SharedTensor perturbed(ValueId of, const SharedTensor& tensor, double relative, double absolute) {
  if (tensor == nullptr || tensor->dtype() != DType::kF64) return tensor;
  auto result = std::make_shared<Tensor>(*tensor);
  const std::span<double> elements = result->values<double>();
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (std::isfinite(elements[i]))
      elements[i] += sign_at(of, i) * (relative * elements[i] + absolute);
  }
  return result;
}

bool is_of_gradient(const profiler::TraceRow& row) {
  return row.kind == TraceKind::kGradient || row.kind == TraceKind::kActivationGradient;
}

}  // namespace

StepReplay::StepReplay(const DefinedStep& step, const profiler::IndexedTrace& run, LimitOf limit_of,
                       double rounding)
    : step_(step),
      run_(run),
      limit_of_(std::move(limit_of)),
      rounding_(rounding),
      order_(graph().order()),
      position_(graph().node_capacity(), 0) {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    position_[static_cast<std::size_t>(order_[i])] = i;
  }
  for (const Update& update : graph().updates) {
    next_.emplace(graph().value(update.state).name, update.value);
  }
}

const Tensor* StepReplay::next_of(const std::string& name) const {
  const auto found = next_.find(name);
  return found == next_.end() ? nullptr : truth_[static_cast<std::size_t>(found->second)].get();
}

Trust StepReplay::trust_of_next(const std::string& name) const {
  return trust_[static_cast<std::size_t>(next_.at(name))];
}

void StepReplay::begin(const ReplayInputs& inputs, bool is_update) {
  const Values before = std::move(truth_);
  const std::map<std::string, Tensor> given = typed_for(graph(), inputs.tensors);
  truth_ = given_values(graph(), given);
  trust_.resize(graph().value_capacity(), Trust::kUnknown);
  leaf_.assign(graph().value_capacity(), false);
  for (int k : {0, 1}) perturbed_[k].assign(graph().value_capacity(), nullptr);
  for (const ValueId id : graph().live_values()) {
    const Value& value = graph().value(id);
    const auto at = static_cast<std::size_t>(id);
    if (value.kind == ValueKind::kNode) {
      if (is_update && !before.empty()) truth_[at] = before[at];
      perturbed_[0][at] = perturbed_[1][at] = truth_[at];
      continue;
    }
    const auto trust = inputs.trust.find(value.name);
    trust_[at] = trust == inputs.trust.end() ? Trust::kElements : trust->second;
    leaf_[at] = true;
    // A constant is in both programs the same, and a parameter is judged by how far it moved.
    const bool moves = value.kind == ValueKind::kInput || value.kind == ValueKind::kState ||
                       (value.kind == ValueKind::kParameter && !is_update);
    const auto apart = inputs.apart.find(value.name);
    const double absolute = apart == inputs.apart.end() ? 0.0 : apart->second;
    for (int k : {0, 1}) {
      const double sign = k == 0 ? 1.0 : -1.0;
      const double relative = moves && value.type.shape.rank > 0 ? kPerturbation : 0.0;
      perturbed_[k][at] = perturbed(id, truth_[at], sign * relative, sign * absolute);
    }
  }
}

void StepReplay::run_micro_step(std::int64_t step, std::int64_t micro_batch,
                                const ReplayInputs& inputs) {
  if (step != at_) {
    gradient_sums_.clear();
    micro_batches_done_ = 0;
    nodes_done_ = 0;
  }
  at_ = step;
  micro_batch_ = micro_batch;
  seen_.clear();
  double squares = 0.0;
  for (const profiler::TraceRow& row : run_.trace().rows()) {
    const bool here = row.step == step && row.micro_batch == micro_batch;
    if (here && row.kind == TraceKind::kGradient) squares += row.statistics.l2 * row.statistics.l2;
  }
  all_gradients_ = std::sqrt(squares);
  run_single(inputs);
  begin(inputs, false);
  for (const NodeId id : order_) {
    if (graph().node(id).phase != Phase::kUpdate) run_node(id);
  }
  average_gradients();
}

// Adds the elements to the sum, and gives their mean.
SharedTensor StepReplay::mean_with(Tensor& sum, const Tensor& tensor) const {
  const std::span<const double> elements = tensor.values<double>();
  Tensor mean = tensor;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    sum.values<double>()[i] += elements[i];
    mean.values<double>()[i] = sum.values<double>()[i] / static_cast<double>(micro_batches_done_);
  }
  return std::make_shared<const Tensor>(std::move(mean));
}

// Sums them up for the update, and leaves their mean in the place of the last micro-batch's. What
// is known of it is what is known of the least known of them.
void StepReplay::average_gradients() {
  ++micro_batches_done_;
  for (const GradientOf& gradient : graph().gradients) {
    const auto at = static_cast<std::size_t>(gradient.gradient);
    if (truth_[at] == nullptr || truth_[at]->dtype() != DType::kF64) continue;
    GradientSum& sum = gradient_sums_[gradient.gradient];
    sum.trust = trust_[at] = std::max(sum.trust, trust_[at]);
    for (std::size_t k = 0; k < replays().size(); ++k) {
      SharedTensor& tensor = (*replays()[k])[at];
      if (sum.sums.size() == k) {
        sum.sums.push_back(*tensor);
      } else {
        tensor = mean_with(sum.sums[k], *tensor);
      }
    }
  }
}

void StepReplay::run_update(std::int64_t step, const ReplayInputs& inputs) {
  at_ = step;
  seen_.clear();
  single_.clear();
  const std::array<Values, 2> before = {std::move(perturbed_[0]), std::move(perturbed_[1])};
  begin(inputs, true);
  for (const GradientOf& gradient : graph().gradients) {
    const auto at = static_cast<std::size_t>(gradient.gradient);
    leaf_[at] = true;
    // As far from the run's as its sketches said.
    if (trust_[at] == Trust::kAgrees) {
      for (std::size_t k : {0U, 1U}) perturbed_[k][at] = before[k][at];
      continue;
    }
    for (int k : {0, 1})
      perturbed_[k][at] =
          perturbed(gradient.gradient, truth_[at], k == 0 ? kPerturbation : -kPerturbation, 0.0);
  }
  for (const NodeId id : order_) {
    if (graph().node(id).phase == Phase::kUpdate) run_node(id);
  }
}

// The same inputs in the run's own precision: what its rounding makes of each node.
void StepReplay::run_single(const ReplayInputs& inputs) {
  single_.clear();
  const Graph& single = step_.single().graph();
  Values values = given_values(single, typed_for(single, inputs.tensors));
  for (const NodeId id : single.order()) {
    const Node& node = single.node(id);
    compute_node(single, node, step_.single().evaluate(), values);
    for (const ValueId out : node.outputs) {
      if (out == kNoValue) continue;
      SharedTensor& tensor = values[static_cast<std::size_t>(out)];
      const std::span<const std::string> keys = step_.single_keys().of(out);
      if (keys.empty()) continue;
      single_.emplace(keys.front(), tensor);
      for (const std::string& key : keys) {
        const Seen seen = find(key, false);
        if (seen.observed == nullptr) continue;
        const std::optional<Tensor>& elements = seen.observed->elements();
        if (elements && elements->elements() == tensor->elements()) {
          tensor = std::make_shared<const Tensor>(fitted(*elements, tensor->type()));
        }
        break;
      }
    }
  }
}

void StepReplay::run_node(NodeId id) {
  const Node& node = graph().node(id);
  Trust trust = Trust::kElements;
  for (const ValueId input : node.inputs) {
    if (input != kNoValue) trust = std::max(trust, trust_[static_cast<std::size_t>(input)]);
  }
  compute_node(graph(), node, step_.truth().evaluate(), truth_);
  for (Values& values : perturbed_) compute_node(graph(), node, step_.truth().evaluate(), values);
  for (const ValueId out : node.outputs) {
    if (out != kNoValue) settle(out, trust);
  }
  ++nodes_done_;
}

void StepReplay::settle(ValueId out, Trust trust) {
  trust_[static_cast<std::size_t>(out)] = trust;
  std::vector<Row> rows;
  for (const std::string& key : step_.keys().of(out)) {
    if (Seen seen = find(key, false); seen.observed) rows.push_back({key, std::move(seen)});
  }
  const std::string& next = step_.keys().next_of(out);
  // Of running statistics the trace has what the last micro-batch left.
  const bool is_last = micro_batch_ + 1 == run_.trace().header().micro_batches;
  if (!next.empty() &&
      (is_last || graph().node(graph().value(out).producer).phase == Phase::kUpdate)) {
    if (Seen seen = find(next, true); seen.observed) rows.push_back({next, std::move(seen), true});
  }
  if (rows.empty()) return;
  std::vector<const Row*> faulty;
  for (Row& row : rows) {
    row.judged = judge(out, trust, row);
    if (!row.judged.is_within()) faulty.push_back(&row);
  }
  // A gradient that several values share is wrong once where it is wrong for all of them.
  const bool alone = faulty.size() < rows.size();
  if (!alone) faulty.resize(1);
  for (const Row* row : faulty) add_fault(out, *row, alone);
  take_over(out, rows.front().seen, trust, rows.front().judged.is_within());
}

StepReplay::Seen StepReplay::find(const std::string& key, bool next) {
  const auto known = seen_.find(key);
  if (known != seen_.end()) return known->second;
  Seen seen;
  if (const auto row = run_.find(at_, next ? 0 : micro_batch_, key)) {
    seen = {.observed = std::make_shared<const Observed>(run_, *row), .row = *row};
  }
  seen_.emplace(key, seen);
  return seen;
}

StepReplay::Judged StepReplay::judge(ValueId out, Trust trust, const Row& of) {
  const Observed& observed = *of.seen.observed;
  const auto at = static_cast<std::size_t>(out);
  const Tensor& computed = *truth_[at];
  // Integers of inputs that only nearly agree may differ.
  const bool is_sharp = trust == Trust::kElements || is_float(computed.dtype());
  if (trust == Trust::kUnknown || !is_sharp) return {};
  ++judged_;
  if (!observed.fits(computed)) return {.is_special = true};
  const Coordinates exact = observed.coordinates_of(computed);
  Judged judged{.error = distance(exact, observed.coordinates()),
                .norm = std::max(norm_of(exact), norm_of(observed.coordinates()))};
  const std::span<const std::string> keys = step_.keys().of(out);
  const auto single = keys.empty() ? single_.end() : single_.find(keys.front());
  const bool has_single = single != single_.end() && observed.fits(*single->second);
  judged.is_special = !observed.has_specials_of(computed) &&
                      !(has_single && observed.has_specials_of(*single->second));
  if (!is_float(computed.dtype())) return judged;
  double noise = has_single ? distance(exact, observed.coordinates_of(*single->second)) : 0.0;
  for (const Values& values : perturbed_) {
    noise = std::max(noise, distance(exact, observed.coordinates_of(*values[at])));
  }
  const profiler::TraceRow& row = observed.row();
  if (row.kind == TraceKind::kParameter) {
    judged.limit = kFactor * noise + kOfParameter * judged.norm;
  } else {
    judged.limit =
        kFactor * std::max(noise, std::max(rounding_, rounding_of(row.dtype)) * judged.norm);
  }
  if (is_of_gradient(row)) {
    judged.limit = std::max(judged.limit, kOfTheGradients * all_gradients_);
  }
  if (trust == Trust::kAgrees) {
    judged.limit = std::max(judged.limit, limit_of_(of.seen.row) * judged.norm);
  }
  return judged;
}

void StepReplay::take_over(ValueId out, const Seen& seen, Trust trust, bool within) {
  const auto at = static_cast<std::size_t>(out);
  leaf_[at] = true;
  const std::optional<Tensor>& elements = seen.observed->elements();
  if (elements && seen.observed->fits(*truth_[at])) {
    truth_[at] = std::make_shared<const Tensor>(fitted(*elements, graph().value(out).type));
    for (int k : {0, 1})
      perturbed_[k][at] = perturbed(out, truth_[at], k == 0 ? kPerturbation : -kPerturbation, 0.0);
    trust_[at] = Trust::kElements;
    return;
  }
  if (trust == Trust::kUnknown || !within) {
    trust_[at] = Trust::kUnknown;
    return;
  }
  // Ours go on, as far from the run's as the sketches say.
  trust_[at] = Trust::kAgrees;
  const Coordinates ours = seen.observed->coordinates_of(*truth_[at]);
  const auto count = static_cast<double>(std::max<std::int64_t>(1, truth_[at]->elements()));
  const double apart = distance(ours, seen.observed->coordinates()) / std::sqrt(count);
  for (int k : {0, 1}) {
    const double sign = k == 0 ? 1.0 : -1.0;
    perturbed_[k][at] = perturbed(out, truth_[at], sign * kPerturbation, sign * apart);
  }
}

// Nodes between what is known of the run and this value, in order.
std::vector<NodeId> StepReplay::cone_of(ValueId out) const {
  std::vector<NodeId> cone;
  std::vector<ValueId> open = {out};
  std::vector<bool> met(graph().node_capacity(), false);
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    const NodeId producer = graph().value(value).producer;
    const bool is_end = value != out && leaf_[static_cast<std::size_t>(value)];
    if (is_end || producer == kNoNode || met[static_cast<std::size_t>(producer)]) continue;
    met[static_cast<std::size_t>(producer)] = true;
    cone.push_back(producer);
    for (const ValueId input : graph().node(producer).inputs) {
      if (input != kNoValue) open.push_back(input);
    }
  }
  std::ranges::sort(cone, {},
                    [this](NodeId id) { return position_[static_cast<std::size_t>(id)]; });
  return cone;
}

void StepReplay::add_fault(ValueId out, const Row& of, bool alone) {
  const std::vector<NodeId> cone = cone_of(out);
  const Observed& observed = *of.seen.observed;
  const profiler::TraceRow& row = observed.row();
  const Judged& judged = of.judged;
  const double norm = judged.norm > 0.0 ? judged.norm : 1.0;
  const NodeId producer = graph().value(out).producer;
  LocalFault fault{.step = at_,
                   .micro_batch = of.is_next ? 0 : micro_batch_,
                   .phase = row.phase,
                   .key = of.key,
                   .error = judged.error / norm,
                   .limit = judged.limit / norm,
                   .by_elements = observed.elements().has_value() &&
                                  trust_[static_cast<std::size_t>(out)] == Trust::kElements,
                   .order = nodes_done_};
  const Suspect suspect{.step = step_.truth(),
                        .values = truth_,
                        .cone = cone,
                        .out = out,
                        .seen = observed,
                        .key = of.key,
                        .alone = alone,
                        .special = judged.is_special,
                        .tolerance = judged.limit};
  // Looking for causes runs nodes over and over: for the first fault alone.
  const Diagnosis diagnosis = faults_.empty()
                                  ? diagnose(suspect)
                                  : Diagnosis{.node = model_node(graph(), graph().node(producer))};
  fault.kind = diagnosis.kind;
  if (graph().node(producer).phase == Phase::kUpdate) {
    fault.kind = FaultKind::kOptimizer;
  } else if (!step_.keys().next_of(out).empty() && fault.kind != FaultKind::kOverflow) {
    fault.kind = FaultKind::kState;
  }
  fault.op = diagnosis.node.op;
  fault.node = diagnosis.node.name;
  fault.cause = diagnosis.cause;
  if (cone.size() > 1 && row.phase == TracePhase::kForward) {
    for (const NodeId id : cone) fault.among.push_back(model_node(graph(), graph().node(id)).name);
  }
  faults_.push_back(std::move(fault));
}

}  // namespace trainscope
