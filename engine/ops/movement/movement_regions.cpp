// Op rows: tensors cut out of, set into or repeated to other shapes.
#include <algorithm>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/movement/movement.h"
#include "engine/ops/pool/interpolate.h"
#include "engine/ops/rules/byte_ranges.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- Slice ---------------------------------------------------------------------------------------
struct SlicePlan {
  Shape shape;         // of the result
  SliceParams params;  // full rank
};

struct AxisSlice {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t step = 1;
};

// Elements of an axis of `size` elements that the slice takes. Clamps `slice` as ONNX (and Python)
// do: start and end count from the end when negative, then go to the nearest valid place.
std::int64_t clamp_slice(AxisSlice& slice, std::int64_t size) {
  require(slice.step != 0, ErrorCode::kBadInput, "a step of a slice is 0");
  const bool forward = slice.step > 0;
  if (slice.start < 0) slice.start += size;
  if (slice.end < 0) slice.end += size;
  slice.start = std::clamp<std::int64_t>(
      slice.start, forward ? 0 : std::min<std::int64_t>(0, size - 1), forward ? size : size - 1);
  slice.end = std::clamp<std::int64_t>(slice.end, forward ? 0 : -1, forward ? size : size - 1);
  const std::int64_t distance = forward ? slice.end - slice.start : slice.start - slice.end;
  if (distance <= 0 || size == 0) return 0;
  // Steps beyond the tensor take one element; bounding them keeps products from overflowing.
  slice.step = std::clamp<std::int64_t>(slice.step, -size, size);
  return (distance - 1) / std::abs(slice.step) + 1;
}

SlicePlan slice_plan(const OpArgs& args) {
  const int rank = args.rank(0);
  const Ints starts = args.constant_ints(1);
  const Ints ends = args.constant_ints(2);
  Ints axes(starts.size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (args.has(3)) axes = args.constant_ints(3);
  const Ints steps = args.has(4) ? args.constant_ints(4) : Ints(starts.size(), 1);
  require(
      ends.size() == starts.size() && axes.size() == starts.size() && steps.size() == starts.size(),
      ErrorCode::kBadInput, "{} starts, {} ends, {} axes and {} steps are given", starts.size(),
      ends.size(), axes.size(), steps.size());
  normalized_axes(axes, rank);  // in range, none twice
  SlicePlan plan{.shape = args.shape(0), .params = {}};
  plan.params.step.fill(1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = normalized_axis(axes[i], rank);
    AxisSlice slice{.start = starts[i], .end = ends[i], .step = steps[i]};
    plan.shape[axis] = clamp_slice(slice, args.shape(0)[axis]);
    const bool empty = plan.shape[axis] == 0;
    plan.params.start[static_cast<std::size_t>(axis)] = empty ? 0 : slice.start;
    plan.params.step[static_cast<std::size_t>(axis)] = empty ? 1 : slice.step;
  }
  return plan;
}

Types slice_shape(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype, .shape = slice_plan(args).shape}};
}

Values slice_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const SlicePlan plan = slice_plan(*args);
  const auto rank = static_cast<std::size_t>(plan.shape.rank);
  const auto& start = plan.params.start;
  const auto& step = plan.params.step;
  Values gradients(g.x.size(), kNoValue);
  if (plan.shape == args->shape(0) &&
      std::all_of(step.begin(), step.begin() + plan.shape.rank, [](auto s) { return s == 1; })) {
    gradients[0] = g.dy[0];
    return gradients;
  }
  gradients[0] = g.b("SliceGrad", {g.dy[0]},
                     {{"shape", ints_of(args->shape(0))},
                      {"start", Ints(start.begin(), start.begin() + rank)},
                      {"step", Ints(step.begin(), step.begin() + rank)}});
  return gradients;
}

