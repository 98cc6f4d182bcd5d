// Op rows: random numbers, drawn from a counter: ONNX's random ops, and what they are made of.
#include <bit>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/text.h"
#include "engine/ir/builder.h"
#include "engine/ops/attention/dropout_rules.h"
#include "engine/ops/rules/composite.h"
#include "engine/ops/rules/cost_rules.h"
#include "engine/ops/rules/gradient_rules.h"
#include "engine/ops/rules/shape_rules.h"
#include "engine/ops/rules/traits.h"

namespace trainscope {
namespace {

constexpr std::int64_t kFloatNumber = 1;  // ONNX's of f32, the default of most of these ops
constexpr std::int64_t kI32Number = 6;    // and of i32, Multinomial's

// --- UniformNumbers and NormalNumbers ------------------------------------------------------------

Params numbers_params(const OpArgs& args) { return dropout_params(args, 0.0); }

Types numbers_shape(const OpArgs& args) {
  require_dtype(args, 0, DType::kI64);
  require_rank(args, 0, 0);
  numbers_params(args);  // checks seed and stream
  const DType dtype = dtype_of_onnx(args.attributes.integer("dtype", kFloatNumber));
  require(dtype == DType::kF32 || dtype == DType::kF64, ErrorCode::kBadInput,
          "numbers are drawn in f32 or f64, attribute dtype says {}", name_of(dtype));
  return {{.dtype = dtype, .shape = checked_shape(args.attributes.integers("shape"))}};
}

// Numbers of a float type under a shape, for a node of ONNX. Until `training_form` gives them the
// step and a stream of their own they are drawn for step 0.
ValueId drawn(Builder& b, const Node& node, std::string_view op, const TensorType& type) {
  const DType wide = type.dtype == DType::kF64 ? DType::kF64 : DType::kF32;
  const auto seed = std::bit_cast<std::int64_t>(node.attributes.number("seed", 0.0));
  const ValueId step = b.constant(Tensor::scalar(std::int64_t{0}), "step");
  const ValueId numbers =
      b(op, {step}, {{"shape", ints_of(type.shape)}, {"dtype", onnx_number(wide)}, {"seed", seed}});
  return cast_to(b, numbers, type.dtype);
}

// --- RandomNormal, RandomUniform and their forms for a shape like another's ----------------------

// The type of the result: `shape` or that of input 0, and attribute dtype.
TensorType random_type(const OpArgs& args) {
  const bool is_like = args.input_count() > 0;
  const std::int64_t absent = is_like ? onnx_number(args.type(0).dtype) : kFloatNumber;
  const DType dtype = dtype_of_onnx(args.attributes.integer("dtype", absent));
  require(is_float(dtype), ErrorCode::kBadInput,
          "random numbers are floats, the result would be {}; attribute dtype tells another type",
          name_of(dtype));
  require(is_like || args.attributes.has("shape"), ErrorCode::kBadInput,
          "attribute shape is missing");
  return {.dtype = dtype,
          .shape = is_like ? args.shape(0) : checked_shape(args.attributes.integers("shape"))};
}

Types random_shape(const OpArgs& args) { return {random_type(args)}; }

// numbers * factor + offset
ValueId scaled(Builder& b, ValueId numbers, double factor, double offset) {
  const DType dtype = b.type(numbers).dtype;
  return b("Add", {b("Mul", {numbers, b.scalar(factor, dtype)}), b.scalar(offset, dtype)});
}

Values normal_decomposition(Builder& b, const Node& node) {
  const TensorType type = random_type(*NodeArgs(b.graph(), node));
  return {scaled(b, drawn(b, node, "NormalNumbers", type), node.attributes.number("scale", 1.0),
                 node.attributes.number("mean", 0.0))};
}

Values uniform_decomposition(Builder& b, const Node& node) {
  const TensorType type = random_type(*NodeArgs(b.graph(), node));
  const double low = node.attributes.number("low", 0.0);
  const double high = node.attributes.number("high", 1.0);
  return {scaled(b, drawn(b, node, "UniformNumbers", type), high - low, low)};
}

// --- Bernoulli and Multinomial -------------------------------------------------------------------

Types bernoulli_shape(const OpArgs& args) {
  require_float(args, 0);
  const std::int64_t given = args.attributes.integer("dtype", onnx_number(args.type(0).dtype));
  return {{.dtype = dtype_of_onnx(given), .shape = args.shape(0)}};
}

Values bernoulli_decomposition(Builder& b, const Node& node) {
  const TensorType x = b.type(node.inputs[0]);
  const TensorType y = bernoulli_shape(*NodeArgs(b.graph(), node))[0];
  const ValueId below = b("Less", {drawn(b, node, "UniformNumbers", x), node.inputs[0]});
  return {cast_to(b, below, y.dtype)};
}

Types multinomial_shape(const OpArgs& args) {
  require_float(args, 0);
  require_rank(args, 0, 2);
  const std::int64_t samples = args.attributes.integer("sample_size", 1);
  require(samples >= 0 && args.shape(0)[1] > 0, ErrorCode::kBadInput,
          "{} samples of the classes of {} cannot be drawn", samples, type_text(args.type(0)));
  const DType dtype = dtype_of_onnx(args.attributes.integer("dtype", kI32Number));
  require(dtype == DType::kI32 || dtype == DType::kI64, ErrorCode::kBadInput,
          "attribute dtype says {}, expected i32 or i64", name_of(dtype));
  return {{.dtype = dtype, .shape = checked_shape({args.shape(0)[0], samples})}};
}

// The number of classes whose running sum of probabilities is not above a uniform number; rounding
// may leave the last sum below 1, so it does not count.
Values multinomial_decomposition(Builder& b, const Node& node) {
  const TensorType x = b.type(node.inputs[0]);
  const TensorType y = multinomial_shape(*NodeArgs(b.graph(), node))[0];
  const std::int64_t batch = x.shape[0];
  const std::int64_t others = x.shape[1] - 1;
  const ValueId share = b("Softmax", {node.inputs[0]}, {{"axis", std::int64_t{1}}});
  const ValueId sums = b("CumSum", {share, b.constant(Tensor::scalar(std::int64_t{1}), "axis")});
  const ValueId ends = b("Slice", {sums, b.ints({0}), b.ints({others}), b.ints({1})});
  const ValueId numbers = drawn(b, node, "UniformNumbers", {.dtype = x.dtype, .shape = y.shape});
  const ValueId passed = b("GreaterOrEqual", {b.reshape(numbers, {batch, y.shape[1], 1}),
                                              b.reshape(ends, {batch, 1, others})});
  return {
      b("ReduceSum", {cast_to(b, passed, y.dtype), b.ints({2})}, {{"keepdims", std::int64_t{0}}})};
}

// --- Rows ----------------------------------------------------------------------------------------

constexpr AttributeSpec kDType{"dtype", "ONNX's number of the result's type"};
constexpr AttributeSpec kSeed{"seed", "of the generator; a step draws by the run's seed instead"};
constexpr AttributeSpec kShape{"shape", "of the result; required"};

OpDef numbers_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .domain = kTrainscopeDomain,
          .attributes = {kShape,
                         kDType,
                         kDropoutSeed,
                         {"stream", "one number for each use of random numbers in the model"}},
          .params = numbers_params,
          .shape = numbers_shape,
          .cost = per_output_element<20>,
          .determinism = Determinism::kRandom,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kWholeValues,
          .examples = {"i64[]={1}; shape={2,3} seed=7 stream=3", "i64[]={0}; shape={5} dtype=11",
                       "i64[]={2}; shape={}", "i64[]={2}; shape={0,3}",
                       "i64[]={9}; shape={7,20011} dtype=1 stream=2"}};
}

