// Op rows: single elements or slices read from and written to places that indices name. ONNX's four
// ops become a list of places (ElementIndex, SliceIndex) and Gather, PutRows, AddRows,
// MultiplyRows, MaxRows or MinRows.
#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

std::int64_t product(std::span<const std::int64_t> dims) { return Shape(dims).elements(); }

// --- ElementIndex and SliceIndex -----------------------------------------------------------------

// Input 1 of both: the shape of the tensor that the indices point into.
Shape indexed_shape(const OpArgs& args) {
  require_dtype(args, 1, DType::kI64);  // the kernel reads it
  return checked_shape(args.constant_ints(1));
}

// Indices of elements of `data`: equally many axes, and no longer ones but the one they are about.
void require_element_indices(const OpArgs& args, int indices, const Shape& data, int axis) {
  require_index(args, indices);
  require_rank(args, indices, data.rank);
  const Shape& shape = args.shape(indices);
  for (int a = 0; a < data.rank; ++a) {
    require(a == axis || shape[a] <= data[a], ErrorCode::kBadInput,
            "the indices {} are longer than the data {} along axis {}", shape_text(shape),
            shape_text(data), a);
  }
}

int element_axis(const OpArgs& args, const Shape& data) { return args.axis("axis", 0, data.rank); }

Params element_index_params(const OpArgs& args) {
  return AxisParams{.axis = element_axis(args, indexed_shape(args))};
}

Types element_index_shape(const OpArgs& args) {
  const Shape data = indexed_shape(args);
  require_element_indices(args, 0, data, element_axis(args, data));
  return {{.dtype = DType::kI64, .shape = args.shape(0)}};
}

// How indices [batch..., ..., k] name slices of `data`: by k axes after the batch ones.
struct Tuples {
  Shape places;  // the indices' shape without k
  Shape slice;   // data's axes after the k
  std::int64_t slices = 1;
};

Tuples tuples_of(const OpArgs& args, int indices, const Shape& data, std::int64_t batch_axes) {
  require_index(args, indices);
  const Shape& shape = args.shape(indices);
  require(shape.rank >= 1, ErrorCode::kBadInput, "the indices must have a dimension, are a scalar");
  require(batch_axes >= 0 && batch_axes < std::min(data.rank, shape.rank), ErrorCode::kBadInput,
          "batch_dims is {}, the data is {}, the indices are {}", batch_axes, shape_text(data),
          shape_text(shape));
  const std::int64_t count = shape[shape.rank - 1];
  require(count >= 1 && count <= data.rank - batch_axes, ErrorCode::kBadInput,
          "the last dimension of the indices {} must be in [1, {}] for data {} and batch_dims={}",
          shape_text(shape), data.rank - batch_axes, shape_text(data), batch_axes);
  for (int a = 0; a < batch_axes; ++a) {
    require(shape[a] == data[a], ErrorCode::kBadInput,
            "the indices {} and the data {} differ in batch axis {}", shape_text(shape),
            shape_text(data), a);
  }
  const auto named = static_cast<std::size_t>(batch_axes + count);
  return {.places = Shape(shape.span().first(static_cast<std::size_t>(shape.rank - 1))),
          .slice = Shape(data.span().subspan(named)),
          .slices = product(data.span().first(named))};
}

std::int64_t batch_dims(const OpArgs& args) { return args.attributes.integer("batch_dims", 0); }

Params slice_index_params(const OpArgs& args) {
  return AxisParams{.axis = static_cast<int>(batch_dims(args))};
}

Types slice_index_shape(const OpArgs& args) {
  const Tuples tuples = tuples_of(args, 0, indexed_shape(args), batch_dims(args));
  return {{.dtype = DType::kI64, .shape = tuples.places}};
}

ValueId element_index(Builder& b, ValueId indices, const Shape& data, std::int64_t axis) {
  return b("ElementIndex", {indices, b.ints(ints_of(data))}, {{"axis", axis}});
}

