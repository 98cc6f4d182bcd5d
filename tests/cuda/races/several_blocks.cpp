// Sizes by how many elements, rows or results a block of each kernel takes, in the types that the
// op rows' own examples leave out.
#include "tests/cuda/races/several_blocks.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace trainscope::test {
namespace {

using Words = std::initializer_list<std::string_view>;

constexpr int kElements = 5001;  // several blocks of packs, and a rest

// A tensor of kElements elements; an empty type is that of the run.
std::string many(std::string_view type, std::string_view fill = "") {
  return fmt::format("{}[{}]{}", type, kElements, fill);
}

void add_elementwise(std::vector<WideExample>& examples) {
  const auto one = [&](Words ops, Words types, std::string_view fill) {
    for (const std::string_view op : ops) {
      for (const std::string_view type : types) examples.push_back({op, many(type, fill)});
    }
  };
  const auto two = [&](Words ops, Words types, std::string_view fill) {
    for (const std::string_view op : ops) {
      for (const std::string_view type : types) {
        examples.push_back({op, many(type, fill) + ", " + many(type, fill)});
      }
    }
  };
  const Words all_integers{"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"};
  one({"Abs", "Sign"}, {"", "i32", "i64"}, "~");
  one({"Neg"}, {"i32", "i64"}, "<9");
  one({"Acos", "Asin", "Atanh", "Tan", "Reciprocal"}, {""}, ">0");
  one({"Not"}, {"bool"}, "");
  one({"BitwiseNot"}, all_integers, "<99");
  two({"BitwiseAnd", "BitwiseOr", "BitwiseXor", "ShiftLeft", "ShiftRight"}, all_integers, "<9");
  two({"Add", "Sub", "Mul", "Maximum", "Minimum"}, {"i32", "i64"}, "<9");
  two({"Div", "Mod"}, {"i32", "i64"}, ">0");
  two({"Mod"}, {""}, ">0");
  two({"Greater", "GreaterOrEqual", "Less", "LessOrEqual"}, {"", "i32", "i64"}, "");
  two({"Equal"}, {"", "bool", "i32", "i64"}, "");
  for (const std::string_view type : {"", "i32", "i64"}) {
    examples.push_back({"Mod", many(type, ">0") + ", " + many(type, ">0") + "; fmod=1"});
  }
  for (const std::string_view type : {"i32", "i64"}) {
    examples.push_back({"Clip", fmt::format("{0}<9, {1}[]={{2}}, {1}[]={{5}}", many(type), type)});
  }
  for (const std::string_view exponent : {"i32", "i64", "f32", "f64"}) {
    const std::string fill = exponent.front() == 'f' ? ">0" : "<3";
    for (const std::string_view base : {"f32", "f64"}) {
      const std::string pair = many(base, ">0") + ", " + many(exponent, fill);
      examples.push_back({"Pow", pair});
      examples.push_back({"PowGrad", many(base) + ", " + pair});
    }
    if (exponent.front() == 'f') continue;
    for (const std::string_view base : {"i32", "i64"}) {
      examples.push_back({"Pow", many(base, ">0") + ", " + many(exponent, fill)});
    }
  }
  examples.push_back({"Where", fmt::format("{0}, {0}, {0}", many("bool"))});
}

void add_casts(std::vector<WideExample>& examples) {
  for (const std::string_view from : {"", "bool", "u8", "i32", "i64", "u64"}) {
    for (const int to : {1, 2, 6, 7, 9, 10, 11, 13, 16}) {  // of ONNX's types
      const std::string_view fill = from.empty() || from == "bool" ? "" : "<2";
      examples.push_back({"Cast", fmt::format("{}; to={}", many(from, fill), to)});
    }
  }
}

// Rows of a length that a warp joins and one that a block does, columns one by one and by packs, in
// chunks whose results take several blocks and without.
void add_reductions(std::vector<WideExample>& examples) {
  for (const std::string_view op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceSumSquare", "ReduceSumWide"}) {
    const bool has_input = op == "ReduceSum" || op == "ReduceSumWide";  // of axes
    const auto add = [&](const std::string& input, int axis) {
      const std::string_view form = has_input ? ", i64[1]={{{}}}" : "; axes={{{}}}";
      examples.push_back({op, input + fmt::format(fmt::runtime(form), axis)});
    };
    for (const std::string_view type : {"", "i32", "i64"}) {
      const bool floats = type.empty();
      if (!floats && (op == "ReduceMean" || op == "ReduceL2" || op == "ReduceSumWide")) continue;
      const std::string_view fill = floats ? ">0" : "<2";
      add(fmt::format("{}[67,21]{}", type, fill), 1);
      add(fmt::format("{}[3,2001]{}", type, fill), 1);
      add(fmt::format("{}[37,8192]{}", type, fill), 1);
      add(fmt::format("{}[300,261]{}", type, fill), 0);
      add(fmt::format("{}[70,264]{}", type, fill), 0);
      add(fmt::format("{}[9,516]{}", type, fill), 0);
    }
  }
}

void add_rows(std::vector<WideExample>& examples) {
  const auto combine = [&](std::string_view op, std::string_view type) {
    const std::string_view fill = type.empty() || type == "bool" ? "" : "<9";
    examples.push_back(
        {op, fmt::format("{0}[40,301]{1}, i64[3]={{39,0,7}}, {0}[3,301]{1}", type, fill)});
  };
  for (const std::string_view op : {"PutRows", "AddRows", "MultiplyRows", "MaxRows", "MinRows"}) {
    for (const std::string_view type : {"", "i32", "i64"}) combine(op, type);
  }
  for (const std::string_view type : {"bool", "i8", "i16"}) combine("PutRows", type);
  for (const std::string_view ids : {"i32", "i64"}) {
    for (const std::string_view type : {"", "bool"}) {
      for (const int width : {36, 35}) {
        examples.push_back({"Gather", fmt::format("{}[300,{}], {}[141]<300", type, width, ids)});
      }
    }
    for (const std::string_view op : {"ArgMax", "ArgMin"}) {
      for (const std::string_view type : {"i32", "i64"}) {
        examples.push_back({op, fmt::format("{}[1300,4]<3; axis=1", type)});
      }
    }
    examples.push_back({"GatherGrad", fmt::format("[300,5], {}[300]<7; shape={{7,5}}", ids)});
    examples.push_back(
        {"ElementIndex", fmt::format("{}[300,20]<40, i64[2]={{400,40}}; axis=1", ids)});
    examples.push_back({"SliceIndex", fmt::format("{}[1301,2]<30, i64[2]={{30,40}}", ids)});
    examples.push_back({"CumSum", fmt::format("{}[70,40], i64[]={{1}}; reverse=1", ids)});
    examples.push_back({"CumSum", fmt::format("{}[7,1700], i64[]={{1}}", ids)});
    examples.push_back({"CumSum", fmt::format("{}[9,5,41], i64[]={{1}}", ids)});
    for (const int largest : {0, 1}) {
      examples.push_back(
          {"TopK", fmt::format("{}[90,70]~, i64[1]={{9}}; largest={} outputs=2", ids, largest)});
    }
  }
  for (const int largest : {0, 1}) {
    examples.push_back(
        {"TopK", fmt::format("[90,70]~, i64[1]={{9}}; largest={} outputs=2", largest)});
  }
  for (const std::string_view type : {"", "bool"}) {
    for (const int width : {21, 1301}) {
      const std::string order = "i64[13]={12,0,4,1,2,3,11,10,9,8,7,6,5}, i64[]={9}";
      examples.push_back({"PackRows", fmt::format("{}[13,{}], {}", type, width, order)});
      examples.push_back({"UnpackRows", fmt::format("{}[13,{}], {}", type, width, order)});
    }
    examples.push_back({"Trilu", fmt::format("{}[3,41,43]; upper=0", type)});
    examples.push_back({"Transpose", fmt::format("{}[70,45]", type)});
    examples.push_back({"Pad", fmt::format("{}[41,43], i64[4]={{1,2,0,3}}", type)});
    examples.push_back({"Expand", fmt::format("{}[70,1], i64[2]={{70,45}}", type)});
    examples.push_back(
        {"SliceGrad", fmt::format("{}[40,41]; shape={{70,83}} start={{1,0}} step={{1,2}}", type)});
  }
}

// Classes along an axis that is not the last one.
void add_losses_by_place(std::vector<WideExample>& examples) {
  const std::string rows = "i64[20,61]<4";
  const std::string scale = "[20,61]>0, []={5}";
  const std::string_view form = "class_axis=1 ignore_index=2";
  examples.push_back(
      {"CrossEntropyGrad", fmt::format("[], [20,4,61], {}, {}; {}", rows, scale, form)});
  examples.push_back(
      {"CrossEntropyGrad", fmt::format("f32[], [20,4,61], {}, f32[20,61]>0, f32[]={{5}}; "
                                       "{}",
                                       rows, form)});
  examples.push_back(
      {"NegativeLogLikelihoodGrad", fmt::format("[], {}, []={{5}}; {} classes=4", rows, form)});
  examples.push_back(
      {"WeightedCrossEntropy", fmt::format("[20,4,61], {}, [4]={{0.5,1.0,2.0,0.25}}; {} "
                                           "label_smoothing=0.3 outputs=3",
                                           rows, form)});
  examples.push_back({"WeightedCrossEntropyGrad",
                      fmt::format("[], [20,4,61], {}, {}, [4]={{0.5,1.0,2.0,0.25}}; {} "
                                  "label_smoothing=0.3",
                                  rows, scale, form)});
}

// No place comes twice in a row of 301.
void add_top_k_gradient(std::vector<WideExample>& examples) {
  std::string places;
  for (int row = 0; row < 301; ++row) {
    places += fmt::format("{}{},{}", row == 0 ? "" : ",", row % 7, row % 7 + 1);
  }
  examples.push_back(
      {"TopKGrad", fmt::format("[301,2], i64[301,2]={{{}}}; shape={{301,9}}", places)});
}

// Rows by what computes one: a thread, a warp, a block.
void add_losses(std::vector<WideExample>& examples) {
  for (const int classes : {4, 200, 2001}) {
    const int rows = classes == 4 ? 701 : 11;
    const std::string ids = fmt::format("i64[{}]<{}", rows, classes);
    const std::string scores = fmt::format("[{},{}]", rows, classes);
    const std::string scale = fmt::format("[{}]>0, []={{{}}}", rows, rows);
    examples.push_back({"CrossEntropyGrad", "[], " + scores + ", " + ids + ", " + scale});
    examples.push_back({"CrossEntropyGrad", fmt::format("f32[], {}, {}, f32[{}]>0, f32[]={{{}}}",
                                                        scores, ids, rows, rows)});
    examples.push_back({"NegativeLogLikelihoodGrad",
                        fmt::format("[], {}, []={{{}}}; classes={}", ids, rows, classes)});
    examples.push_back(
        {"WeightedCrossEntropy", scores + ", " + ids + "; label_smoothing=0.1 outputs=3"});
    examples.push_back({"WeightedCrossEntropyGrad",
                        "[], " + scores + ", " + ids + ", " + scale + "; label_smoothing=0.1"});
  }
}

void add_norms(std::vector<WideExample>& examples) {
  for (const int width : {35, 36, 40, 1101, 1100, 1104}) {
    const int rows = width < 100 ? 35 : 3;
    examples.push_back({"LayerNormalization",
                        fmt::format("[{0},{1}], f32[{1}], f32[{1}]; outputs=3", rows, width)});
    examples.push_back(
        {"LayerNormalization", fmt::format("[{0},{1}], [{1}]; outputs=3", rows, width)});
  }
  for (const int width : {256, 512, 520, 768, 1024, 1100, 1101, 1104}) {
    examples.push_back(
        {"LayerNormalizationGrad", fmt::format("[70,{0}], [70,{0}], f32[{0}]; outputs=3", width)});
  }
  for (const std::string_view places : {"20,21", "20,20"}) {
    examples.push_back({"BatchNormReluGrad", fmt::format("[5,3,{0}], [5,3,{0}], [5,3,{0}], f32[3]; "
                                                         "outputs=4",
                                                         places)});
    examples.push_back(
        {"BatchNormalizationGrad",
         fmt::format("[5,3,{0}], [5,3,{0}], f32[3]; training_mode=1 outputs=3", places)});
  }
  examples.push_back({"InstanceNormalizationGrad", "[9,261,4,5], [9,261,4,5], [261]; outputs=3"});
}

// Heads of more than 128 elements, with dropout and without.
void add_attention(std::vector<WideExample>& examples) {
  for (const std::string_view drops : {"", ", -, i64[]={3}; ratio=0.3 seed=5"}) {
    const std::string_view between = drops.empty() ? ";" : "";
    examples.push_back({"Attention", fmt::format("[1,66,2,133], [1,67,2,133], [1,67,2,133]{}{} "
                                                 "outputs=2",
                                                 drops, between)});
    examples.push_back(
        {"AttentionGrad", fmt::format("[1,66,2,133], [1,66,2,133], f32[1,2,66,2], [1,66,2,133], "
                                      "[1,67,2,133], [1,67,2,133]{}{} outputs=3",
                                      drops, between)});
  }
}

}  // namespace

