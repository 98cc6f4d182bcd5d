// Op rows: whole tensors rearranged, repeated or selected from, each by simpler movements.
#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

// 0, 1, ... size - 1 under a shape of that many elements.
ValueId counting(Builder& b, const Shape& shape) {
  Ints numbers(static_cast<std::size_t>(shape.elements()));
  std::iota(numbers.begin(), numbers.end(), 0);
  return b.constant(Tensor::ints(numbers).reshaped(shape), "places");
}

ValueId integer(Builder& b, std::int64_t number) {
  return b.constant(Tensor::scalar(number), "number");
}

// --- Tile ----------------------------------------------------------------------------------------

Ints tile_repeats(const OpArgs& args) {
  const Ints repeats = args.constant_ints(1);
  require(std::ssize(repeats) == args.rank(0), ErrorCode::kBadInput,
          "{} numbers of repeats for {}; one for each dimension is expected", repeats.size(),
          type_text(args.type(0)));
  for (std::int64_t repeat : repeats) {
    require(repeat >= 0, ErrorCode::kBadInput, "the number of repeats {} is negative", repeat);
  }
  return repeats;
}

Types tile_shape(const OpArgs& args) {
  const Ints repeats = tile_repeats(args);
  Shape shape = args.shape(0);
  for (int axis = 0; axis < shape.rank; ++axis) {
    shape[axis] = checked_multiply(shape[axis], repeats[static_cast<std::size_t>(axis)]);
  }
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(shape)}};
}

// Axes from the last one on, so that the largest copies move the longest runs; those that vanish
// come first, so that nothing is made on the way to an empty result.
std::vector<int> tile_order(const Ints& repeats) {
  std::vector<int> order(repeats.size());
  std::iota(order.rbegin(), order.rend(), 0);
  std::stable_partition(order.begin(), order.end(), [&repeats](int axis) {
    return repeats[static_cast<std::size_t>(axis)] == 0;
  });
  return order;
}

// Axis by axis [before, 1, axis and after] is broadcast to [before, repeats, axis and after].
Values tile_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Ints repeats = tile_repeats(*args);
  Shape shape = args->shape(0);
  ValueId x = node.inputs[0];
  for (int axis : tile_order(repeats)) {
    const std::int64_t repeat = repeats[static_cast<std::size_t>(axis)];
    if (repeat == 1) continue;
    const auto split = static_cast<std::size_t>(axis);
    const std::int64_t before = Shape(shape.span().first(split)).elements();
    const std::int64_t after = Shape(shape.span().subspan(split)).elements();
    x = b.reshape(x, {before, 1, after});
    x = b("Expand", {x, b.ints({before, repeat, after})});
    shape[axis] *= repeat;
  }
  return {own_value(b, node, b.reshape(x, shape))};
}

// --- DepthToSpace and SpaceToDepth ---------------------------------------------------------------

std::int64_t block_size(const OpArgs& args) {
  require_rank(args, 0, 4);
  const std::int64_t size = args.attributes.integer("blocksize", 0);
  constexpr std::int64_t kMost = std::int64_t{1} << 20;  // its square times a size fits
  require(size >= 1 && size <= kMost, ErrorCode::kBadInput,
          "attribute blocksize is {}, expected a number in [1, {}]", size, kMost);
  return size;
}

enum class BlockOrder : std::uint8_t { kDepthFirst, kColumnFirst };  // ONNX: DCR, CRD

BlockOrder block_order(const OpArgs& args) {
  const std::string mode = args.attributes.text("mode", "DCR");
  require(mode == "DCR" || mode == "CRD", ErrorCode::kBadInput,
          "attribute mode is '{}'; DCR and CRD exist", printable(mode));
  return mode == "DCR" ? BlockOrder::kDepthFirst : BlockOrder::kColumnFirst;
}

Types depth_to_space_shape(const OpArgs& args) {
  const std::int64_t block = block_size(args);
  block_order(args);
  const Shape& x = args.shape(0);
  require(x[1] % (block * block) == 0, ErrorCode::kBadInput,
          "{} channels cannot be divided into blocks of {} x {}", x[1], block, block);
  const Shape y{x[0], x[1] / (block * block), checked_multiply(x[2], block),
                checked_multiply(x[3], block)};
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(y)}};
}

