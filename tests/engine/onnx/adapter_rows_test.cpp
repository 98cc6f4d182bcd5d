// Every adapter that rewrites a node: the nodes that it makes, and that no row goes untested.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <utility>

#include "engine/core/text.h"
#include "engine/onnx/adapters/adapters.h"
#include "tests/engine/onnx/adapter_scene.h"
#include "tests/engine/onnx/onnx_test_tools.h"

namespace trainscope::test {
namespace {

struct Case {
  SourceNode node;
  std::string result;  // a line per node, in the form of opset 13 to 17
};

SourceNode node_of(std::string_view op, int opset, std::vector<std::string> inputs,
                   Attributes attributes = {}, std::vector<std::string> outputs = {"y"}) {
  SourceNode node;
  node.op = op;
  node.opset = opset;
  node.name = "n";
  node.source = "n";
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  node.attributes = std::move(attributes);
  return node;
}

std::int64_t n(std::int64_t number) { return number; }

// Converts until nothing is left to convert, noting the rows that took part.
std::string converted(const SourceNode& node, std::set<const AdapterRow*>& used) {
  Scene scene;
  std::string lines;
  std::vector<SourceNode> waiting{node};
  while (!waiting.empty()) {
    SourceNode next = std::move(waiting.back());
    waiting.pop_back();
    const bool own = !next.domain.empty();  // of our domain, which no adapter knows
    const AdapterChoice choice = own ? AdapterChoice{} : adapter_for(next.op, next.opset);
    REQUIRE(choice.adaptation != Adaptation::kUnknown);
    if (choice.adaptation == Adaptation::kAsIs) {
      lines += (lines.empty() ? "" : "\n") + scene.text(next);
      continue;
    }
    used.insert(choice.row);
    const std::string op = next.op;
    const int opset = next.opset;
    std::vector<SourceNode> made = choice.row->convert(scene.scope(), std::move(next));
    REQUIRE_FALSE(made.empty());
    for (const SourceNode& each : made) {
      CHECK(each.source == "n");
      const bool towards_17 = opset > 17 ? each.opset == 17 : each.opset > opset;
      CHECK((each.op != op || !each.domain.empty() || towards_17));
    }
    std::move(made.rbegin(), made.rend(), std::back_inserter(waiting));
  }
  return lines;
}

std::vector<Case> activation_cases() {
  std::vector<Case> cases;
  for (const char* op :
       {"Abs",     "Ceil",        "Clip",      "Elu",        "Exp",
        "Floor",   "HardSigmoid", "LeakyRelu", "Log",        "Max",
        "Mean",    "Min",         "Neg",       "Reciprocal", "Relu",
        "Sigmoid", "Sqrt",        "Sum",       "Tanh",       "InstanceNormalization"}) {
    cases.push_back(
        {node_of(op, 1, {"x"}, {{"consumed_inputs", Ints{0}}}), fmt::format("{}(x) -> y", op)});
  }
  cases.push_back({node_of("Selu", 1, {"x"}, {{"consumed_inputs", Ints{0}}}),
                   "Selu(x) -> y alpha=1.673200011253357 gamma=1.0506999492645264"});
  cases.push_back({node_of("Selu", 1, {"x"}, {{"alpha", 2.0}, {"gamma", 3.0}}),
                   "Selu(x) -> y alpha=2 gamma=3"});
  cases.push_back({node_of("PRelu", 1, {"x", "b3"}, {{"consumed_inputs", Ints{0}}}),
                   "Reshape(b3, {3,1}) -> n/slope allowzero=1\nPRelu(x, n/slope) -> y"});
  cases.push_back({node_of("PRelu", 6, {"m", "b3"}), "PRelu(m, b3) -> y"});
  cases.push_back({node_of("PRelu", 7, {"x", "b4"}), "PRelu(x, b4) -> y"});
  cases.push_back({node_of("Clip", 6, {"x"}, {{"min", -1.5}}), "Clip(x, -1.5) -> y"});
  cases.push_back({node_of("Clip", 6, {"x"}, {{"max", 6.0}}), "Clip(x, -, 6) -> y"});
  cases.push_back({node_of("Clip", 1, {"x"}, {{"min", 0.0}, {"max", 6.0}}), "Clip(x, 0, 6) -> y"});
  return cases;
}

std::vector<Case> broadcast_cases() {
  std::vector<Case> cases;
  for (const char* op :
       {"Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less"}) {
    cases.push_back({node_of(op, 6, {"x", "b3"}, {{"broadcast", n(1)}, {"axis", n(1)}}),
                     fmt::format("Reshape(b3, {{3,1}}) -> n/aligned allowzero=1\n"
                                 "{}(x, n/aligned) -> y",
                                 op)});
  }
  cases.push_back(
      {node_of("Add", 1, {"x", "b4"}, {{"broadcast", n(1)}, {"axis", n(2)}}), "Add(x, b4) -> y"});
  cases.push_back({node_of("Add", 1, {"x", "b34"},
                           {{"broadcast", n(1)}, {"axis", n(-2)}, {"consumed_inputs", Ints{0, 0}}}),
                   "Add(x, b34) -> y"});
  cases.push_back({node_of("Mul", 6, {"x", "m"}, {{"broadcast", n(1)}, {"axis", n(0)}}),
                   "Reshape(m, {2,3,1}) -> n/aligned allowzero=1\nMul(x, n/aligned) -> y"});
  cases.push_back({node_of("Mul", 6, {"x", "scalar"}, {{"broadcast", n(1)}, {"axis", n(1)}}),
                   "Mul(x, scalar) -> y"});
  cases.push_back({node_of("Sub", 6, {"x", "b4"}, {{"broadcast", n(1)}}), "Sub(x, b4) -> y"});
  cases.push_back({node_of("Pow", 6, {"x", "scalar"}, {{"broadcast", n(1)}, {"axis", n(1)}}),
                   "Pow(x, scalar) -> y"});
  cases.push_back({node_of("Sub", 6, {"x", "x"}), "Sub(x, x) -> y"});
  cases.push_back({node_of("Gemm", 6, {"m", "b34", "b4"}, {{"broadcast", n(1)}, {"beta", 0.5}}),
                   "Gemm(m, b34, b4) -> y beta=0.5"});
  return cases;
}

std::vector<Case> structure_cases() {
  return {
      {node_of("Cast", 1, {"x"}, {{"to", std::string("INT64")}}), "Cast(x) -> y to=7"},
      {node_of("Concat", 1, {"x", "x"}), "Concat(x, x) -> y axis=1"},
      {node_of("Concat", 3, {"x", "x"}, {{"axis", n(2)}}), "Concat(x, x) -> y axis=2"},
      {node_of("Pad", 1, {"m"}, {{"paddings", Ints{1, 0, 0, 2}}}), "Pad(m, {1,0,0,2}) -> y"},
      {node_of("Pad", 2, {"m"}, {{"pads", Ints{1, 0, 0, 2}}, {"value", 0.5}}),
       "Pad(m, {1,0,0,2}, 0.5) -> y"},
      {node_of("Reshape", 1, {"x"}, {{"shape", Ints{6, -1}}, {"consumed_inputs", Ints{0}}}),
       "Reshape(x, {6,-1}) -> y"},
      {node_of("Split", 1, {"x", "shape"}, {{"axis", n(1)}}, {"y", "z"}),
       "Split(x, {1,2}) -> y, z axis=1"},
      {node_of("Split", 1, {"x"}, {{"axis", n(2)}, {"split", Ints{1, 3}}}, {"y", "z"}),
       "Split(x, {1,3}) -> y, z axis=2"},
      {node_of("Split", 2, {"x"}, {{"axis", n(2)}, {"split", Ints{1, 3}}}, {"y", "z"}),
       "Split(x, {1,3}) -> y, z axis=2"},
      {node_of("Split", 2, {"x"}, {}, {"y", "z"}), "Split(x) -> y, z"},
      {node_of("Tile", 1, {"x", "two", "one"}), "Tile(x, {1,2,1}) -> y"},
      {node_of("Squeeze", 1, {"x"}, {{"axes", Ints{0}}}), "Squeeze(x, {0}) -> y"},
      {node_of("Squeeze", 11, {"x"}), "Squeeze(x) -> y"},
      {node_of("Unsqueeze", 12, {"x"}, {{"axes", Ints{0, -1}}}), "Unsqueeze(x, {0,-1}) -> y"},
      {node_of("ReduceSum", 12, {"x"}, {{"axes", Ints{1}}, {"keepdims", n(0)}}),
       "ReduceSum(x, {1}) -> y keepdims=0"},
      {node_of("Slice", 1, {"x"}, {{"starts", Ints{0}}, {"ends", Ints{-1}}, {"axes", Ints{2}}}),
       "Slice(x, {0}, {-1}, {2}) -> y"},
      {node_of("Slice", 9, {"x"}, {{"starts", Ints{0}}, {"ends", Ints{1}}}),
       "Slice(x, {0}, {1}) -> y"},
      {node_of("TopK", 1, {"x"}, {{"k", n(3)}, {"axis", n(1)}}, {"y", "i"}),
       "TopK(x, {3}) -> y, i axis=1"},
      {node_of("Scatter", 9, {"x", "indices", "x"}, {{"axis", n(1)}}),
       "ScatterElements(x, indices, x) -> y axis=1"},
      {node_of("Upsample", 1, {"image"}, {{"height_scale", 2.0}, {"width_scale", 3.0}}),
       "Resize(image, -, {1,1,2,3}) -> y coordinate_transformation_mode='asymmetric' "
       "mode='nearest' nearest_mode='floor'"},
      {node_of("Upsample", 1, {"image"},
               {{"height_scale", 2.0}, {"width_scale", 2.0}, {"mode", std::string("bilinear")}}),
       "Resize(image, -, {1,1,2,2}) -> y coordinate_transformation_mode='asymmetric' "
       "mode='linear' nearest_mode='floor'"},
      {node_of("Upsample", 7, {"image"}, {{"scales", Floats{1, 1, 2, 2}}}),
       "Resize(image, -, {1,1,2,2}) -> y coordinate_transformation_mode='asymmetric' "
       "mode='nearest' nearest_mode='floor'"},
      {node_of("Upsample", 9, {"image", "scales"}, {{"mode", std::string("linear")}}),
       "Resize(image, -, {1,1,2,2}) -> y coordinate_transformation_mode='asymmetric' "
       "mode='linear' nearest_mode='floor'"},
      {node_of("Resize", 10, {"image", "scales"}),
       "Resize(image, -, {1,1,2,2}) -> y coordinate_transformation_mode='asymmetric' "
       "mode='nearest' nearest_mode='floor'"},
      {node_of("Resize", 11, {"image", "nothing", "scales"}), "Resize(image, -, {1,1,2,2}) -> y"},
      {node_of("Resize", 12, {"image", "nothing", "nothing", "shape"}),
       "Resize(image, -, -, {1,2}) -> y"},
      {node_of("RoiAlign", 10, {"image", "b4", "b3"}),
       "RoiAlign(image, b4, b3) -> y coordinate_transformation_mode='output_half_pixel'"},
      {node_of("Resize", 11, {"image", "scales", "scales"},
               {{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}),
       "Resize(image, {1,1,2,2}, {1,1,2,2}) -> y "
       "coordinate_transformation_mode='tf_crop_and_resize'"},
  };
}

std::vector<Case> mode_cases() {
  std::vector<Case> cases;
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    cases.push_back(
        {node_of(op, 11, {"x"}), fmt::format("Reshape(x, {{2,12}}) -> n/matrix allowzero=1\n"
                                             "{}(n/matrix) -> n/result axis=-1\n"
                                             "Reshape(n/result, {{2,3,4}}) -> y allowzero=1",
                                             op)});
    cases.push_back({node_of(op, 1, {"m"}), fmt::format("{}(m) -> y axis=-1", op)});
  }
  cases.push_back({node_of("LayerNormalization", 12, {"x", "b4"}, {{"epsilon", 0.5}}),
                   "LayerNormalization(x, b4) -> y epsilon=0.5"});
  cases.push_back({node_of("Dropout", 1, {"x"}, {{"consumed_inputs", Ints{0}}, {"is_test", n(1)}}),
                   "Dropout(x, 0.5, 0) -> y"});
  cases.push_back({node_of("Dropout", 6, {"x"}, {{"ratio", 0.25}}), "Dropout(x, 0.25, 1) -> y"});
  cases.push_back({node_of("Dropout", 7, {"x"}, {}, {"y", "mask"}),
                   "Dropout(x, 0.5, 0) -> y, n/mask\nCast(n/mask) -> mask to=1"});
  cases.push_back(
      {node_of("Dropout", 10, {"x"}, {}, {"y", "mask"}), "Dropout(x, 0.5, 0) -> y, mask"});
  const std::vector<std::string> inputs{"x", "b3", "b3", "b3", "b3"};
  const std::vector<std::string> all{"y", "mean", "var", "saved_mean", "saved_var"};
  cases.push_back({node_of("BatchNormalization", 1, inputs,
                           {{"consumed_inputs", Ints{0, 0, 0, 1, 1}}, {"is_test", n(1)}}, all),
                   "BatchNormalization(x, b3, b3, b3, b3) -> y training_mode=0"});
  cases.push_back({node_of("BatchNormalization", 6, inputs, {{"spatial", n(1)}}, all),
                   "BatchNormalization(x, b3, b3, b3, b3) -> y, mean, var training_mode=1"});
  cases.push_back({node_of("BatchNormalization", 6, inputs),
                   "BatchNormalization(x, b3, b3, b3, b3) -> y training_mode=0"});
  cases.push_back({node_of("BatchNormalization", 9, inputs, {{"epsilon", 0.5}}),
                   "BatchNormalization(x, b3, b3, b3, b3) -> y epsilon=0.5 training_mode=0"});
  return cases;
}

// Ops since opset 18 that mean the same in our domain.
constexpr std::pair<const char*, int> kMovedOps[] = {
    {"AffineGrid", 20},    {"BitwiseAnd", 18},   {"BitwiseNot", 18}, {"BitwiseOr", 18},
    {"BitwiseXor", 18},    {"Col2Im", 18},       {"DeformConv", 19}, {"GridSample", 20},
    {"CenterCropPad", 18}, {"TensorScatter", 24}};

std::vector<Case> newer_cases() {
  std::vector<Case> cases;
  for (const char* op : {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                         "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSumSquare"}) {
    cases.push_back({node_of(op, 18, {"x", "shape"}, {{"keepdims", n(0)}}),
                     fmt::format("{}(x) -> y axes={{1,2}} keepdims=0", op)});
    cases.push_back({node_of(op, 18, {"x"}, {{"noop_with_empty_axes", n(1)}}), "Identity(x) -> y"});
  }
  cases.push_back(
      {node_of("Split", 18, {"x"}, {{"axis", n(2)}, {"num_outputs", n(3)}}, {"y", "z", "w"}),
       "Split(x, {2,2,0}) -> y, z, w axis=2"});
  cases.push_back(
      {node_of("Pad", 18, {"x", "pads", "", "shape"}), "Pad(x, {0,3,4,0,5,6}, -) -> y"});
  cases.push_back(
      {node_of("Cast", 19, {"x"}, {{"to", n(1)}, {"saturate", n(1)}}), "Cast(x) -> y to=1"});
  cases.push_back({node_of("Cast", 19, {"x"}, {{"to", n(17)}, {"saturate", n(0)}}),
                   "StorageCast(x) -> y saturate=0 to=17"});
  cases.push_back({node_of("QuantizeLinear", 13, {"x", "two"}), "QuantizeLinear(x, 2) -> y"});
  cases.push_back({node_of("DequantizeLinear", 21, {"x", "two"}, {{"block_size", n(0)}}),
                   "DequantizeLinear(x, 2) -> y block_size=0"});
  for (int opset : {13, 18}) {
    cases.push_back({node_of("Pow", opset, {"x", "bytes"}),
                     "Cast(bytes) -> n/exponent to=7\nPow(x, n/exponent) -> y"});
    cases.push_back({node_of("Pow", opset, {"x", "indices"}), "Pow(x, indices) -> y"});
    cases.push_back({node_of("MaxPool", opset, {"pixels"}, {{"kernel_shape", Ints{2, 2}}}),
                     "Cast(pixels) -> n/upcast to=1\nMaxPool(n/upcast) -> n/pooled "
                     "kernel_shape={2,2}\nCast(n/pooled) -> y to=2"});
  }
  cases.push_back({node_of("Gelu", 20, {"x"}, {{"approximate", std::string("tanh")}}),
                   "Gelu(x) -> y approximate='tanh'"});
  for (const auto& [op, opset] : kMovedOps) {
    cases.push_back({node_of(op, opset, {"x", "b4"}), fmt::format("{}(x, b4) -> y", op)});
  }
  cases.push_back({node_of("Pad", 19, {"m", "pads"}, {{"mode", std::string("wrap")}}),
                   "Gather(m, {1,0,1,0,1,0,1,0,1,0}) -> n/axis_0 axis=0\n"
                   "Gather(n/axis_0, {2,0,1,2,0,1,2,0,1,2,0,1,2}) -> n/axis_1 axis=1\n"
                   "Identity(n/axis_1) -> y"});
  cases.push_back({node_of("RMSNormalization", 23, {"x", "b4"}), "RMSNormalization(x, b4) -> y"});
  cases.push_back({node_of("RMSNormalization", 23, {"x", "b4"}, {{"axis", n(1)}}),
                   "Expand(b4, {3,4}) -> n/scale\nRMSNormalization(x, n/scale) -> y axis=1"});
  // image [1,3,2,2] are 3 heads of 2 positions, x [2,3,4] 3 positions of 2 heads.
  cases.push_back({node_of("RotaryEmbedding", 23, {"image", "angles", "angles"}),
                   "Unsqueeze(angles, {1}) -> n/cos\nUnsqueeze(angles, {1}) -> n/sin\n"
                   "RotaryEmbedding(image, n/cos, n/sin) -> y"});
  cases.push_back({node_of("RotaryEmbedding", 23, {"x", "b34", "b34", "positions"},
                           {{"num_heads", n(2)}, {"interleaved", n(1)}}),
                   "Slice(b34, {0}, {1}, {-1}) -> n/cos_pairs\n"
                   "Gather(n/cos_pairs, positions) -> n/cos_rows\n"
                   "Unsqueeze(n/cos_rows, {2}) -> n/cos\n"
                   "Slice(b34, {0}, {1}, {-1}) -> n/sin_pairs\n"
                   "Gather(n/sin_pairs, positions) -> n/sin_rows\n"
                   "Unsqueeze(n/sin_rows, {2}) -> n/sin\n"
                   "Reshape(x, {2,3,2,2}) -> n/by_head\n"
                   "RotaryEmbedding(n/by_head, n/cos, n/sin) -> n/rotated interleaved=1\n"
                   "Reshape(n/rotated, {2,3,4}) -> y"});
  cases.push_back({node_of("Mish", 18, {"x"}), "Mish(x) -> y"});
  cases.push_back({node_of("CumProd", 26, {"x", "positions"}, {{"reverse", n(1)}}),
                   "CumProd(x, positions) -> y reverse=1"});
  cases.push_back({node_of("BitCast", 26, {"x"}, {{"to", n(6)}}), "BitCast(x) -> y to=6"});
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    cases.push_back({node_of(op, 20, {"x", "shape"}, {{"keepdims", n(0)}}),
                     fmt::format("{}(x) -> y axes={{1,2}} keepdims=0", op)});
  }
  cases.push_back({node_of("ReduceMax", 20, {"truths", "shape"}, {{"keepdims", n(0)}}),
                   "Cast(truths) -> n/numbers to=7\n"
                   "ReduceSum(n/numbers, {1,2}) -> n/count keepdims=0\n"
                   "Cast(n/count) -> y to=9"});
  cases.push_back({node_of("ReduceMin", 20, {"truths"}),
                   "Not(truths) -> n/not\nCast(n/not) -> n/numbers to=7\n"
                   "ReduceSum(n/numbers) -> n/count\nCast(n/count) -> n/any to=9\n"
                   "Not(n/any) -> y"});
  cases.push_back({node_of("Pad", 19, {"image", "wide_pads"}, {{"mode", std::string("wrap")}}),
                   "Gather(image, {2,0,1,2,0}) -> n/axis_1 axis=1\n"
                   "Gather(n/axis_1, {1}) -> n/axis_3 axis=3\nIdentity(n/axis_3) -> y"});
  cases.push_back({node_of("Swish", 24, {"x"}, {{"alpha", 2.0}}), "Swish(x) -> y alpha=2"});
  cases.push_back(
      {node_of("Resize", 18, {"image", "", "scales"},
               {{"antialias", n(0)}, {"keep_aspect_ratio_policy", std::string("stretch")}}),
       "Resize(image, -, {1,1,2,2}) -> y"});
  cases.push_back({node_of("Resize", 18, {"image", "", "two_scales"}, {{"axes", Ints{3, 2}}}),
                   "Resize(image, -, {1,1,3,4}) -> y"});
  cases.push_back({node_of("Resize", 18, {"image", "", "", "two_sizes"},
                           {{"axes", Ints{-2, -1}},
                            {"keep_aspect_ratio_policy", std::string("not_larger")},
                            {"antialias", n(1)}}),
                   "Resize(image, -, -, {1,3,4,4}) -> y antialias=1"});
  return cases;
}

std::set<const AdapterRow*> check(const std::vector<Case>& cases) {
  std::set<const AdapterRow*> used;
  for (const Case& each : cases) {
    CAPTURE(each.node.op);
    CAPTURE(each.node.opset);
    CHECK(converted(each.node, used) == each.result);
  }
  return used;
}

}  // namespace