// --- SliceGrad -----------------------------------------------------------------------------------
SlicePlan slice_grad_plan(const OpArgs& args) {
  const auto rank = static_cast<std::size_t>(args.rank(0));
  const Ints shape = args.attributes.integers("shape");
  const Ints start = args.attributes.integers("start");
  const Ints step = args.attributes.integers("step");
  require(shape.size() == rank && start.size() == rank && step.size() == rank, ErrorCode::kBadInput,
          "attributes shape, start and step must have {} numbers as input 0 {} has dimensions",
          rank, type_text(args.type(0)));
  SlicePlan plan{.shape = checked_shape(shape), .params = {}};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t count = args.shape(0).dims[axis];
    plan.params.start[axis] = start[axis];
    plan.params.step[axis] = step[axis];
    if (count == 0) continue;
    const std::int64_t last = checked_add(start[axis], checked_multiply(count - 1, step[axis]));
    require(step[axis] != 0 && std::min(start[axis], last) >= 0 &&
                std::max(start[axis], last) < shape[axis],
            ErrorCode::kBadInput, "{} elements from {} by {} do not fit axis {} of shape {}", count,
            start[axis], step[axis], axis, shape_text(shape));
  }
  return plan;
}

Types slice_grad_shape(const OpArgs& args) {
  return {{.dtype = args.type(0).dtype, .shape = slice_grad_plan(args).shape}};
}

// --- Expand --------------------------------------------------------------------------------------
Types expand_shape(const OpArgs& args) {
  const Shape wanted = checked_shape(args.constant_ints(1));
  return {{.dtype = args.type(0).dtype, .shape = broadcast_shapes(args.shape(0), wanted)}};
}

Values expand_gradient(const GradArgs& g) {
  const Shape shape = g.type(g.x[0]).shape;
  return {g.b.sum_to(g.dy[0], shape), kNoValue};
}

// --- Pad -----------------------------------------------------------------------------------------
PadMode pad_mode(const OpArgs& args) {
  const std::string mode = args.attributes.text("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  require(mode == "edge", ErrorCode::kBadInput,
          "attribute mode is '{}'; constant, reflect and edge are supported", printable(mode));
  return PadMode::kEdge;
}

// Elements to add (or, negative, to remove): before all axes, then after all axes.
Ints pad_amounts(const OpArgs& args) {
  const Ints pads = args.constant_ints(1);
  require(pads.size() == 2 * static_cast<std::size_t>(args.rank(0)), ErrorCode::kBadInput,
          "input 1 holds {} pads; two for each axis of {} are expected", pads.size(),
          type_text(args.type(0)));
  for (std::int64_t pad : pads) {
    constexpr std::int64_t kLimit = std::int64_t{1} << 61;  // negation and sums stay in range
    require(pad > -kLimit && pad < kLimit, ErrorCode::kBadInput, "pad {} is too large", pad);
  }
  return pads;
}

void check_padded_axis(PadMode mode, std::int64_t size, std::int64_t pad) {
  require(mode != PadMode::kReflect || pad < size || pad <= 0, ErrorCode::kBadInput,
          "mode reflect needs more than {} elements on an axis to pad it by {}, there are {}", pad,
          pad, size);
  require(mode != PadMode::kEdge || size > 0 || pad <= 0, ErrorCode::kBadInput,
          "mode edge cannot pad an axis of size 0");
}

Types pad_shape(const OpArgs& args) {
  const PadMode mode = pad_mode(args);
  const Ints pads = pad_amounts(args);
  Shape shape = args.shape(0);
  for (int axis = 0; axis < shape.rank; ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const std::int64_t before = pads[i];
    const std::int64_t after = pads[i + static_cast<std::size_t>(shape.rank)];
    check_padded_axis(mode, shape[axis], before);
    check_padded_axis(mode, shape[axis], after);
    shape[axis] = checked_add(shape[axis], checked_add(before, after));
    require(shape[axis] >= 0, ErrorCode::kBadInput, "pads {} and {} remove more than axis {} of {}",
            before, after, axis, shape_text(args.shape(0)));
  }
  if (args.has(2)) {
    require(args.type(2).elements() == 1 && args.type(2).dtype == args.type(0).dtype,
            ErrorCode::kBadInput, "the pad value must be one {}, is {}",
            name_of(args.type(0).dtype), type_text(args.type(2)));
  }
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(shape)}};
}