Values depth_to_space_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Shape x = args->shape(0);
  const std::int64_t block = block_size(*args);
  const bool depth_first = block_order(*args) == BlockOrder::kDepthFirst;
  const std::int64_t depth = x[1] / (block * block);
  const Shape blocks = depth_first ? Shape{x[0], block, block, depth, x[2], x[3]}
                                   : Shape{x[0], depth, block, block, x[2], x[3]};
  const ValueId moved = transposed(b, b.reshape(node.inputs[0], blocks),
                                   depth_first ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3});
  return {b.reshape(moved, {x[0], depth, x[2] * block, x[3] * block})};
}

Types space_to_depth_shape(const OpArgs& args) {
  const std::int64_t block = block_size(args);
  block_order(args);
  const Shape& x = args.shape(0);
  require(x[2] % block == 0 && x[3] % block == 0, ErrorCode::kBadInput,
          "an image of {} x {} cannot be divided into blocks of {} x {}", x[2], x[3], block, block);
  const Shape y{x[0], checked_multiply(x[1], block * block), x[2] / block, x[3] / block};
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(y)}};
}

Values space_to_depth_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Shape x = args->shape(0);
  const std::int64_t block = block_size(*args);
  const ValueId blocks =
      b.reshape(node.inputs[0], {x[0], x[1], x[2] / block, block, x[3] / block, block});
  const bool depth_first = block_order(*args) == BlockOrder::kDepthFirst;
  const ValueId moved =
      transposed(b, blocks, depth_first ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4});
  return {b.reshape(moved, {x[0], x[1] * block * block, x[2] / block, x[3] / block})};
}

// --- OneHot(indices, depth, values [off, on]) ----------------------------------------------------

std::int64_t one_hot_depth(const OpArgs& args) {
  const double depth = args.constant_number(1, 0.0);
  constexpr double kMost = 16777216.0;  // the places along the axis are a constant
  require(depth >= 0.0 && depth <= kMost, ErrorCode::kBadInput,
          "input 1, the depth, is {}, expected a number in [0, {}]", depth, kMost);
  return static_cast<std::int64_t>(depth);
}

int one_hot_axis(const OpArgs& args) { return args.axis("axis", -1, args.rank(0) + 1); }

Types one_hot_shape(const OpArgs& args) {
  require(is_number(args.type(0).dtype), ErrorCode::kBadInput,
          "the indices must be numbers, are {}", type_text(args.type(0)));
  require_shape(args, 2, Shape{2});
  Ints dims = ints_of(args.shape(0));
  dims.insert(dims.begin() + one_hot_axis(args), one_hot_depth(args));
  return {{.dtype = args.type(2).dtype, .shape = checked_shape(dims)}};
}

ValueId element_of(Builder& b, ValueId vector, std::int64_t i) {
  return b.reshape(b("Slice", {vector, b.ints({i}), b.ints({i + 1})}), Shape{});
}

// `on` where a place along the axis is the index; negative indices count from the depth.
Values one_hot_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const std::int64_t depth = one_hot_depth(*args);
  const int axis = one_hot_axis(*args);
  Ints dims = ints_of(args->shape(0));
  dims.insert(dims.begin() + axis, 1);
  const ValueId given = b.reshape(cast_to(b, node.inputs[0], DType::kI64), Shape(dims));
  const ValueId from_end = b("Add", {given, integer(b, depth)});
  const ValueId index = b("Where", {b("Less", {given, integer(b, 0)}), from_end, given});
  Shape places{depth};
  while (places.rank < std::ssize(dims) - axis) places.push_back(1);
  const ValueId hot = b("Equal", {index, counting(b, places)});
  return {b("Where", {hot, element_of(b, node.inputs[2], 1), element_of(b, node.inputs[2], 0)})};
}

// --- ReverseSequence(x, lengths) -----------------------------------------------------------------

// 0 when time is the first axis and batch the second, 1 the other way round.
int time_axis(const OpArgs& args) {
  const std::int64_t time = args.attributes.integer("time_axis", 0);
  const std::int64_t batch = args.attributes.integer("batch_axis", 1);
  require((time == 0 && batch == 1) || (time == 1 && batch == 0), ErrorCode::kBadInput,
          "time_axis is {} and batch_axis {}; one must be 0 and the other 1", time, batch);
  return static_cast<int>(time);
}