// Examples of a row without inputs have none.
OpDef random_row(std::string_view name, std::string_view doc, std::vector<AttributeSpec> extra,
                 DecomposeRule decompose) {
  std::vector<AttributeSpec> attributes = std::move(extra);
  attributes.insert(attributes.end(), {kDType, kSeed});
  return {.name = name,
          .doc = doc,
          .attributes = std::move(attributes),
          .shape = random_shape,
          .decompose = decompose,
          .determinism = Determinism::kRandom,
          .differentiable = Differentiable::kNo,
          .op_class = OpClass::kPointwise,
          .traits = kComposite};
}

OpDef shaped(OpDef row) {
  row.min_inputs = row.max_inputs = 0;
  row.attributes.push_back(kShape);
  row.examples = {"; shape={2,3}", "; shape={0,3}", "; shape={} dtype=11 seed=2.5",
                  "; shape={70,1001} dtype=10"};
  return row;
}

OpDef alike(OpDef row) {
  row.examples = {"[2,3]", "i64[2,3]<9; dtype=1", "[0,3]", "[]; seed=2.5", "[70,1001]; dtype=11"};
  return row;
}

std::vector<OpDef> scaled_ops() {
  const std::vector<AttributeSpec> normal = {{"mean", "0 by default"},
                                             {"scale", "the deviation, 1 by default"}};
  const std::vector<AttributeSpec> uniform = {{"low", "0 by default"}, {"high", "1 by default"}};
  return {
      shaped(random_row("RandomNormal", "normal random numbers, new ones in each step", normal,
                        normal_decomposition)),
      alike(random_row("RandomNormalLike",
                       "normal random numbers in the shape of x, new ones in each step", normal,
                       normal_decomposition)),
      shaped(random_row("RandomUniform", "random numbers from low to high, new ones in each step",
                        uniform, uniform_decomposition)),
      alike(random_row("RandomUniformLike",
                       "random numbers from low to high in the shape of x, new ones in each step",
                       uniform, uniform_decomposition))};
}

}  // namespace

std::vector<OpDef> random_numbers_ops() {
  std::vector<OpDef> rows = {
      numbers_row("UniformNumbers",
                  "step -> numbers in [0, 1), functions of seed, stream, step and their place"),
      numbers_row("NormalNumbers",
                  "step -> standard normal numbers, functions of seed, stream, step and their "
                  "place"),
      {.name = "Bernoulli",
       .doc = "1 with probability x, else 0, drawn anew in each step; no gradient flows",
       .attributes = {kDType, kSeed},
       .shape = bernoulli_shape,
       .decompose = bernoulli_decomposition,
       .determinism = Determinism::kRandom,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"[2,3]", "[4]={0,1,0.5,nan}; dtype=9", "[0]; dtype=7", "[70,1001]; seed=3.0"}},
      {.name = "Multinomial",
       .doc =
           "log-probabilities [batch,classes] that need not be normalised -> sample_size classes "
           "of each example, drawn anew in each step",
       .attributes = {{"sample_size", "1 by default"}, kDType, kSeed},
       .shape = multinomial_shape,
       .decompose = multinomial_decomposition,
       .determinism = Determinism::kRandom,
       .differentiable = Differentiable::kNo,
       .op_class = OpClass::kPointwise,
       .traits = kComposite,
       .examples = {"[2,5]; sample_size=7", "[3,1]; dtype=7", "[0,4]", "[2,4]; sample_size=0",
                    "[40,30]; sample_size=50"}}};
  for (OpDef& row : scaled_ops()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace trainscope