std::vector<WideExample> several_blocks() {
  std::vector<WideExample> examples{
      {"ConstantOfShape", "i64[2]={71,73}"},
      {"CompactRows", "i32[2501]<3; ignore_index=1 outputs=2"},
      {"CompactMatMul", "[90,70], [90,80], i64[]={81}; transpose_a=1 upcast=1"},
      {"FakeQuantize", "[70,75]~, []={0.02}, []={0}; least=-4 greatest=3"},
      {"FakeQuantizeGrad", "[70,75]~, []={0.02}, []={0}, [70,75]; least=-4 greatest=3"},
      {"SgdStep",
       "[3], [5001], [3], [5001], []>0, []>0, i64[]={2}; weight_decay={0.1,0.2} outputs=2"},
      {"RmsPropStep",
       "[3], [5001], [3], [5001], [3]>1, [5001]>1, [3], [5001], []>0, []>0, i64[]={3}; outputs=6 "
       "centered=1 epsilon=1e-3"},
      {"RmsPropStep",
       "[3], [5001], [3], [5001], [3]>1, [5001]>1, [3], [5001], [3], [5001], []>0, []>0, "
       "i64[]={3}; "
       "outputs=8 centered=1 momentum=0.5"},
      {"Range", "[]={1}, []={601}, []={1}"},
      {"Range", "i32[]={1}, i32[]={1601}, i32[]={1}"},
      {"Range", "i64[]={1}, i64[]={1601}, i64[]={1}"},
      {"SampleGradInput", "[9,31,5], i64[9,5,4]<9, [9,5,4]; shape={9,31,9}"},
      {"LstmGrad",
       "-, [1,1,90], -, [1,1,1,90], [1,1,1,450], [1,1,2], [1,360,2], [1,360,90], -, -, -, -, "
       "[1,270]; "
       "outputs=7"},
      {"LstmGrad",
       "-, [1,1,90], -, [1,1,1,90], f32[1,1,1,450], [1,1,2], [1,360,2], [1,360,90], -, -, -, -, "
       "[1,270]; outputs=7"},
  };
  add_elementwise(examples);
  add_casts(examples);
  add_reductions(examples);
  add_rows(examples);
  add_top_k_gradient(examples);
  add_losses(examples);
  add_losses_by_place(examples);
  add_norms(examples);
  add_attention(examples);
  return examples;
}

}  // namespace trainscope::test
