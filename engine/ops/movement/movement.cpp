// Op rows: elements moved to other places (slice, pad and expand: movement_regions.cpp).
#include "engine/ops/movement/movement.h"

#include <algorithm>
#include <numeric>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/byte_ranges.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// --- Transpose -----------------------------------------------------------------------------------
// Attribute perm, checked to be a permutation; the axes reversed when it is absent.
PermutationParams transpose_params(const OpArgs& args) {
  const int rank = args.rank(0);
  Ints wanted(static_cast<std::size_t>(rank));
  std::iota(wanted.rbegin(), wanted.rend(), 0);
  wanted = args.attributes.integers("perm", wanted);
  require(wanted.size() == static_cast<std::size_t>(rank), ErrorCode::kBadInput,
          "attribute perm has {} axes, the input {} has {}", wanted.size(), type_text(args.type(0)),
          rank);
  normalized_axes(wanted, rank);  // in range, none twice
  PermutationParams params;
  for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
    params.permutation[axis] = normalized_axis(wanted[axis], rank);
  }
  return params;
}

Types transpose_shape(const OpArgs& args) {
  const PermutationParams params = transpose_params(args);
  Shape shape = args.shape(0);
  for (int axis = 0; axis < shape.rank; ++axis) {
    shape[axis] = args.shape(0)[params.permutation[static_cast<std::size_t>(axis)]];
  }
  return {{.dtype = args.type(0).dtype, .shape = shape}};
}

Values transpose_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const PermutationParams params = transpose_params(*args);
  Ints inverse(static_cast<std::size_t>(args->rank(0)));
  for (std::size_t axis = 0; axis < inverse.size(); ++axis) {
    inverse[static_cast<std::size_t>(params.permutation[axis])] = static_cast<std::int64_t>(axis);
  }
  return {g.b("Transpose", {g.dy[0]}, {{"perm", inverse}})};
}

// --- Concat and Split ----------------------------------------------------------------------------
int concat_axis(const OpArgs& args) {
  require(args.attributes.has("axis"), ErrorCode::kBadInput, "attribute axis is missing");
  return args.axis("axis", 0, args.rank(0));
}

Types concat_shape(const OpArgs& args) {
  const int axis = concat_axis(args);
  require_same_dtypes(args);
  Shape shape = args.shape(0);
  for (int i = 1; i < args.input_count(); ++i) {
    require(args.has(i), ErrorCode::kBadInput, "input {} is left out", i);
    Shape expected = args.shape(i);
    if (expected.rank == shape.rank) expected[axis] = shape[axis];
    require(expected == shape, ErrorCode::kBadInput,
            "inputs 0 {} and {} {} differ in more than axis {}", shape_text(args.shape(0)), i,
            shape_text(args.shape(i)), axis);
    shape[axis] = checked_add(shape[axis], args.shape(i)[axis]);
  }
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(shape)}};
}

// dy[begin, begin + size) along one axis.
ValueId slice_of(Builder& b, ValueId dy, int axis, Ints begin_end) {
  return b("Slice", {dy, b.ints({begin_end[0]}), b.ints({begin_end[1]}), b.ints({axis})});
}

Values concat_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const int axis = concat_axis(*args);
  const std::size_t count = g.x.size();
  Ints sizes;
  for (ValueId x : g.x) sizes.push_back(g.type(x).shape[axis]);
  if (count == 1) return {g.dy[0]};
  if (std::all_of(g.wanted.begin(), g.wanted.end(), [](bool w) { return w; })) {
    return g.b.multi("Split", {g.dy[0], g.b.ints(sizes)}, static_cast<int>(count),
                     {{"axis", std::int64_t{axis}}});
  }
  Values gradients(count, kNoValue);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (g.wanted[i]) gradients[i] = slice_of(g.b, g.dy[0], axis, {begin, begin + sizes[i]});
    begin += sizes[i];
  }
  return gradients;
}