Types reverse_sequence_shape(const OpArgs& args) {
  require(args.rank(0) >= 2, ErrorCode::kBadInput,
          "input 0 must have a time and a batch dimension, is {}", type_text(args.type(0)));
  require_dtype(args, 1, DType::kI64);
  require_shape(args, 1, Shape{args.shape(0)[1 - time_axis(args)]});
  return same_as_first(args);
}

// Row (t, n) comes from row (length[n] - 1 - t, n) while t < length[n], else from itself.
Values reverse_sequence_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Shape x = args->shape(0);
  if (args->type(0).elements() == 0) return {b("Identity", {node.inputs[0]})};
  const bool time_first = time_axis(*args) == 0;
  const std::int64_t times = x[time_first ? 0 : 1];
  const std::int64_t batch = x[time_first ? 1 : 0];
  const Shape along_time = time_first ? Shape{times, 1} : Shape{1, times};
  const Shape along_batch = time_first ? Shape{1, batch} : Shape{batch, 1};
  const ValueId time = counting(b, along_time);
  const ValueId length = b.reshape(node.inputs[1], along_batch);
  const ValueId last = b("Sub", {length, integer(b, 1)});
  const ValueId source = b("Where", {b("Less", {time, length}), b("Sub", {last, time}), time});
  const ValueId example = counting(b, along_batch);
  const ValueId row = time_first ? b("Add", {b("Mul", {source, integer(b, batch)}), example})
                                 : b("Add", {b("Mul", {example, integer(b, times)}), source});
  Ints rows{times * batch};
  rows.insert(rows.end(), x.span().begin() + 2, x.span().end());
  const ValueId moved =
      b("Gather", {b.reshape(node.inputs[0], Shape(rows)), b.reshape(row, Shape{times * batch})});
  return {b.reshape(moved, x)};
}

// --- Compress(x, condition) ----------------------------------------------------------------------

// The places at which the condition, known when the graph is built, is true.
Ints compressed_places(const OpArgs& args) {
  require_dtype(args, 1, DType::kBool);
  require_rank(args, 1, 1);
  Ints places;
  std::int64_t place = 0;
  for (const bool taken : known_input(args, 1).values<bool>()) {
    if (taken) places.push_back(place);
    ++place;
  }
  return places;
}

// x itself, or all its elements in a row when no axis is given.
struct Compressed {
  Shape x;
  int axis = 0;
};

Compressed compressed(const OpArgs& args) {
  if (!args.attributes.has("axis")) return {.x = Shape{args.type(0).elements()}};
  return {.x = args.shape(0), .axis = args.axis("axis", 0, args.rank(0))};
}

Types compress_shape(const OpArgs& args) {
  Compressed from = compressed(args);
  const Ints places = compressed_places(args);
  require(args.type(1).elements() <= from.x[from.axis], ErrorCode::kBadInput,
          "the condition has {} elements, axis {} of {} has {}", args.type(1).elements(), from.axis,
          shape_text(from.x), from.x[from.axis]);
  from.x[from.axis] = std::ssize(places);
  return {{.dtype = args.type(0).dtype, .shape = from.x}};
}

Values compress_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Compressed from = compressed(*args);
  const ValueId places = b.ints(compressed_places(*args));
  return {b("Gather", {b.reshape(node.inputs[0], from.x), places},
            {{"axis", std::int64_t{from.axis}}})};
}

constexpr AttributeSpec kBlockSize{"blocksize", "sides of the blocks; required"};
constexpr AttributeSpec kBlockOrder{"mode",
                                    "DCR (default): the block before the depth; CRD: after"};