ValueId slice_index(Builder& b, ValueId indices, const Shape& data, std::int64_t batch_axes) {
  return b("SliceIndex", {indices, b.ints(ints_of(data))}, {{"batch_dims", batch_axes}});
}

// --- GatherElements and GatherND -----------------------------------------------------------------

Types gather_elements_shape(const OpArgs& args) {
  const Shape& data = args.shape(0);
  require_element_indices(args, 1, data, args.axis("axis", 0, data.rank));
  return {{.dtype = args.type(0).dtype, .shape = args.shape(1)}};
}

Values gather_elements_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Shape data = args->shape(0);
  const ValueId index = element_index(b, node.inputs[1], data, node.attributes.integer("axis", 0));
  const ValueId flat = b.reshape(node.inputs[0], Shape{data.elements()});
  return {b("Gather", {flat, index}, {{"axis", std::int64_t{0}}})};
}

Types gather_nd_shape(const OpArgs& args) {
  const Tuples tuples = tuples_of(args, 1, args.shape(0), batch_dims(args));
  Ints dims = ints_of(tuples.places);
  dims.insert(dims.end(), tuples.slice.span().begin(), tuples.slice.span().end());
  return {{.dtype = args.type(0).dtype, .shape = checked_shape(dims)}};
}

Values gather_nd_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Tuples tuples = tuples_of(*args, 1, args->shape(0), batch_dims(*args));
  const ValueId index = slice_index(b, node.inputs[1], args->shape(0), batch_dims(*args));
  Ints rows{tuples.slices};
  rows.insert(rows.end(), tuples.slice.span().begin(), tuples.slice.span().end());
  const ValueId slices = b.reshape(node.inputs[0], Shape(rows));
  return {b("Gather", {slices, index}, {{"axis", std::int64_t{0}}})};
}

// --- ScatterElements and ScatterND ---------------------------------------------------------------

// The op that does with rows what attribute reduction says.
std::string_view rows_op(const OpArgs& args) {
  constexpr std::pair<std::string_view, std::string_view> kOps[] = {
      {"add", "AddRows"}, {"mul", "MultiplyRows"}, {"max", "MaxRows"}, {"min", "MinRows"}};
  const std::string name = args.attributes.text("reduction", "none");
  if (name == "none") return "PutRows";
  const auto* found = std::ranges::find_if(kOps, [&](const auto& op) { return op.first == name; });
  require(found != std::end(kOps), ErrorCode::kBadInput,
          "attribute reduction is '{}'; none, add, mul, max and min exist", printable(name));
  require(is_number(args.type(0).dtype), ErrorCode::kBadInput,
          "reduction '{}' needs numbers, input 0 is {}", name, type_text(args.type(0)));
  return found->second;
}

// Inputs 0 (data) and 2 (updates) of one dtype, the updates of `shape`.
void require_updates(const OpArgs& args, const Shape& shape) {
  require(args.type(2).dtype == args.type(0).dtype, ErrorCode::kBadInput,
          "data and updates must have one element type, are {} and {}", type_text(args.type(0)),
          type_text(args.type(2)));
  require_shape(args, 2, shape);
}

Types scatter_elements_shape(const OpArgs& args) {
  const Shape& data = args.shape(0);
  require_element_indices(args, 1, data, args.axis("axis", 0, data.rank));
  rows_op(args);
  require_updates(args, args.shape(1));
  return {args.type(0)};
}

Types scatter_nd_shape(const OpArgs& args) {
  const Tuples tuples = tuples_of(args, 1, args.shape(0), 0);
  Ints dims = ints_of(tuples.places);
  dims.insert(dims.end(), tuples.slice.span().begin(), tuples.slice.span().end());
  rows_op(args);
  require_updates(args, checked_shape(dims));
  return {args.type(0)};
}