// Sizes of the slices: input 1, else equal ones.
Ints split_sizes(const OpArgs& args) {
  const int axis = args.axis("axis", 0, args.rank(0));
  const std::int64_t size = args.shape(0)[axis];
  const std::int64_t count = args.output_count;
  if (!args.has(1)) {
    require(size % count == 0, ErrorCode::kBadInput,
            "axis {} of {} cannot be split into {} equal slices", axis, shape_text(args.shape(0)),
            count);
    return Ints(static_cast<std::size_t>(count), size / count);
  }
  const Ints sizes = args.constant_ints(1);
  require(std::ssize(sizes) == count, ErrorCode::kBadInput, "{} slice sizes for {} outputs",
          sizes.size(), count);
  std::int64_t sum = 0;
  for (std::int64_t slice : sizes) {
    require(slice >= 0, ErrorCode::kBadInput, "slice size {} is negative", slice);
    sum = checked_add(sum, slice);
  }
  require(sum == size, ErrorCode::kBadInput, "the slices {} do not add up to axis {} of {}",
          shape_text(sizes), axis, shape_text(args.shape(0)));
  return sizes;
}

Types split_shape(const OpArgs& args) {
  const Ints sizes = split_sizes(args);
  const int axis = args.axis("axis", 0, args.rank(0));
  Types types;
  for (std::int64_t size : sizes) {
    types.push_back(args.type(0));
    types.back().shape[axis] = size;
  }
  return types;
}

// The gradients of the slices side by side, zeros where a slice does not influence the loss.
Values split_gradient(const GradArgs& g) {
  const NodeArgs args(g.b.graph(), g.node);
  const Types types = split_shape(*args);
  Values slices(g.dy.begin(), g.dy.end());
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i] == kNoValue) slices[i] = zeros(g.b, types[i]);
  }
  const std::int64_t axis = args->axis("axis", 0, args->rank(0));
  Values gradients(g.x.size(), kNoValue);
  gradients[0] = g.b("Concat", slices, {{"axis", axis}});
  return gradients;
}

// --- Trilu ---------------------------------------------------------------------------------------
Types trilu_shape(const OpArgs& args) {
  require(args.rank(0) >= 2, ErrorCode::kBadInput,
          "input 0 must be a matrix or a batch of them, is {}", type_text(args.type(0)));
  if (args.has(1)) {
    require(args.constant_ints(1).size() == 1, ErrorCode::kBadInput,
            "input 1 must hold one element, is {}", type_text(args.type(1)));
  }
  return same_as_first(args);
}

Params trilu_params(const OpArgs& args) {
  const int rank = args.rank(0);
  const std::int64_t diagonal = args.has(1) ? args.constant_ints(1)[0] : 0;
  // Beyond the matrix all diagonals mean the same.
  return TriluParams{
      .upper = args.attributes.integer("upper", 1) != 0,
      .diagonal = std::clamp(diagonal, -args.shape(0)[rank - 2] - 1, args.shape(0)[rank - 1] + 1)};
}

Values trilu_gradient(const GradArgs& g) {
  Values inputs(g.x.begin(), g.x.end());
  inputs[0] = g.dy[0];
  Values gradients(g.x.size(), kNoValue);
  gradients[0] = g.b("Trilu", inputs, g.node.attributes);
  return gradients;
}

// --- Shards --------------------------------------------------------------------------------------
std::optional<Shards> shard_transpose(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (shard.is_open()) return std::nullopt;
  if (!shard.is_split()) return every_output(a, shard);
  const auto permutation = std::get<PermutationParams>(a.node.op->params(a.op)).permutation;
  for (int axis = 0; axis < a.op.rank(0); ++axis) {
    if (permutation[static_cast<std::size_t>(axis)] == shard.axis) {
      return Shards{Shard::split(axis)};
    }
  }
  return std::nullopt;
}

std::optional<Shards> shard_concat(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  for (int i = 1; i < a.op.input_count(); ++i) {
    if (input_shard(a, i) != shard) return std::nullopt;
  }
  for (int i = 0; i < a.op.input_count(); ++i) {
    if (a.op.shape(i)[shard.axis] % a.shards != 0) return std::nullopt;
  }
  return every_output(a, shard);
}

int split_axis(const OpArgs& args) { return args.axis("axis", 0, args.rank(0)); }

// Along its own axis the outputs are cut one by one: which columns a device has does not matter.
std::optional<Shards> shard_split(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (!shard.is_split()) return std::nullopt;
  const int axis = split_axis(a.op);
  for (std::size_t i = 0; i < a.node.outputs.size() && axis == shard.axis; ++i) {
    const std::int64_t size = output_shape(a, static_cast<int>(i))[axis];
    if (size % a.shards != 0) refuse_heads(a, size);
  }
  return every_output(a, shard);
}

