// Op rows: values known without looking at any data.
#include "engine/ops/pointwise/constant.h"

#include <algorithm>
#include <limits>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

struct Range {
  int begin = 0;
  int end = 0;
};

// Attributes start and end of Shape: negative ones from the end, then clamped to [0, rank].
Range shape_range(const OpArgs& args) {
  const std::int64_t rank = args.rank(0);
  const auto bound = [rank](std::int64_t i) {
    return static_cast<int>(std::clamp<std::int64_t>(i < 0 ? i + rank : i, 0, rank));
  };
  const int begin = bound(args.attributes.integer("start", 0));
  return {.begin = begin, .end = std::max(begin, bound(args.attributes.integer("end", rank)))};
}

Types shape_shape(const OpArgs& args) {
  const Range range = shape_range(args);
  return {{.dtype = DType::kI64, .shape = Shape{std::int64_t{range.end - range.begin}}}};
}

Tensor known_shape(const OpArgs& args) {
  const Range range = shape_range(args);
  const Ints dims(args.shape(0).span().begin(), args.shape(0).span().end());
  return Tensor::ints(std::span(dims).subspan(static_cast<std::size_t>(range.begin),
                                              static_cast<std::size_t>(range.end - range.begin)));
}

Params shape_params(const OpArgs& args) {
  SliceParams params;
  params.start[0] = shape_range(args).begin;
  return params;
}

// Attribute `value` of ConstantOfShape; a float 0 when it is absent.
Tensor fill_tensor(const OpArgs& args) {
  const SharedTensor value = args.attributes.tensor("value");
  if (value == nullptr) return Tensor::scalar(0.0F);
  require(value->elements() == 1, ErrorCode::kBadInput,
          "attribute value must hold one element, is {}", type_text(value->type()));
  return *value;
}

Params fill_params(const OpArgs& args) {
  return FillParams{.value = convert(fill_tensor(args), DType::kF64).values<double>()[0]};
}

Types fill_shape(const OpArgs& args) {
  const Tensor value = fill_tensor(args);
  if (value.dtype() == DType::kI64) {
    constexpr std::int64_t kExact = std::int64_t{1} << 53;  // FillParams holds a double
    const std::int64_t number = value.values<std::int64_t>()[0];
    require_supported(number >= -kExact && number <= kExact,
                      "attribute value is {}; integers beyond 2^53 are not supported", number);
  }
  return {{.dtype = value.dtype(), .shape = checked_shape(args.constant_ints(0))}};
}

// --- Size, EyeLike -------------------------------------------------------------------------------
Types size_shape(const OpArgs&) { return {{.dtype = DType::kI64, .shape = {}}}; }

Tensor known_size(const OpArgs& args) { return Tensor::scalar(args.shape(0).elements()); }

Types eye_shape(const OpArgs& args) {
  require_rank(args, 0, 2);
  const std::int64_t given = onnx_number(args.type(0).dtype);
  return {
      {.dtype = dtype_of_onnx(args.attributes.integer("dtype", given)), .shape = args.shape(0)}};
}

// The triangle above diagonal k of the one below it.
Values eye_decomposition(Builder& b, const Node& node) {
  const TensorType type = b.type(node.outputs[0]);
  const std::int64_t k = node.attributes.integer("k", 0);
  const ValueId diagonal = b.constant(Tensor::scalar(k), "diagonal");
  const Ints dims(type.shape.span().begin(), type.shape.span().end());
  const ValueId ones = b("ConstantOfShape", {b.ints(dims)}, {{"value", filled(1.0, type.dtype)}});
  const ValueId below = b("Trilu", {ones, diagonal}, {{"upper", std::int64_t{0}}});
  return {b("Trilu", {below, diagonal}, {{"upper", std::int64_t{1}}})};
}

}  // namespace

Tensor constant_value(const Attributes& attributes) {
  require(attributes.map().size() == 1, ErrorCode::kBadInput,
          "one of the attributes value, value_float, value_floats, value_int and value_ints is "
          "expected, {} attributes are given",
          attributes.map().size());
  if (const SharedTensor value = attributes.tensor("value")) return *value;
  if (attributes.has("value_float")) {
    return Tensor::scalar(static_cast<float>(attributes.number("value_float", 0)));
  }
  if (attributes.has("value_int")) return Tensor::scalar(attributes.integer("value_int", 0));
  if (attributes.has("value_ints")) return Tensor::ints(attributes.integers("value_ints"));
  require_supported(attributes.has("value_floats"),
                    "attribute {} is not supported (value, value_float, value_floats, value_int "
                    "and value_ints are)",
                    printable(attributes.map().begin()->first));
  const Floats numbers = attributes.numbers("value_floats");
  const Shape shape{static_cast<std::int64_t>(numbers.size())};
  return convert(Tensor::of<double>(shape, numbers), DType::kF32);
}

std::vector<OpDef> constant_ops() {
  return {
      {.name = "Constant",
       .doc = "the value of its attribute; the importer and decompose make it a graph constant",
       .min_inputs = 0,
       .max_inputs = 0,
       .attributes = {{"value", "a tensor"},
                      {"value_float", "an f32 scalar"},
                      {"value_floats", "f32 numbers"},
                      {"value_int", "an i64 scalar"},
                      {"value_ints", "i64 numbers"}},
       .shape = [](const OpArgs& args) -> Types {
         return {constant_value(args.attributes).type()};
       },
       .decompose = [](Builder& b, const Node& node) -> Values {
         return {b.constant(constant_value(node.attributes))};
       },
       .cost = no_cost,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"; value_float=1.5", "; value_ints={1,2,3}", "; value_int=7",
                    "; value_floats={0.5,2.0}"}},
      {.name = "ConstantOfShape",
       .doc = "a tensor of the shape in input 0, filled with one value",
       .attributes = {{"value", "a tensor of one element; f32 0 by default"}},
       .params = fill_params,
       .shape = fill_shape,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"i64[2]={2,3}", "i64[0]={}", "i64[1]={0}", "i64[2]={300,300}"}},
      {.name = "Shape",
       .doc = "the dimensions start to end of x as i64",
       .attributes = {{"start", "0 by default, negative from the end"},
                      {"end", "the rank by default"}},
       .params = shape_params,
       .shape = shape_shape,
       .cost = no_cost,
       .known = known_shape,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kWholeValues,
       .examples = {"[2,3,4]", "[2,3,4]; start=1", "[2,3,4]; start=-2 end=-1", "[]", "[0,2]",
                    "i64[3]<9", "bool[2,2]"}},
      {.name = "Size",
       .doc = "the number of elements of x as i64",
       .shape = size_shape,
       .decompose = [](Builder& b, const Node& node) -> Values {
         return {b.constant(Tensor::scalar(b.shape(node.inputs[0]).elements()), "size")};
       },
       .cost = no_cost,
       .known = known_size,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[2,3,4]", "[]", "[0,2]", "i64[3]<9", "bool[2,2]"}},
      {.name = "EyeLike",
       .doc = "1 on diagonal k of a matrix of x's shape, else 0",
       .attributes = {{"k", "0 (default) is the main diagonal, 1 the one above it"},
                      {"dtype", "ONNX's number of the result's type, x's by default"}},
       .shape = eye_shape,
       .decompose = eye_decomposition,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kMovement,
       .traits = kComposite,
       .examples = {"[3,4]", "[4,3]; k=1", "[4,3]; k=-2", "i32[3,3]; dtype=1", "[2,2]; k=9 dtype=9",
                    "[0,3]; dtype=7"}},
  };
}

}  // namespace trainscope
