// From fates: an ONNX value is a value of the last stage, has the bytes of one, or is inside a
// node.
#include "engine/run/numerics/traced_values.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "engine/ir/op_def.h"
#include "engine/ir/well_known.h"
#include "engine/stage_history.h"

namespace trainscope {
namespace {

using profiler::TraceKind;
using profiler::TraceName;

TracedAs first_name(const Graph& graph, const Value& value) {
  switch (value.kind) {
    case ValueKind::kInput:
      return {.kind = TraceKind::kInput, .name = value.name};
    case ValueKind::kParameter:
      return {.kind = TraceKind::kParameter, .name = value.name};
    case ValueKind::kState:
      return {.kind = TraceKind::kState, .name = value.name};
    case ValueKind::kConstant:
    case ValueKind::kNode:
      break;
  }
  const bool is_loss = graph.loss != kNoValue && graph.value(graph.loss).serial == value.serial;
  return {.kind = is_loss ? TraceKind::kLoss : TraceKind::kOwn,
          .name = is_loss ? "loss" : value.name};
}

class Naming {
 public:
  Naming(const Graph& graph, ViewRows views, std::vector<TracedAs>& as)
      : graph_(graph), views_(views), as_(as) {
    as_.resize(graph.value_capacity());
    for (const ValueId id : graph.live_values()) {
      const Value& value = graph.value(id);
      as_[static_cast<std::size_t>(id)] = first_name(graph, value);
      by_serial_.emplace(value.serial, id);
    }
  }

  // The row that has the elements of what has this serial in the last stage; it takes the name,
  // where it has none of the model's. Empty: there is no such value, or it is a constant.
  std::string row_of(Serial serial, TraceKind kind, const std::string& name) {
    const auto found = by_serial_.find(serial);
    if (found == by_serial_.end()) return {};
    const bool own = views_ == ViewRows::kTheirOwn;
    const ValueId id = own ? found->second : viewed(graph_, found->second);
    if (graph_.value(id).kind == ValueKind::kConstant) return {};
    TracedAs& as = as_[static_cast<std::size_t>(id)];
    if (as.kind == TraceKind::kOwn) as = {.kind = kind, .name = name};
    return fmt::format("{}:{}", name_of(as.kind), as.name);
  }

  bool is_parameter(const NamedThing& thing) const {
    const auto found = by_serial_.find(thing.serial);
    return found != by_serial_.end() && graph_.value(found->second).kind == ValueKind::kParameter;
  }

 private:
  const Graph& graph_;
  const ViewRows views_;
  std::vector<TracedAs>& as_;
  std::unordered_map<Serial, ValueId> by_serial_;
};

// The values of the model that have a gradient, whatever became of it.
class Differentiated {
 public:
  explicit Differentiated(const Stages& stages) {
    for (const Stage& stage : stages) {
      for (const ValueId id : stage.graph.live_values()) {
        const Serials& of = stage.graph.value(id).gradient_of;
        of_.insert(of.begin(), of.end());
      }
    }
    const Graph& model = stages.front().graph;
    for (const ValueId id : model.live_values()) {
      if (is_float(model.value(id).type.dtype)) floats_.insert(model.value(id).serial);
    }
  }

  // What a node has taken in before there were gradients has its own in that node's, and so has
  // what nobody reads since a fusion.
  bool contains(const Fate& fate) const {
    const bool is_gone = fate.kind == FateKind::kInside || fate.kind == FateKind::kSplit ||
                         fate.kind == FateKind::kDead;
    if (is_gone && floats_.contains(fate.thing.serial)) return true;
    return of_.contains(fate.thing.serial) ||
           (fate.now.size() == 1 && of_.contains(fate.now[0].serial));
  }

 private:
  std::unordered_set<Serial> of_;
  std::unordered_set<Serial> floats_;
};

bool has_elements_of_its_own(const Fate& fate) {
  return (fate.kind == FateKind::kKept || fate.kind == FateKind::kRenamed) && fate.now.size() == 1;
}

}  // namespace

ValueId viewed(const Graph& graph, ValueId id) {
  while (true) {
    const NodeId producer = graph.value(id).producer;
    if (producer == kNoNode || !graph.node(producer).op->is_view) return id;
    id = graph.node(producer).inputs[0];
  }
}

TracedValues::TracedValues(const Stages& stages, const Graph& graph, ViewRows views) {
  const StageHistory history = StageHistory::of(stages);
  Naming naming(graph, views, as_);
  const Differentiated differentiated(stages);
  for (const Fate& fate : imported_fates(history)) {
    if (fate.thing.is_node) continue;
    const std::string& name = fate.thing.name;
    TraceName row{.value = fmt::format("act:{}", name),
                  .fate = std::string(name_of(fate.kind)),
                  .row = {},
                  .reason = reason_of(history.history(), fate)};
    bool is_parameter = false;
    if (has_elements_of_its_own(fate)) {
      is_parameter = naming.is_parameter(fate.now[0]);
      row.row = naming.row_of(fate.now[0].serial, TraceKind::kActivation, name);
    }
    const TraceKind kind = is_parameter ? TraceKind::kGradient : TraceKind::kActivationGradient;
    const std::string own = fmt::format("{}:{}", name_of(kind), name);
    if (fate.gradient.name.empty() && differentiated.contains(fate)) {
      const bool is_there = has_elements_of_its_own(fate);
      names_.push_back(
          {.value = own,
           .fate = is_there ? "inside" : row.fate,
           .row = {},
           .reason = is_there ? "Another node makes it, and more of it." : row.reason});
    }
    names_.push_back(std::move(row));
    if (fate.gradient.name.empty()) continue;
    const std::string gradient = naming.row_of(fate.gradient.serial, kind, name);
    if (gradient != own) {
      names_.push_back({.value = own, .fate = "renamed", .row = gradient, .reason = {}});
    }
  }
}

}  // namespace trainscope
