// Op row: steps written into a cache of steps, each example's from a place of its own on.
#include <string>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// cache [batch, ..., size, rest...], update [batch, ..., steps, rest...], begin [batch]

bool is_circular(const OpArgs& args) {
  const std::string mode = args.attributes.text("mode", "linear");
  require(mode == "linear" || mode == "circular", ErrorCode::kBadInput,
          "attribute mode is '{}'; linear and circular exist", printable(mode));
  return mode == "circular";
}

int step_axis(const OpArgs& args) {
  const int axis = args.axis("axis", -2, args.rank(0));
  require(axis > 0, ErrorCode::kBadInput, "attribute axis names axis 0, the batch, of {}",
          type_text(args.type(0)));
  return axis;
}

Types tensor_scatter_shape(const OpArgs& args) {
  const Shape& cache = args.shape(0);
  const int axis = step_axis(args);
  is_circular(args);
  require(args.type(1).dtype == args.type(0).dtype, ErrorCode::kBadInput,
          "cache and update must have one element type, are {} and {}", type_text(args.type(0)),
          type_text(args.type(1)));
  require_rank(args, 1, cache.rank);
  Shape expected = cache;
  expected[axis] = args.shape(1)[axis];
  require_shape(args, 1, expected);
  require(args.shape(1)[axis] <= cache[axis], ErrorCode::kBadInput,
          "the update {} has more steps than the cache {} along axis {}", shape_text(args.shape(1)),
          shape_text(cache), axis);
  if (args.has(2)) {
    require_dtype(args, 2, DType::kI64);
    require_shape(args, 2, {cache[0]});
  }
  return {args.type(0)};
}

// 0, factor, 2 factor, ... under a shape.
ValueId multiples(Builder& b, std::int64_t count, std::int64_t factor, const Shape& shape) {
  Ints numbers(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = i * factor;
  return b.constant(Tensor::ints(numbers).reshaped(shape), "places");
}

ValueId integer(Builder& b, std::int64_t number) {
  return b.constant(Tensor::scalar(number), "number");
}

// The steps' places along the axis: [batch, 1, steps], `size` for one outside.
ValueId step_places(Builder& b, const OpArgs& args, ValueId begin) {
  const int axis = step_axis(args);
  const std::int64_t size = args.shape(0)[axis];
  const std::int64_t batch = args.shape(0)[0];
  const std::int64_t steps = args.shape(1)[axis];
  const ValueId own = multiples(b, steps, 1, {1, 1, steps});
  if (begin == kNoValue) return b("Expand", {own, b.ints({batch, 1, steps})});
  const ValueId places = b("Add", {b.reshape(begin, {batch, 1, 1}), own});
  if (is_circular(args)) return b("Mod", {places, integer(b, size)});
  const ValueId inside = b(
      "And", {b("GreaterOrEqual", {places, integer(b, 0)}), b("Less", {places, integer(b, size)})});
  return b("Where", {inside, places, integer(b, size)});
}

Values tensor_scatter_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const int axis = step_axis(*args);
  const Shape cache = args->shape(0);
  const std::int64_t size = cache[axis];
  const std::int64_t steps = args->shape(1)[axis];
  const auto axes = cache.span();
  const auto a = static_cast<std::size_t>(axis);
  const std::int64_t prefixes = Shape(axes.first(a)).elements();
  const std::int64_t width = Shape(axes.subspan(a + 1)).elements();
  if (args->type(0).elements() == 0 || steps == 0) return {b("Identity", {node.inputs[0]})};
  const std::int64_t rows = prefixes * size;
  const ValueId places = step_places(b, *args, input_of(node, 2));
  const ValueId first = multiples(b, prefixes, size, {cache[0], prefixes / cache[0], 1});
  const ValueId inside = b("Less", {places, integer(b, size)});
  const ValueId index = b("Where", {inside, b("Add", {first, places}), integer(b, rows)});
  const ValueId written = b("PutRows", {b.reshape(node.inputs[0], {rows, width}),
                                        b.reshape(index, Shape{prefixes * steps}),
                                        b.reshape(node.inputs[1], {prefixes * steps, width})});
  return {b.reshape(written, cache)};
}

}  // namespace

std::vector<OpDef> tensor_scatter_ops() {
  return {
      {.name = "TensorScatter",
       .doc =
           "cache [batch,..,size,..], update [batch,..,steps,..], begin [batch] (0 if left out) -> "
           "the cache with the update's steps from begin on; a step outside makes all elements "
           "NaN (integers: it is ignored)",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 3,
       .attributes = {{"axis", "of the steps, -2 by default"},
                      {"mode", "linear (default), or circular: steps go on at the beginning"}},
       .shape = tensor_scatter_shape,
       .decompose = tensor_scatter_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[2,3,4,5], [2,3,2,5], i64[2]={1,2}", "[2,4,5], [2,2,5]",
                    "[2,4,5], [2,3,5], i64[2]={3,9}; mode='circular'",
                    "[2,3,4], [2,3,1], i64[2]<4; axis=2", "[2,4,5], [2,2,5], i64[2]={3,-1}",
                    "[0,4,5], [0,2,5], i64[0]<2", "[2,4,5], [2,0,5]",
                    "i64[2,4,5]<9, i64[2,2,5]<9, i64[2]={0,1}",
                    "[4,8,64,32], [4,8,1,32], i64[4]<64"}},
  };
}

}  // namespace trainscope