// The node's data seen as [rows, row elements], with its updates in them.
Values scatter_rows(Builder& b, const Node& node, ValueId index, std::int64_t rows) {
  const std::string_view op = rows_op(*NodeArgs(b.graph(), node));
  const Shape data = b.shape(node.inputs[0]);
  const std::int64_t places = b.shape(index).elements();
  const std::int64_t width = rows == 0 ? 1 : data.elements() / rows;
  const ValueId result =
      b(op, {b.reshape(node.inputs[0], {rows, width}), b.reshape(index, Shape{places}),
             b.reshape(node.inputs[2], {places, width})});
  return {b.reshape(result, data)};
}

Values scatter_elements_decomposition(Builder& b, const Node& node) {
  const Shape data = b.shape(node.inputs[0]);
  const ValueId index = element_index(b, node.inputs[1], data, node.attributes.integer("axis", 0));
  return scatter_rows(b, node, index, data.elements());
}

Values scatter_nd_decomposition(Builder& b, const Node& node) {
  const NodeArgs args(b.graph(), node);
  const Tuples tuples = tuples_of(*args, 1, args->shape(0), 0);
  // Slices without elements: nothing is written.
  if (args->type(0).elements() == 0) return {b("Identity", {node.inputs[0]})};
  return scatter_rows(b, node, slice_index(b, node.inputs[1], args->shape(0), 0), tuples.slices);
}

constexpr AttributeSpec kAxis{"axis", "the axis that the indices are about, 0 by default"};
constexpr AttributeSpec kBatchDims{"batch_dims", "leading axes that x and the indices share, 0"};
constexpr AttributeSpec kReduction{"reduction", "none (default: replaces), add, mul, max or min"};

std::vector<OpDef> gathering_ops() {
  return {
      {.name = "GatherElements",
       .doc =
           "elements of x: place p takes the one at p with indices[p] for its `axis` coordinate; "
           "an index outside gives NaN (integers: 0)",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kAxis},
       .shape = gather_elements_shape,
       .decompose = gather_elements_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[3,3], i64[2,3]<3", "[3,4], i32[3,2]<4; axis=1",
                    "[2,3,4], i64[1,3,5]<4; axis=-1", "[4], i64[2]={-1,-4}", "[3,2], i64[0,2]<3",
                    "[0,2], i64[0,2]<3", "[40,300], i64[40,700]<300; axis=1",
                    "i64[3,3]<9, i64[2,3]<3", "i32[3,3]<9, i64[2,3]<3", "bool[3,3], i32[2,3]<3"}},
      {.name = "GatherND",
       .doc = "slices of x: each row of the indices names one by its leading coordinates; a "
              "coordinate outside gives NaN (integers: 0)",
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kBatchDims},
       .shape = gather_nd_shape,
       .decompose = gather_nd_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[2,3,4], i64[5,2]<2", "[2,3,4], i64[2,1]={-1,0}", "[3,4], i64[6,2]<3",
                    "[2,3,4], i64[2,5,1]<3; batch_dims=1", "[2,3,4], i32[2,3,1]<4; batch_dims=2",
                    "[4], i64[3,1]<4", "[3,4], i64[0,2]<3", "[3,0], i64[2,1]<3",
                    "[30,40,50], i64[700,2]<30", "i64[2,3]<9, i64[4,2]<2", "i32[2,3]<9, i64[4,2]<2",
                    "bool[2,3], i64[4,2]<2"}},
  };
}

