// Op rows: elements looked up by index.
#include <algorithm>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// data[..., indices, ...] with the indices' shape in place of the axis.
Shape gathered_shape(const Shape& data, const Shape& indices, int axis) {
  Ints dims(data.span().begin(), data.span().begin() + axis);
  dims.insert(dims.end(), indices.span().begin(), indices.span().end());
  dims.insert(dims.end(), data.span().begin() + axis + 1, data.span().end());
  return checked_shape(dims);
}

Types gather_shape(const OpArgs& args) {
  require_index(args, 1);
  const int axis = args.axis("axis", 0, args.rank(0));
  return {
      {.dtype = args.type(0).dtype, .shape = gathered_shape(args.shape(0), args.shape(1), axis)}};
}

Params gather_params(const OpArgs& args) {
  return AxisParams{.axis = args.axis("axis", 0, args.rank(0))};
}

Values gather_gradient(const GradArgs& g) {
  const Shape shape = g.type(g.x[0]).shape;
  return {g.b("GatherGrad", {g.dy[0], g.x[1]},
              {{"axis", g.node.attributes.integer("axis", 0)},
               {"shape", Ints(shape.span().begin(), shape.span().end())}}),
          kNoValue};
}

Types gather_grad_shape(const OpArgs& args) {
  require_float(args, 0);
  require_index(args, 1);
  const Shape shape = checked_shape(args.attributes.integers("shape"));
  const int axis = args.axis("axis", 0, shape.rank);
  require_shape(args, 0, gathered_shape(shape, args.shape(1), axis));
  if (args.has(2)) {
    require_dtype(args, 2, args.type(0).dtype);
    require_shape(args, 2, shape);
  }
  return {{.dtype = args.type(0).dtype, .shape = shape}};
}

Params gather_grad_params(const OpArgs& args) {
  return AxisParams{
      .axis = args.axis("axis", 0, static_cast<int>(args.attributes.integers("shape").size()))};
}

Values gather_grad_gradient(const GradArgs& g) {
  Values gradients(g.x.size(), kNoValue);
  if (g.wants(0)) {
    gradients[0] =
        g.b("Gather", {g.dy[0], g.x[1]}, {{"axis", g.node.attributes.integer("axis", 0)}});
  }
  if (g.x.size() > 2) gradients[2] = g.dy[0];
  return gradients;
}

// Into zeros, or into a sum in place, where only the rows that the indices name are touched.
Cost gather_grad_cost(const OpArgs& args) {
  const auto dy = static_cast<std::int64_t>(args.type(0).bytes());
  const std::int64_t flops = args.type(0).elements();
  if (!args.has(2)) return with_flops(args, flops);
  const auto indices = static_cast<std::int64_t>(args.type(1).bytes());
  return {.flops = flops, .bytes_read = 2 * dy + indices, .bytes_written = dy};
}

std::vector<InPlace> gather_grad_in_place(const OpArgs& args) {
  if (!args.has(2)) return {};
  return {{.output = 0, .input = 2}};
}

// --- Shards --------------------------------------------------------------------------------------
// A table with more rows than columns is one of tokens. Each device looks up what it has.
std::optional<Shards> shard_gather(const ShardingArgs& a) {
  const Shard table = input_shard(a, 0);
  if (a.op.rank(0) != 2 || a.op.axis("axis", 0, 2) != 0) return std::nullopt;
  const bool tokens = a.op.shape(0)[0] > a.op.shape(0)[1];
  if (table.is_open() && tokens) choose_shard(a, 0, Shard::split(0));
  if (input_shard(a, 0) != Shard::split(0)) return std::nullopt;
  return Shards{Shard::partial()};
}

// Each device keeps the rows that it has, also of a sum that it adds to.
std::optional<Shards> shard_gather_grad(const ShardingArgs& a) {
  const Shard rows = Shard::split(0);
  if (!input_shard(a, 0).is_whole() || a.wanted.front() != rows) return std::nullopt;
  if (a.op.has(2) && input_shard(a, 2) != rows) return std::nullopt;
  return Shards{rows};
}

// --- Rows of different ids -----------------------------------------------------------------------
// As many sums as there can be different ids.
Types sum_rows_shape(const OpArgs& args) {
  require_float(args, 0);
  require_index(args, 1);
  require_dtype(args, 2, DType::kI64);
  require_rank(args, 2, 0);
  const std::int64_t size = args.constant_ints(2)[0];
  Ints dims{size};
  for (int axis = args.rank(1); axis < args.rank(0); ++axis) dims.push_back(args.shape(0)[axis]);
  require_shape(args, 0, gathered_shape(checked_shape(dims), args.shape(1), 0));
  dims[0] = std::min(size, args.type(1).elements());
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(dims)},
          {.dtype = DType::kI64, .shape = {dims[0]}},
          {.dtype = DType::kI64, .shape = {}}};
}

