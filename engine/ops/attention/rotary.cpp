// Rotary positions (RoFormer, Su et al. 2021): pairs of elements of the last axis are rotated by an
// angle that grows with the position.
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ir/op_def.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr std::string_view kRotate = "RotaryEmbedding";
constexpr std::string_view kRotateBack = "RotaryEmbeddingGrad";

bool is_interleaved(const Attributes& attributes) {
  return attributes.integer("interleaved", 0) != 0;
}

// Of the last axis seen as [2, pairs], or as [pairs, 2]: the axis of the two elements of a pair.
Params rotary_params(const OpArgs& args) {
  return AxisParams{.axis = is_interleaved(args.attributes) ? 1 : 0};
}

// The axes of the tables before their last are broadcast to those of x.
Types rotary_shape(const OpArgs& args) {
  require_float(args, 0);
  require_dtype(args, 1, computed(args.type(0).dtype));
  require_same_types(args, 1, 2);
  const Shape& x = args.shape(0);
  const Shape& table = args.shape(1);
  require(x.rank >= 1 && table.rank >= 1 && table.rank <= x.rank, ErrorCode::kBadInput,
          "cos {} must have 1 to {} dimensions, as many as x {}", shape_text(table), x.rank,
          shape_text(x));
  require(2 * table[table.rank - 1] <= x[x.rank - 1], ErrorCode::kBadInput,
          "cos {} rotates {} pairs of elements, x {} has {} elements in the last axis",
          shape_text(table), table[table.rank - 1], shape_text(x), x[x.rank - 1]);
  for (int axis = 0; axis + 1 < table.rank; ++axis) {
    const std::int64_t size = x[x.rank - table.rank + axis];
    require(table[axis] == 1 || table[axis] == size, ErrorCode::kBadInput,
            "cos {} cannot be broadcast to x {}", shape_text(table), shape_text(x));
  }
  return {args.type(0)};
}

// The first and second elements of all pairs, in the type of the tables.
Values pairs_of(Builder& b, ValueId v, const Node& node) {
  const TensorType table = b.type(node.inputs[1]);  // a copy: the graph grows
  const std::int64_t pairs = table.shape[table.shape.rank - 1];
  const bool interleaved = is_interleaved(node.attributes);
  const std::int64_t step = interleaved ? 2 : 1;
  const ValueId upcast = cast_to(b, v, table.dtype);
  Values halves;
  for (const std::int64_t begin : {std::int64_t{0}, interleaved ? std::int64_t{1} : pairs}) {
    const std::int64_t end = interleaved ? 2 * pairs : begin + pairs;
    halves.push_back(
        b("Slice", {upcast, b.ints({begin}), b.ints({end}), b.ints({-1}), b.ints({step})}));
  }
  return halves;
}

// The gradient of a rotation is dy rotated back. The tables are constants as a rule.
Values rotary_gradient(const GradArgs& g) {
  Builder& b = g.b;
  const bool back = is_op(g.node, kTrainscopeDomain, kRotateBack);
  Values gradients(3, kNoValue);
  if (g.wants(0)) {
    gradients[0] = b(back ? kRotate : kRotateBack, {g.dy[0], g.x[1], g.x[2]}, g.node.attributes);
  }
  if (!g.wants(1) && !g.wants(2)) return gradients;
  const Values x = pairs_of(b, g.x[0], g.node);
  const Values dy = pairs_of(b, g.dy[0], g.node);
  const auto sum = [&](const char* op, ValueId a, ValueId other) { return b(op, {a, other}); };
  gradients[1] = gradient_of_input(g, 1, [&] {
    return sum("Add", b("Mul", {dy[0], x[0]}), b("Mul", {dy[1], x[1]}));
  });
  gradients[2] = gradient_of_input(g, 2, [&] {
    const ValueId second = b("Mul", {dy[1], x[0]});
    const ValueId first = b("Mul", {dy[0], x[1]});
    return back ? sum("Sub", first, second) : sum("Sub", second, first);
  });
  return gradients;
}

// Pairs of elements of the last axis are rotated together.
std::optional<Shards> shard_rotary(const ShardingArgs& a) {
  for (int i = 0; i < a.op.input_count(); ++i) {
    const Shard shard = input_shard(a, i);
    if (shard.is_split() && shard.axis == a.op.rank(i) - 1) return std::nullopt;
  }
  return shard_by_element(a);
}

constexpr OpTraits kRotation{.sharding = Sharding{.rule = shard_rotary},
                             .rows = RowKind::kInPlace,
                             .rematerialize = Rematerialize::kLight,
                             .ranges = kNoRanges};
constexpr OpTraits kRotationBack{.sharding = Sharding{.rule = shard_rotary},
                                 .rows = RowKind::kOther,
                                 .rematerialize = Rematerialize::kOnce,
                                 .ranges = kNoRanges};

OpDef rotary_row(std::string_view name, std::string_view doc, const OpTraits& traits) {
  return {.name = name,
          .doc = doc,
          .domain = kTrainscopeDomain,
          .min_inputs = 3,
          .max_inputs = 3,
          .attributes = {{"interleaved",
                          "1: elements 2i and 2i + 1 are a pair; 0 (default): i and i + pairs"}},
          .params = rotary_params,
          .shape = rotary_shape,
          .gradient = rotary_gradient,
          .cost = per_output_element<3>,
          .in_place = first_in_place,
          .axis = -1,
          .precision = Precision::kFollow,
          .f32_inputs = {1, 2},
          .op_class = OpClass::kPointwise,
          .traits = traits,
          .examples = {"[2,2,3,4], [3,2], [3,2]", "[2,3,2,4], [3,1,2], [3,1,2]",
                       "[2,2,3,4], [2,1,3,2], [2,1,3,2]; interleaved=1", "[3,7], [3,2], [3,2]",
                       "[3,7], [2], [2]; interleaved=1", "[5], [2], [2]", "[0,4], [2], [2]",
                       "[2,0], [2,0], [2,0]", "[2,40,6,64], [40,1,32], [40,1,32]"}};
}

}  // namespace

// ONNX has it in later opsets than the one that stages are written in, hence our domain; it names
// positions and shapes in which the importer writes this one.
std::vector<OpDef> rotary_ops() {
  return {rotary_row(kRotate,
                     "Inputs x [..., width], cos and sin [..., pairs], broadcast to the axes of x: "
                     "pairs (a, b) of elements become (a cos - b sin, b cos + a sin); elements "
                     "after the last pair stay.",
                     kRotation),
          rotary_row(kRotateBack,
                     "dx of RotaryEmbedding from dy, cos and sin, which is dy rotated back: "
                     "RotaryEmbedding with -sin.",
                     kRotationBack)};
}

}  // namespace trainscope