std::vector<OpDef> block_ops() {
  return {
      {.name = "Tile",
       .doc = "x repeated as often along each axis as input 1 says",
       .min_inputs = 2,
       .max_inputs = 2,
       .shape = tile_shape,
       .decompose = tile_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[2,3], i64[2]={2,3}", "[2,3], i64[2]={1,2}", "[2,3], i64[2]={1,1}",
                    "[2,1,3], i64[3]={3,2,1}", "[], i64[0]={}", "[2], i64[1]={0}",
                    "[0,2], i64[2]={2,2}", "[30,40,5], i64[3]={3,2,4}", "i64[2]<9, i64[1]={2}",
                    "bool[2,2], i32[2]={2,1}"}},
      {.name = "DepthToSpace",
       .doc = "[N,C,H,W] with blocks of channels spread over space",
       .attributes = {kBlockSize, kBlockOrder},
       .shape = depth_to_space_shape,
       .decompose = depth_to_space_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[1,8,2,3]; blocksize=2", "[2,8,2,3]; blocksize=2 mode='CRD'",
                    "[1,9,2,1]; blocksize=3", "[1,2,2,2]; blocksize=1", "[0,4,2,2]; blocksize=2",
                    "[2,64,30,20]; blocksize=4", "i64[1,4,1,2]<9; blocksize=2"}},
      {.name = "SpaceToDepth",
       .doc = "[N,C,H,W] with blocks of space moved into channels, as DepthToSpace undoes",
       .attributes = {kBlockSize, kBlockOrder},
       .shape = space_to_depth_shape,
       .decompose = space_to_depth_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[1,2,4,6]; blocksize=2", "[2,1,3,6]; blocksize=3", "[1,2,2,2]; blocksize=1",
                    "[1,2,4,6]; blocksize=2 mode='CRD'", "[0,1,2,2]; blocksize=2",
                    "[2,4,60,80]; blocksize=4", "i64[1,1,2,2]<9; blocksize=2"}},
  };
}

std::vector<OpDef> selecting_ops() {
  return {
      {.name = "OneHot",
       .doc = "indices, depth, [off, on] -> `on` at each index along a new axis, else `off`; an "
              "index outside [-depth, depth) has no `on`",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {{"axis", "place of the new axis, -1 (the last) by default"}},
       .shape = one_hot_shape,
       .decompose = one_hot_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"i64[3]<5, i64[]={5}, [2]", "i32[2,3]<4, i64[1]={4}, [2]; axis=0",
                    "i64[2,3]<4, []={6}, [2]; axis=1",
                    "i64[4]={-1,-4,4,-5}, i64[]={4}, [2]; axis=-2", "[2,2]={0,1,3,-2}, []={4}, [2]",
                    "i64[]={2}, i64[]={4}, [2]", "i64[0]<3, i64[]={3}, [2]",
                    "i64[2]={0,1}, i64[]={0}, [2]", "i64[300]<200, i64[]={200}, [2]",
                    "i64[3]<5, []={5}, i32[2]<9", "i64[3]<5, i64[]={5}, bool[2]"}},
      {.name = "ReverseSequence",
       .doc = "x with the first length[n] steps of example n reversed in time; a length beyond the "
              "steps there are gives undefined elements",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"time_axis", "0 (default) or 1"}, {"batch_axis", "1 (default) or 0"}},
       .shape = reverse_sequence_shape,
       .decompose = reverse_sequence_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[4,3], i64[3]={4,1,3}", "[3,4,2], i64[3]={4,1,0}; time_axis=1 batch_axis=0",
                    "[4,0], i64[0]<2", "[90,40,20], i64[40]<90", "i64[4,2]<9, i64[2]={2,4}"}},
      {.name = "Compress",
       .doc = "the slices of x (without `axis`: its elements) for which input 1 is true; input 1 "
              "must be known when the graph is built",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {{"axis", "the axis to select from; absent: x as a vector"}},
       .shape = compress_shape,
       .decompose = compress_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[3,2], bool[3]={0,1,1}; axis=0", "[3,2], bool[2]={0,1}; axis=-1",
                    "[3,2], bool[5]={0,1,0,0,1}", "[3,2], bool[3]={0,0,0}; axis=0",
                    "[0,2], bool[0]={}; axis=0", "i64[3,2]<9, bool[2]={1,0}; axis=1"}},
  };
}

}  // namespace

std::vector<OpDef> rearrange_ops() {
  std::vector<OpDef> rows = block_ops();
  for (OpDef& row : selecting_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace trainscope