std::vector<OpDef> rearranging_ops() {
  return {
      {.name = "Transpose",
       .doc = "axes in another order",
       .attributes = {{"perm", "output axis a is input axis perm[a]; reversed by default"}},
       .params = [](const OpArgs& args) -> Params { return transpose_params(args); },
       .shape = transpose_shape,
       .gradient = transpose_gradient,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = sharded(
           {.rule = shard_transpose, .linear = true, .by_examples = true, .permutes = true}),
       .examples = {"[2,3]", "[2,3,4]", "[2,3,4,5]; perm={0,2,1,3}", "[2,3,4,5]; perm={0,2,3,1}",
                    "[2,3,4,5]; perm={3,1,0,2}", "[2,3,1,4]; perm={2,1,0,3}", "[]", "[5]", "[0,3]",
                    "[130,70]", "[3,100,4,64]; perm={0,2,1,3}", "[3,100,4,64]; perm={0,2,3,1}",
                    "[17,3,33]; perm={2,1,0}", "i64[3,4]<9", "i32[3,4]<9", "bool[3,4]"}},
      {.name = "Concat",
       .doc = "inputs side by side along an axis",
       .min_inputs = 1,
       .max_inputs = kVariadic,
       .attributes = {{"axis", "the axis that grows; required"}},
       .params = [](const OpArgs& args) -> Params { return AxisParams{.axis = concat_axis(args)}; },
       .shape = concat_shape,
       .gradient = concat_gradient,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = {.sharding = Sharding{.rule = shard_concat},
                  .rows = RowKind::kOther,
                  .rematerialize = Rematerialize::kLight,
                  .ranges = concat_ranges},
       .examples = {"[2,3], [2,1]; axis=1", "[2,3], [1,3], [4,3]; axis=0", "[2,3]; axis=-1",
                    "[2,3,4], [2,3,5]; axis=-1", "[2,0], [2,3]; axis=1",
                    "[100,200], [100,300], [100,200]; axis=1", "i64[1]<9, i64[2]<9; axis=0"}},
      {.name = "Split",
       .doc = "consecutive slices along an axis, equal or of the sizes in input 1",
       .min_inputs = 1,
       .max_inputs = 2,
       .max_outputs = kVariadic,
       .attributes = {{"axis", "the axis to split, 0 by default"}},
       .params = [](const OpArgs& args) -> Params { return AxisParams{.axis = split_axis(args)}; },
       .shape = split_shape,
       .gradient = split_gradient,
       .axis = 0,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = {.sharding =
                      Sharding{.rule = shard_split, .sizes_input = 1, .packed_axis = split_axis},
                  .rows = RowKind::kInPlace,
                  .rematerialize = Rematerialize::kLight,
                  .ranges = split_ranges},
       .examples = {"[4,3]; outputs=2", "[2,6]; axis=1 outputs=3", "[2,6]; axis=-1 outputs=1",
                    "[2,6], i64[3]={1,0,5}; axis=1 outputs=3", "[0,4]; axis=1 outputs=2",
                    "[100,900]; axis=1 outputs=3", "i64[4]<9; outputs=2"}},
      {.name = "Trilu",
       .doc = "the upper or lower triangle of matrices, zeros elsewhere",
       .min_inputs = 1,
       .max_inputs = 2,
       .attributes = {{"upper",
                       "1 (default): keep the elements on and above diagonal k (input 1)"}},
       .params = trilu_params,
       .shape = trilu_shape,
       .gradient = trilu_gradient,
       .in_place = first_in_place,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"[3,3]", "[3,4]; upper=0", "[2,3,4], i64[]={1}", "[2,4,3], i64[]={-1}; upper=0",
                    "[3,3], i64[]={9}; upper=0", "[3,3], i64[1]={-9}", "[0,3]", "[2,200,300]",
                    "i64[3,3]<9", "bool[3,3]; upper=0"}},
  };
}

}  // namespace

std::vector<OpDef> movement_ops() {
  std::vector<OpDef> rows = rearranging_ops();
  for (OpDef& row : region_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace trainscope