OpDef sum_rows_row() {
  return {.name = "SumRowsById",
          .doc =
              "dy [ids.., ..], ids, size -> sums, ids, count: the sum of dy's slices of each "
              "different id, in their order; the ids, ascending; how many. From count on sums and "
              "ids are 0. GatherGrad's slices, of `size`, that can be other than 0; negative ids "
              "count from the end, those outside are ignored",
          .domain = kTrainscopeDomain,
          .min_inputs = 3,
          .max_inputs = 3,
          .max_outputs = 3,
          .shape = sum_rows_shape,
          .cost = per_input_element<1>,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kReduction,
          .traits = kWholeValuesOnce,
          .examples = {
              "[4,3], i64[4]<9, i64[]={9}; outputs=3", "[2,2,3], i64[2,2]<5, i64[]={5}; outputs=3",
              "[5,3], i32[5]={-1,2,9,2,-10}, i64[]={9}; outputs=3",
              "[7,3], i64[7]<3, i64[]={3}; outputs=3", "[3], i64[3]<4, i64[]={4}; outputs=3",
              "[3], i64[]={-1}, i64[]={9}; outputs=3", "[0,3], i64[0]<4, i64[]={4}; outputs=3",
              "[2,3], i64[2]={0,0}, i64[]={0}; outputs=3",
              "[12,64,128], i64[12,64]<5000, i64[]={5000}; outputs=3",
              "[70000], i64[70000]<50, i64[]={50}; outputs=3", "[4,3], i64[4]<9, i64[]={9}"}};
}

}  // namespace

std::vector<OpDef> index_ops() {
  return {
      {.name = "Gather",
       .doc = "slices of x at the indices of input 1; an index outside gives NaN (integers: 0)",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"axis", "the axis that the indices are about, 0 by default"}},
       .params = gather_params,
       .shape = gather_shape,
       .gradient = gather_gradient,
       .cost = copies_output,
       .axis = 0,
       .index_input = 1,
       .precision = Precision::kRounded,
       .op_class = OpClass::kMovement,
       .traits = sharded({.rule = shard_gather, .exchanges = true}),
       .examples = {"[5,3], i64[4]<5", "[5,3], i64[2,2]<5", "[3,5], i32[4]<5; axis=1",
                    "[3,5], i64[]={-1}; axis=-1", "[2,5,3], i64[2]={-5,4}; axis=1", "[4], i64[3]<4",
                    "[4,2], i64[0]<4", "[3,0], i64[2]<3", "[65,128], i64[12,64]<65",
                    "i64[5]<9, i64[2]<5", "bool[5], i64[2]<5"}},
      {.name = "GatherGrad",
       .doc = "zeros of a shape, or input 2, plus dy added at the indices of input 1, in their "
              "order",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {{"axis", "the axis that the indices are about, 0 by default"},
                      {"shape", "of the result"}},
       .params = gather_grad_params,
       .shape = gather_grad_shape,
       .gradient = gather_grad_gradient,
       .cost = gather_grad_cost,
       .in_place = gather_grad_in_place,
       .added_input = 2,
       .axis = 0,
       .scatters = "Gather",
       .op_class = OpClass::kMovement,
       .traits =
           sharded_once({.rule = shard_gather_grad, .exchanges = true, .shape_attribute = "shape"}),
       .examples = {"[4,3], i64[4]<5; shape={5,3}", "[2,2,3], i64[2,2]<5; shape={5,3}",
                    "[3,4], i32[4]<5; axis=1 shape={3,5}", "[2], i64[]={-1}; axis=-1 shape={2,3}",
                    "[3], i64[3]<4; shape={4}", "[0,3], i64[0]<4; shape={4,3}",
                    "[12,64,128], i64[12,64]<65; shape={65,128}",
                    "[70000], i64[70000]<50; shape={50}", "[4,3], i64[4]<5, [5,3]; shape={5,3}",
                    "[3,4], i32[4]<5, [3,5]; axis=1 shape={3,5}",
                    "[0,3], i64[0]<4, [4,3]; shape={4,3}",
                    "[12,64,128], i64[12,64]<65, [65,128]; shape={65,128}"}},
      sum_rows_row(),
  };
}

}  // namespace trainscope
