// Op rows: other shapes for the same bytes.
#include <algorithm>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

Types viewed(const OpArgs& args, const Shape& shape) {
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(shape)}};
}

// Every view's gradient is dy under x's shape; the inputs after the first are shapes and axes.
Values view_gradient(const GradArgs& g) {
  Values gradients(g.x.size(), kNoValue);
  const Shape shape = g.type(g.x[0]).shape;
  gradients[0] = g.b.reshape(g.dy[0], shape);
  return gradients;
}

// The dimension that makes `wanted` (in which it is 1) hold as many elements as `from`.
std::int64_t inferred_dimension(const Shape& from, const Shape& wanted) {
  const std::int64_t known = wanted.elements();
  require(
      known != 0 && from.elements() % known == 0, ErrorCode::kBadInput,
      "shape {} cannot be reshaped: no size for -1 fits the other dimensions, whose product is {}",
      shape_text(from), known);
  return from.elements() / known;
}

Types reshape_shape(const OpArgs& args) {
  const Shape from = args.shape(0);
  const Ints wanted = args.constant_ints(1);
  require_supported(wanted.size() <= static_cast<std::size_t>(kMaxRank),
                    "a shape of {} dimensions; at most {} are supported", wanted.size(), kMaxRank);
  const bool allow_zero = args.attributes.integer("allowzero", 0) != 0;
  Shape shape{std::span<const std::int64_t>(wanted)};
  int inferred = -1;
  for (int axis = 0; axis < shape.rank; ++axis) {
    if (shape[axis] == 0 && !allow_zero) {
      require(axis < from.rank, ErrorCode::kBadInput,
              "0 at axis {} of the new shape {} copies a dimension that {} lacks", axis,
              shape_text(wanted), shape_text(from));
      shape[axis] = from[axis];
    }
    if (shape[axis] != -1) continue;
    require(inferred < 0, ErrorCode::kBadInput, "the new shape {} holds -1 twice",
            shape_text(wanted));
    inferred = axis;
    shape[axis] = 1;
  }
  shape = checked_shape(shape);
  if (inferred >= 0) shape[inferred] = inferred_dimension(from, shape);
  require(shape.elements() == from.elements(), ErrorCode::kBadInput,
          "shape {} of {} elements cannot become {}", shape_text(from), from.elements(),
          shape_text(wanted));
  return viewed(args, shape);
}

Types flatten_shape(const OpArgs& args) {
  const Shape from = args.shape(0);
  const std::int64_t given = args.attributes.integer("axis", 1);
  // Unlike elsewhere, the rank itself is a valid axis.
  const int axis = given == from.rank ? from.rank : normalized_axis(given, from.rank);
  Shape shape{1, 1};
  for (int a = 0; a < from.rank; ++a) {
    shape[a < axis ? 0 : 1] = checked_multiply(shape[a < axis ? 0 : 1], from[a]);
  }
  return viewed(args, shape);
}

Types unsqueeze_shape(const OpArgs& args) {
  const Ints axes = args.constant_ints(1);
  const Shape from = args.shape(0);
  require_supported(
      axes.size() + static_cast<std::size_t>(from.rank) <= static_cast<std::size_t>(kMaxRank),
      "{} new dimensions for {}; at most {} dimensions are supported", axes.size(),
      shape_text(from), kMaxRank);
  const int rank = from.rank + static_cast<int>(axes.size());
  std::vector<bool> is_new(static_cast<std::size_t>(rank), false);
  for (int axis : normalized_axes(axes, rank)) is_new[static_cast<std::size_t>(axis)] = true;
  Shape shape;
  int next = 0;
  for (bool fresh : is_new) shape.push_back(fresh ? 1 : from[next++]);
  return viewed(args, shape);
}

Types squeeze_shape(const OpArgs& args) {
  const Shape from = args.shape(0);
  std::vector<bool> gone(static_cast<std::size_t>(from.rank), false);
  if (args.has(1)) {
    for (int axis : normalized_axes(args.constant_ints(1), from.rank)) {
      require(from[axis] == 1, ErrorCode::kBadInput, "axis {} of {} is not of size 1", axis,
              shape_text(from));
      gone[static_cast<std::size_t>(axis)] = true;
    }
  } else {
    for (int axis = 0; axis < from.rank; ++axis) {
      gone[static_cast<std::size_t>(axis)] = from[axis] == 1;
    }
  }
  Shape shape;
  for (int axis = 0; axis < from.rank; ++axis) {
    if (!gone[static_cast<std::size_t>(axis)]) shape.push_back(from[axis]);
  }
  return viewed(args, shape);
}

// --- Shards --------------------------------------------------------------------------------------

const Shape& shape_of(const ShardingArgs& a, ValueId v) { return a.graph.value(v).type.shape; }

// Along an axis of heads. Those of queries, keys and values may be one axis, which an Attention
// reads, or a Split behind a transpose takes apart.
std::int64_t heads_along(const ShardingArgs& a, ValueId v, int axis) {
  const std::int64_t size = shape_of(a, v)[axis];
  for (bool moved = true; moved;) {
    moved = false;
    for (const Use& use : a.graph.value(v).uses) {
      const Node& reader = a.graph.node(use.node);
      const NodeArgs args(a.graph, reader);
      if (use.input != 0 || reader.phase != Phase::kForward) continue;
      const Sharding* sharding = sharding_of(*reader.op);
      if (sharding == nullptr) continue;
      if (sharding->packed_axis != nullptr && sharding->packed_axis(*args) == axis) {
        return shape_of(a, reader.outputs[0])[axis];
      }
      if (!sharding->permutes) continue;
      const auto permutation = std::get<PermutationParams>(reader.op->params(*args)).permutation;
      axis = static_cast<int>(std::ranges::find(permutation, axis) - permutation.begin());
      v = reader.outputs[0];
      moved = true;
      break;
    }
  }
  return size;
}