Params pad_params(const OpArgs& args) {
  PadParams params{.before = {}, .mode = pad_mode(args)};
  const Ints pads = pad_amounts(args);
  std::copy_n(pads.begin(), args.rank(0), params.before.begin());
  return params;
}

// The place of an axis of `size` elements that element i of the padded axis repeats; i counts from
// the first element of the input.
std::int64_t repeated_place(PadMode mode, std::int64_t i, std::int64_t size) {
  if (mode == PadMode::kEdge) return std::clamp<std::int64_t>(i, 0, size - 1);
  if (i < 0) return -i;
  return i < size ? i : 2 * (size - 1) - i;
}

// Every element of dy goes to the place that it repeats, axis by axis.
Values repeating_pad_gradient(const GradArgs& g, const OpArgs& args) {
  const Ints pads = pad_amounts(args);
  const Shape x = args.shape(0);
  const Shape y = g.type(g.dy[0]).shape;
  Values gradients(g.x.size(), kNoValue);
  if (y.elements() == 0) {
    gradients[0] = zeros(g.b, args.type(0));
    return gradients;
  }
  ValueId dx = g.dy[0];
  for (int axis = 0; axis < x.rank; ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (pads[a] == 0 && x[axis] == y[axis]) continue;
    Taps taps{.outputs = y[axis]};
    for (std::int64_t i = -pads[a]; i < y[axis] - pads[a]; ++i) {
      taps.index.push_back(repeated_place(pad_mode(args), i, x[axis]));
      taps.weight.push_back(1.0);
    }
    dx = interpolate_gradient(g.b, dx, axis, taps, x[axis]);
  }
  gradients[0] = dx;
  return gradients;
}

// Cuts off what was added (and adds zeros where something was cut off). What is left of dy belongs
// to the pad value.
Values pad_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  if (pad_mode(*args) != PadMode::kConstant) return repeating_pad_gradient(g, *args);
  Ints pads = pad_amounts(*args);
  for (std::int64_t& pad : pads) pad = -pad;
  const ValueId dx = g.b("Pad", {g.dy[0], g.b.ints(pads)});
  Values gradients(g.x.size(), kNoValue);
  gradients[0] = dx;
  if (g.x.size() > 2 && g.x[2] != kNoValue && g.wants(2)) {
    const Shape scalar;
    const Shape value = g.type(g.x[2]).shape;
    const ValueId outside = g.b("Sub", {g.b.sum_to(g.dy[0], scalar), g.b.sum_to(dx, scalar)});
    gradients[2] = g.b.reshape(outside, value);
  }
  return gradients;
}

// --- Shards --------------------------------------------------------------------------------------
// An axis that stays as it is may be cut.
std::optional<Shards> shard_slice(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  const auto along = static_cast<std::size_t>(shard.axis);
  const bool whole = a.op.shape(0)[shard.axis] == output_shape(a)[shard.axis] &&
                     std::get<SliceParams>(a.node.op->params(a.op)).step[along] == 1;
  if (!whole) return std::nullopt;
  return every_output(a, shard);
}

std::optional<Shards> shard_expand(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  return every_output(a, Shard::split(aligned_axis(a, 0, shard.axis)));
}

}  // namespace

