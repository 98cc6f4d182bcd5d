// LaneReader: an answer for each value behind y, operands first.
#include "engine/passes/fuse/lanes.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>

#include "engine/ir/op_def.h"

namespace trainscope {
namespace {

constexpr std::size_t kMostNodes = 32;  // between x and y
constexpr std::int64_t kMostLanes = 4096;
constexpr std::string_view kOps[] = {"Add", "Sub", "Mul", "Neg", "Concat", "Split", "Slice"};

bool is_lane_op(const Node& node) {
  if (node.op->is_view) return node.op->domain == kOnnxDomain;
  return std::ranges::any_of(kOps,
                             [&node](std::string_view op) { return is_op(node, kOnnxDomain, op); });
}

// Operands that may be made of x: the others say where to cut.
std::size_t operand_count(const Node& node) {
  const bool cuts = is_op(node, kOnnxDomain, "Split") || is_op(node, kOnnxDomain, "Slice");
  return node.op->is_view || cuts ? 1 : node.inputs.size();
}

bool is_known(const Value& value) { return value.producer == kNoNode || value.data != nullptr; }

void scale(Lane& lane, double factor) {
  for (LaneTerm& term : lane.terms) term.factor *= factor;
}

// Where elements begin along an axis of a slice of a value, and how far they are apart.
struct Cut {
  int axis = 0;
  std::int64_t begin = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

Lanes lanes_at(const Lanes& from, const Cut& cut) {
  Lanes slice{.shape = from.shape, .lanes = {}};
  slice.shape[cut.axis] = cut.count;
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int a = 0; a < cut.axis; ++a) outer *= from.shape[a];
  for (int a = cut.axis + 1; a < from.shape.rank; ++a) inner *= from.shape[a];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t k = 0; k < cut.count; ++k) {
      const std::int64_t row = o * from.shape[cut.axis] + cut.begin + k * cut.step;
      const auto first = from.lanes.begin() + row * inner;
      slice.lanes.insert(slice.lanes.end(), first, first + inner);
    }
  }
  return slice;
}

}  // namespace

LaneReader::LaneReader(const Matcher& match, ValueId x)
    : match_(match), x_(x), lead_(match.value(x).type.shape.rank - 1) {}

std::vector<ValueId> LaneReader::candidates(const Matcher& match, ValueId y) {
  std::vector<ValueId> found;
  std::unordered_set<ValueId> seen{y};
  std::vector<ValueId> open{y};
  for (std::size_t i = 0; i < open.size() && open.size() < kMostNodes; ++i) {
    const Value& value = match.value(open[i]);
    const bool same_type = value.type == match.value(y).type;
    if (i > 0 && same_type) found.push_back(open[i]);
    if (is_known(value)) continue;
    const Node& node = match.graph().node(value.producer);
    if (!is_lane_op(node)) continue;
    for (std::size_t k = 0; k < operand_count(node); ++k) {
      if (seen.insert(node.inputs[k]).second) open.push_back(node.inputs[k]);
    }
  }
  return found;
}

std::optional<Lanes> LaneReader::read(ValueId y) {
  done_.insert_or_assign(x_, itself());
  std::vector<ValueId> waiting{y};
  while (!waiting.empty()) {
    const ValueId v = waiting.back();
    if (done_.contains(v)) {
      waiting.pop_back();
      continue;
    }
    const Value& value = match_.value(v);
    const bool stops = is_known(value) || !is_lane_op(match_.graph().node(value.producer)) ||
                       done_.size() + waiting.size() > kMostNodes;
    if (stops) {
      done_.emplace(v, std::nullopt);
      continue;
    }
    const Node& node = match_.graph().node(value.producer);
    const std::size_t before = waiting.size();
    for (std::size_t k = 0; k < operand_count(node); ++k) {
      if (!done_.contains(node.inputs[k])) waiting.push_back(node.inputs[k]);
    }
    if (waiting.size() > before) continue;  // the operands first
    Answer answer = computed(value.producer, v);
    const bool is_new = std::ranges::find(nodes_, value.producer) == nodes_.end();
    if (answer && is_new) nodes_.push_back(value.producer);
    done_.emplace(v, std::move(answer));
  }
  return done_.at(y);
}

const LaneReader::Answer& LaneReader::done(NodeId id, std::size_t input) const {
  return done_.at(match_.input(id, input));
}

LaneReader::Answer LaneReader::itself() const {
  const Shape& x = match_.value(x_).type.shape;
  const std::int64_t width = x[x.rank - 1];
  if (width > kMostLanes) return std::nullopt;
  Lanes lanes{.shape = {width}, .lanes = {}};
  for (std::int64_t i = 0; i < width; ++i) {
    lanes.lanes.push_back({.terms = {LaneTerm{.lane = i}}, .count = 1});
  }
  return lanes;
}

// The axes of v after those that it shares with x.
std::optional<Shape> LaneReader::own_axes(ValueId v) const {
  const Shape& x = match_.value(x_).type.shape;
  const Shape& shape = match_.value(v).type.shape;
  if (shape.rank < lead_) return std::nullopt;
  for (int a = 0; a < lead_; ++a) {
    if (shape[a] != x[a]) return std::nullopt;
  }
  return Shape(shape.span().subspan(static_cast<std::size_t>(lead_)));
}

