// Offsets of slices in wholes.
#include "engine/ops/rules/byte_ranges.h"

#include <variant>

namespace trainscope {
namespace {

// Whether slices of the shape along this axis lie one after another: all axes before it are 1.
bool is_outermost(const Shape& shape, int axis) {
  return Shape(shape.span().first(static_cast<std::size_t>(axis))).elements() == 1;
}

int axis_of(const OpDef& op, const OpArgs& args) {
  return std::get<AxisParams>(op.params(args)).axis;
}

ByteRanges one_after_another(bool in_output, std::span<const TensorType> pieces) {
  ByteRanges ranges{.in_output = in_output};
  std::int64_t offset = 0;
  for (const TensorType& piece : pieces) {
    ranges.offsets.push_back(offset);
    offset += static_cast<std::int64_t>(piece.bytes());
  }
  return ranges;
}

bool has_rule(const OpDef& op) { return op.traits.ranges && *op.traits.ranges != kNoRanges; }

}  // namespace

// In one piece: before the last axis that is cut there is one row only.
ByteRanges slice_ranges(const OpDef& op, const OpArgs& args) {
  const auto params = std::get<SliceParams>(op.params(args));
  const Shape& from = args.shape(0);
  const Shape& slice = args.outputs[0].shape;
  if (slice.elements() == 0) return {};
  std::int64_t offset = 0;
  auto stride = static_cast<std::int64_t>(size_of(args.type(0).dtype));
  bool cut = false;
  for (int axis = from.rank - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (slice[axis] > 1 && (cut || params.step[a] != 1)) return {};
    cut = cut || slice[axis] != from[axis];
    offset += params.start[a] * stride;
    stride *= from[axis];
  }
  return {.offsets = {offset}};
}

ByteRanges concat_ranges(const OpDef& op, const OpArgs& args) {
  if (!is_outermost(args.outputs[0].shape, axis_of(op, args))) return {};
  return one_after_another(true, args.inputs);
}

ByteRanges split_ranges(const OpDef& op, const OpArgs& args) {
  if (!is_outermost(args.shape(0), axis_of(op, args))) return {};
  return one_after_another(false, op.shape(args));  // also of outputs that are left out
}

ByteRanges byte_ranges(const OpDef& op, const OpArgs& args) {
  return has_rule(op) ? (*op.traits.ranges)(op, args) : ByteRanges{};
}

ByteRanges byte_ranges(const Graph& graph, const Node& node) {
  if (!has_rule(*node.op)) return {};
  const NodeArgs args(graph, node);
  return byte_ranges(*node.op, *args);
}

}  // namespace trainscope