std::vector<OpDef> region_ops() {
  return {
      {.name = "Slice",
       .doc = "x[start:end:step] along the axes given (inputs: x, starts, ends, axes, steps)",
       .min_inputs = 3,
       .max_inputs = 5,
       .params = [](const OpArgs& args) -> Params { return slice_plan(args).params; },
       .shape = slice_shape,
       .gradient = slice_gradient,
       .cost = copies_output,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = {.sharding = Sharding{.rule = shard_slice},
                  .rows = RowKind::kOther,
                  .rematerialize = Rematerialize::kLight,
                  .ranges = slice_ranges},
       .examples =
           {"[4,5], i64[2]={1,0}, i64[2]={3,4}", "[4,5], i64[1]={-2}, i64[1]={99}, i64[1]={1}",
            "[4,5], i64[1]={-1}, i64[1]={-99}, i64[1]={0}, i64[1]={-1}",
            "[7], i64[1]={1}, i64[1]={7}, -, i64[1]={3}",
            "[2,3,8], i64[1]={4}, i64[1]={9223372036854775807}, i64[1]={-1}",
            "[4,5], i64[1]={3}, i64[1]={1}", "[0,2], i64[1]={0}, i64[1]={5}",
            "[4], i64[1]={0}, i64[1]={4}", "[2,300,400], i64[1]={100}, i64[1]={350}, i64[1]={2}",
            "i64[5]<9, i64[1]={1}, i64[1]={3}", "bool[5], i64[1]={4}, i64[1]={0}, -, i64[1]={-2}"}},
      {.name = "SliceGrad",
       .doc = "zeros of a shape, with dy at the places of a slice",
       .domain = kTrainscopeDomain,
       .attributes = {{"shape", "of the result"},
                      {"start", "place of dy's first element, one number for each axis"},
                      {"step", "distance of its elements, one number for each axis"}},
       .params = [](const OpArgs& args) -> Params { return slice_grad_plan(args).params; },
       .shape = slice_grad_shape,
       .cost = copies_output,
       .op_class = OpClass::kMovement,
       .traits = kWholeValuesOnce,
       .examples = {"[2,4]; shape={4,5} start={1,0} step={1,1}",
                    "[2]; shape={5} start={4} step={-3}",
                    "[0,2]; shape={3,2} start={0,0} step={1,1}",
                    "[2,300,200]; shape={2,300,400} start={0,0,100} step={1,1,1}"}},
      {.name = "Expand",
       .doc = "x broadcast to the shape of input 1",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = expand_shape,
       .gradient = expand_gradient,
       .keeps_elements = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = sharded({.rule = shard_expand, .shape_input = 1}),
       .examples = {"[3], i64[2]={2,3}", "[2,1,3], i64[3]={2,4,3}", "[2,3], i64[2]={1,1}",
                    "[], i64[2]={2,2}", "[1], i64[1]={0}", "[0,1], i64[2]={1,3}",
                    "[2,1,5,40], i64[4]={2,300,5,40}", "i64[1]<9, i64[1]={4}",
                    "bool[2,1], i64[2]={2,3}"}},
      {.name = "Pad",
       .doc = "x with elements added at (or, by negative pads, cut off) both ends of its axes",
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {{"mode", "constant (default, the value of input 2 or 0), reflect or edge"}},
       .params = pad_params,
       .shape = pad_shape,
       .gradient = pad_gradient,
       .cost = copies_output,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"[2,3], i64[4]={0,1,0,2}", "[2,3], i64[4]={1,-1,0,0}, []",
                    "[2,3,4,5], i64[8]={0,0,1,2,0,0,1,2}", "[0], i64[2]={1,1}",
                    "[3], i64[2]={-1,-1}", "[70,1001], i64[4]={1,1,1,1}",
                    "[2,4], i64[4]={1,3,1,2}; mode='reflect'",
                    "[2,3], i64[4]={0,2,3,-1}; mode='edge'", "[4], i64[2]={-2,1}; mode='reflect'",
                    "[0,3], i64[4]={0,1,0,1}; mode='edge'", "i64[2]<9, i64[2]={1,1}, i64[]={7}"}},
  };
}

}  // namespace trainscope