LaneReader::Answer LaneReader::computed(NodeId id, ValueId v) const {
  if (match_.is_op(id, "Add")) return sum(id, 1.0);
  if (match_.is_op(id, "Sub")) return sum(id, -1.0);
  if (match_.is_op(id, "Mul")) return product(id);
  if (match_.is_op(id, "Concat")) return put_together(id);
  if (!done(id, 0)) return std::nullopt;
  if (match_.is_op(id, "Slice") || match_.is_op(id, "Split")) return cut(id, v);
  if (!match_.is_op(id, "Neg")) return reshaped(id, v);
  Lanes negated = *done(id, 0);
  for (Lane& lane : negated.lanes) scale(lane, -1.0);
  return negated;
}

LaneReader::Answer LaneReader::sum(NodeId id, double sign) const {
  const Answer& a = done(id, 0);
  const Answer& b = done(id, 1);
  if (!a || !b || a->shape != b->shape) return std::nullopt;
  Lanes sum = *a;
  for (std::size_t i = 0; i < sum.lanes.size(); ++i) {
    if (sum.lanes[i].count != 1 || b->lanes[i].count != 1) return std::nullopt;
    sum.lanes[i].terms[1] = b->lanes[i].terms[0];
    sum.lanes[i].terms[1].factor *= sign;
    sum.lanes[i].count = 2;
  }
  return sum;
}

// Times a number, or element i times element i of a table.
LaneReader::Answer LaneReader::product(NodeId id) const {
  const std::size_t from = done(id, 0) ? 0 : 1;
  if (!done(id, from) || done(id, 1 - from)) return std::nullopt;
  const ValueId other = match_.input(id, 1 - from);
  if (match_.value(match_.input(id, from)).type != match_.value(match_.output(id)).type) {
    return std::nullopt;
  }
  Lanes lanes = *done(id, from);
  if (const std::optional<double> number = match_.number(other)) {
    for (Lane& lane : lanes.lanes) scale(lane, *number);
    return lanes;
  }
  const Shape& table = match_.value(other).type.shape;
  const bool fits =
      lanes.shape.rank == 1 && table.rank >= 1 && table[table.rank - 1] == lanes.shape[0];
  if (!fits) return std::nullopt;
  for (std::size_t i = 0; i < lanes.lanes.size(); ++i) {
    Lane& lane = lanes.lanes[i];
    if (lane.count != 1 || lane.terms[0].table != kNoValue) return std::nullopt;
    lane.terms[0].table = other;
    lane.terms[0].table_lane = static_cast<std::int64_t>(i);
  }
  return lanes;
}

LaneReader::Answer LaneReader::reshaped(NodeId id, ValueId v) const {
  const std::optional<Shape> axes = own_axes(v);
  Lanes lanes = *done(id, 0);
  if (!axes || axes->elements() != lanes.shape.elements()) return std::nullopt;
  lanes.shape = *axes;
  return lanes;
}

// Slice and Split, along axes that x does not have before its last.
LaneReader::Answer LaneReader::cut(NodeId id, ValueId v) const {
  const Node& node = match_.graph().node(id);
  const NodeArgs args(match_.graph(), node);
  const Shape& shape = match_.value(v).type.shape;
  if (!own_axes(v)) return std::nullopt;
  Lanes slice = *done(id, 0);
  if (match_.is_op(id, "Split")) {
    const int axis = args->axis("axis", 0, args->rank(0));
    if (axis < lead_) return std::nullopt;
    Cut along{.axis = axis - lead_, .count = shape[axis]};
    for (std::size_t i = 0; node.outputs[i] != v; ++i) {
      along.begin += args->outputs[i].shape[axis];
    }
    return lanes_at(slice, along);
  }
  const auto params = std::get<SliceParams>(node.op->params(*args));
  for (int axis = 0; axis < shape.rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const bool whole = shape[axis] == args->shape(0)[axis] && params.step[at] == 1;
    if (whole) continue;
    if (axis < lead_) return std::nullopt;
    slice = lanes_at(slice, {.axis = axis - lead_,
                             .begin = params.start[at],
                             .step = params.step[at],
                             .count = shape[axis]});
  }
  return slice;
}

LaneReader::Answer LaneReader::put_together(NodeId id) const {
  const NodeArgs args(match_.graph(), match_.graph().node(id));
  const int axis = args->axis("axis", 0, args->rank(0)) - lead_;
  if (axis < 0) return std::nullopt;
  const std::optional<Shape> axes = own_axes(match_.output(id));
  if (!axes) return std::nullopt;
  std::int64_t outer = 1;
  for (int a = 0; a < axis; ++a) outer *= (*axes)[a];
  Lanes whole{.shape = *axes, .lanes = {}};
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < args->inputs.size(); ++i) {
      if (!done(id, i)) return std::nullopt;
      const std::vector<Lane>& slice = done(id, i)->lanes;
      const std::int64_t each = static_cast<std::int64_t>(slice.size()) / outer;
      const auto first = slice.begin() + o * each;
      whole.lanes.insert(whole.lanes.end(), first, first + each);
    }
  }
  return whole;
}

}  // namespace trainscope