TEST_CASE("adapter rows: each makes nodes that say the same") {
  std::set<const AdapterRow*> used;
  SUBCASE("activations") { used = check(activation_cases()); }
  SUBCASE("two operands") { used = check(broadcast_cases()); }
  SUBCASE("structure") { used = check(structure_cases()); }
  SUBCASE("modes") { used = check(mode_cases()); }
  SUBCASE("newer") { used = check(newer_cases()); }
  CHECK_FALSE(used.empty());
}

TEST_CASE("adapter rows: none without a case") {
  std::set<const AdapterRow*> used;
  for (const auto& cases :
       {activation_cases(), broadcast_cases(), structure_cases(), mode_cases(), newer_cases()}) {
    used.merge(check(cases));
  }
  for (std::span<const AdapterRow> rows :
       {oldest_rows(), older_rows(), newer_rows(), type_rows()}) {
    for (const AdapterRow& row : rows) {
      CAPTURE(row.op);
      CAPTURE(row.from);
      CHECK((row.convert != nullptr));
      CHECK(used.contains(&row));
    }
  }
}

TEST_CASE("adapter rows: one form for each op and opset") {
  for (std::span<const AdapterRow> rows :
       {oldest_rows(), older_rows(), plain_rows(), type_rows()}) {
    for (const AdapterRow& row : rows) {
      CAPTURE(row.op);
      CHECK(row.from < row.to);
      int forms = 0;
      for (std::span<const AdapterRow> others :
           {oldest_rows(), older_rows(), plain_rows(), type_rows()}) {
        for (const AdapterRow& other : others) {
          forms += other.op == row.op && other.from <= row.from && row.from < other.to ? 1 : 0;
        }
      }
      CHECK(forms == 1);
    }
  }
}