// Both shapes fall into groups of axes with equal products. A cut goes along where its axis is the
// first of its group that is no 1: the elements of a shard are together then.
std::optional<Shards> shard_reshape(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  if (shard.is_open()) return std::nullopt;
  if (!shard.is_split()) return every_output(a, shard);
  const Shape& from = a.op.shape(0);
  const Shape& to = output_shape(a);
  int i = 0;
  int j = 0;
  while (i < from.rank && j < to.rank) {
    const int first = i;
    const int first_to = j;
    std::int64_t left = from[i++];
    std::int64_t right = to[j++];
    while (left != right) {
      if (left < right && i < from.rank) {
        left *= from[i++];
      } else if (right < left && j < to.rank) {
        right *= to[j++];
      } else {
        return std::nullopt;
      }
    }
    if (shard.axis < first || shard.axis >= i) continue;
    int major = first;
    while (major < i - 1 && from[major] == 1) ++major;
    int major_to = first_to;
    while (major_to < j - 1 && to[major_to] == 1) ++major_to;
    if (major != shard.axis) return std::nullopt;
    if (from[major] == to[major_to]) return Shards{Shard::split(major_to)};
    if (to[major_to] % a.shards != 0 && from[major] > to[major_to]) {
      refuse_heads(a, heads_along(a, a.node.outputs[0], major_to));
    }
    if (to[major_to] % a.shards != 0 || from[major] % a.shards != 0) return std::nullopt;
    return Shards{Shard::split(major_to)};
  }
  return std::nullopt;
}

// Without axes a Squeeze would take a cut axis away too, where one element of it is left.
std::optional<Shards> shard_squeeze(const ShardingArgs& a) {
  const Shard shard = input_shard(a, 0);
  const bool one_left = shard.is_split() && a.op.shape(0)[shard.axis] <= a.shards;
  return one_left && !a.op.has(1) ? std::nullopt : shard_reshape(a);
}

constexpr OpTraits view(const Sharding& sharding) {
  return {.sharding = sharding,
          .rows = RowKind::kView,
          .rematerialize = Rematerialize::kLight,
          .ranges = kNoRanges};
}
constexpr OpTraits kReshaped = view({.rule = shard_reshape, .linear = true});

}  // namespace

std::vector<OpDef> view_ops() {
  return {
      {.name = "Identity",
       .doc = "x",
       .shape = same_as_first,
       .gradient = [](const GradArgs& g) -> Values { return {g.dy[0]}; },
       .cost = no_cost,
       .is_view = true,
       .keeps_elements = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = view(kByElement),
       .examples = {"[2,3]", "[]", "[0]", "i64[2]<9", "bool[3]"}},
      {.name = "StopGradient",
       .doc = "x, to which no gradient flows",
       .domain = kTrainscopeDomain,
       .shape = same_as_first,
       .cost = no_cost,
       .is_view = true,
       .differentiable = Differentiable::kNo,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = view(kByElement),
       .examples = {"[2,3]", "[]", "[0]", "i64[2]<9"}},
      {.name = "Reshape",
       .doc = "x under the shape of input 1: 0 copies a dimension, -1 is computed",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"allowzero", "1: 0 in the shape means a dimension of size 0"}},
       .shape = reshape_shape,
       .gradient = view_gradient,
       .cost = no_cost,
       .is_view = true,
       .keeps_elements = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = view({.rule = shard_reshape, .linear = true, .shape_input = 1}),
       .examples = {"[2,3], i64[2]={3,2}", "[2,3,4], i64[2]={0,-1}", "[2,3], i64[1]={-1}",
                    "[1,1], i64[0]={}", "[], i64[2]={1,1}", "[0,3], i64[2]={3,0}; allowzero=1",
                    "[0,3], i64[2]={0,3}", "i64[4]<9, i64[2]={2,2}", "bool[4], i32[2]={2,2}"}},
      {.name = "Flatten",
       .doc = "x as a matrix: the axes before `axis` become rows, the others columns",
       .attributes = {{"axis", "1 by default, 0 to rank"}},
       .shape = flatten_shape,
       .gradient = view_gradient,
       .cost = no_cost,
       .is_view = true,
       .keeps_elements = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kReshaped,
       .examples = {"[2,3,4]", "[2,3,4]; axis=0", "[2,3,4]; axis=3", "[2,3,4]; axis=-1", "[0,3]",
                    "[3]"}},
      {.name = "Unsqueeze",
       .doc = "x with axes of size 1 at the places of input 1",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = unsqueeze_shape,
       .gradient = view_gradient,
       .cost = no_cost,
       .is_view = true,
       .keeps_elements = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = kReshaped,
       .examples = {"[2,3], i64[1]={1}", "[2,3], i64[2]={0,-1}", "[], i64[1]={0}",
                    "[0], i64[1]={0}", "i64[4]<9, i64[1]={0}"}},
      {.name = "Squeeze",
       .doc = "x without the axes of input 1 (absent: without all axes of size 1)",
       .min_inputs = 1,
       .max_inputs = 2,
       .shape = squeeze_shape,
       .gradient = view_gradient,
       .cost = no_cost,
       .is_view = true,
       .keeps_elements = true,
       .precision = Precision::kFollow,
       .op_class = OpClass::kMovement,
       .traits = view({.rule = shard_squeeze, .linear = true}),
       .examples = {"[2,1,3,1]", "[2,1,3,1], i64[1]={1}", "[1,2,1], i64[2]={0,-1}", "[1]",
                    "[0,1]"}},
  };
}

}  // namespace trainscope