std::vector<OpDef> scattering_ops() {
  return {
      {.name = "ScatterElements",
       .doc = "x with updates at the places that GatherElements would read, in their order; an "
              "index outside makes all elements NaN (integers: it is ignored)",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {kAxis, kReduction},
       .shape = scatter_elements_shape,
       .decompose = scatter_elements_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[3,3], i64[2,3]={1,0,2,0,2,1}, [2,3]", "[1,5], i64[1,2]={1,3}, [1,2]; axis=1",
                    "[3,3], i64[4,3]<3, [4,3]; reduction='add'",
                    "[3,2], i32[2,3]={1,-1,0,0,1,-2}, [2,3]; axis=-1 reduction='add'",
                    "[3,3], i64[4,3]<3, [4,3]; reduction='mul'",
                    "[3,3]~, i64[4,3]<3, [4,3]~; reduction='max'",
                    "[4,3]~, i64[4,3]<3, [4,3]~; axis=1 reduction='min'",
                    "[3,2], i64[0,2]<3, [0,2]", "[0,2], i64[0,2]<3, [0,2]",
                    "[50,40], i64[900,40]<50, [900,40]; reduction='add'",
                    "i64[3,3]<9, i64[2,3]={1,0,2,0,2,1}, i64[2,3]<9; reduction='add'",
                    "i32[3,3]<9, i64[2,3]={1,0,2,0,2,1}, i32[2,3]<9; reduction='mul'",
                    "bool[3,3], i64[2,3]={1,0,2,0,2,1}, bool[2,3]"}},
      {.name = "ScatterND",
       .doc = "x with updates at the slices that GatherND would read, in their order; a coordinate "
              "outside makes all elements NaN (integers: it is ignored)",
       .min_inputs = 3,
       .max_inputs = 3,
       .attributes = {kReduction},
       .shape = scatter_nd_shape,
       .decompose = scatter_nd_decomposition,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[4,4,3], i64[2,1]={2,0}, [2,4,3]", "[3,4], i64[3,2]={0,1,-1,-1,2,0}, [3]",
                    "[4,3], i32[6,1]<4, [6,3]; reduction='add'",
                    "[4,3], i64[6,1]<4, [6,3]; reduction='mul'",
                    "[4,3]~, i64[6,1]<4, [6,3]~; reduction='max'",
                    "[4,3]~, i64[6,2]<3, [6]~; reduction='min'", "[5], i64[2,2,1]={0,3,1,4}, [2,2]",
                    "[3,4], i64[0,1]<3, [0,4]", "[3,0], i64[2,1]<3, [2,0]",
                    "[60,200], i64[500,1]<60, [500,200]; reduction='add'",
                    "i64[4]<9, i64[2,1]={0,3}, i64[2]<9", "bool[4], i64[2,1]={0,3}, bool[2]"}},
  };
}

// The lists of places are worth ops of their own: with ONNX's ops they would take a row of
// arithmetic for each coordinate.
std::vector<OpDef> place_ops() {
  return {
      {.name = "ElementIndex",
       .doc =
           "indices, shape -> the flat place that each index names in a tensor of that shape, as "
           "for GatherElements; the number of elements for one outside",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kAxis},
       .params = element_index_params,
       .shape = element_index_shape,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"i64[2,3]<3, i64[2]={3,3}", "i32[3,2]<4, i64[2]={3,4}; axis=1",
                    "i64[2]={-1,4}, i64[1]={4}", "i64[0,2]<3, i64[2]={3,2}",
                    "i64[300,200]<40, i64[2]={400,40}; axis=1"}},
      {.name = "SliceIndex",
       .doc =
           "indices [..., k], shape -> the number of the slice that each row names in a tensor of "
           "that shape, as for GatherND; the number of slices for one outside",
       .domain = kTrainscopeDomain,
       .min_inputs = 2,
       .max_inputs = 2,
       .attributes = {kBatchDims},
       .params = slice_index_params,
       .shape = slice_index_shape,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"i64[5,2]<2, i64[3]={2,3,4}", "i32[2,5,1]<3, i64[3]={2,3,4}; batch_dims=1",
                    "i64[2,1]={-1,4}, i64[1]={4}", "i64[0,2]<3, i64[2]={3,2}",
                    "i64[70000,2]<30, i64[2]={30,40}"}},
  };
}

}  // namespace

std::vector<OpDef> scatter_ops() {
  std::vector<OpDef> rows = gathering_ops();
  for (auto* more : {&scattering_ops, &place_ops}) {
    for (OpDef& row : more()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace trainscope