TEST_CASE("adapter rows: what cannot be converted is refused") {
  std::set<const AdapterRow*> used;
  auto refusal = [&used](const SourceNode& node) {
    std::optional<Error> error = error_of([&] { converted(node, used); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::kBadInput);
    return *error;
  };
  Error unaligned = refusal(node_of("Add", 6, {"x", "b34"}, {{"broadcast", n(1)}, {"axis", n(2)}}));
  CHECK(unaligned.message() ==
        "node 'n' (Add of opset 6): [3,4] does not fit into [2,3,4] from axis 2 on");
  CHECK_FALSE(unaligned.unsupported());
  Error outside = refusal(node_of("Add", 6, {"x", "b3"}, {{"broadcast", n(1)}, {"axis", n(3)}}));
  CHECK(outside.message().find("axis 3 is outside") != std::string::npos);
  Error type = refusal(node_of("Cast", 1, {"x"}, {{"to", std::string("FLOATING")}}));
  CHECK(type.message().find("'FLOATING', not the name of a type") != std::string::npos);
  Error tiles = refusal(node_of("Tile", 1, {"x", "scalar", "one"}));
  CHECK(tiles.message().find("input 1 must be known before the run") != std::string::npos);
  CHECK(tiles.unsupported());
  Error spatial =
      refusal(node_of("BatchNormalization", 7, {"x", "b3", "b3", "b3", "b3"}, {{"spatial", n(0)}}));
  CHECK(spatial.message().find("spatial=0 is not supported") != std::string::npos);
  CHECK(spatial.unsupported());
  CHECK(refusal(node_of("TopK", 1, {"x"})).message().find("'k' is missing") != std::string::npos);
}

}  // namespace trainscope::test
