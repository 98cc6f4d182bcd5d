// Sizes by what unrolled loops do with them: each of their rounds, and of the rest's, has lanes
// behind the last element; types and indices that the op rows' examples have not.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/cuda/mutants/wide_examples.h"

namespace trainscope::test {
namespace {

// Reductions in so many chunks: the eight threads that take them in turn have unlike numbers.
void add_reductions(std::vector<WideExample>& examples) {
  // Columns of packs of one, four and eight elements, few rows; rows for a warp and a block.
  for (const std::string_view shape :
       {"[3,7]", "[5,8]", "[5,16]", "[13,8]", "[21,7]", "[2,1030]", "[3,1029]", "[2,33]"}) {
    const std::string axes = shape.size() > 6 || shape == "[2,33]" ? "1" : "0";
    for (const std::string_view type : {"", "i32", "i64"}) {
      const std::string x = fmt::format("{}{}>0", type, shape);
      for (const std::string_view op :
           {"ReduceL1", "ReduceSumSquare", "ReduceMax", "ReduceMin", "ReduceProd"}) {
        examples.push_back({op, fmt::format("{}; axes={{{}}}", x, axes)});
      }
      examples.push_back({"ReduceSum", fmt::format("{}, i64[1]={{{}}}", x, axes)});
    }
    examples.push_back({"ReduceL2", fmt::format("{}; axes={{{}}}", shape, axes)});
    examples.push_back({"ReduceMean", fmt::format("{}; axes={{{}}}", shape, axes)});
    examples.push_back({"ReduceSumWide", fmt::format("{}, i64[1]={{{}}}", shape, axes)});
  }
  for (const int chunks : {2, 10, 18, 26}) {
    const std::string rows = std::to_string(128 * chunks + 3);
    for (const std::string_view type : {"", "i32", "i64"}) {
      const std::string x = fmt::format("{}[{},2]>0", type, rows);
      for (const std::string_view op :
           {"ReduceL1", "ReduceSumSquare", "ReduceMax", "ReduceMin", "ReduceProd"}) {
        examples.push_back({op, x + "; axes={0}"});
      }
      examples.push_back({"ReduceSum", x + ", i64[1]={0}"});
    }
    examples.push_back({"ReduceL2", fmt::format("[{},2]; axes={{0}}", rows)});
    examples.push_back({"ReduceMean", fmt::format("[{},2]; axes={{0}}", rows)});
    examples.push_back({"ReduceSumWide", fmt::format("[{},2], i64[1]={{0}}", rows)});
  }
}

// Rows of classes for a thread, a warp and a block, which read four scores at a time.
void add_classes(std::vector<WideExample>& examples) {
  for (const int inner : {3, 1}) {
    for (const int classes : {1, 5, 9, 133, 261, 1029, 2053}) {
      if (inner != 1 && classes > 9) continue;
      const std::string logits = fmt::format("[3,{},{}]", classes, inner);
      const std::string labels = fmt::format("i64[3,{}]<{}", inner, classes);
      const std::string rows = fmt::format("[3,{}]", inner);
      examples.push_back(
          {"CrossEntropy", fmt::format("{}, {}; class_axis=1 outputs=3", logits, labels)});
      examples.push_back({"CrossEntropyGrad",
                          fmt::format("[], {}, {}, {}, []>0; class_axis=1", logits, labels, rows)});
      for (const std::string_view smoothing : {"", " label_smoothing=0.1"}) {
        examples.push_back(
            {"WeightedCrossEntropy", fmt::format("{}, {}, [{}]>0; class_axis=1 outputs=3{}", logits,
                                                 labels, classes, smoothing)});
      }
    }
  }
}

// Rows of packs of one, four and eight elements.
void add_norms(std::vector<WideExample>& examples) {
  for (const int width : {37, 44, 40, 1101, 1100, 1104, 2061, 2060, 2064}) {
    const std::string x = fmt::format("[3,{}]", width);
    const std::string scale = fmt::format("[{}]", width);
    examples.push_back({"LayerNormalization", fmt::format("{0}, {1}, {1}; outputs=3", x, scale)});
    examples.push_back(
        {"LayerNormalization", fmt::format("{0}, f32{1}, f32{1}; outputs=3", x, scale)});
    examples.push_back({"RMSNormalization", fmt::format("{}, {}", x, scale)});
    examples.push_back(
        {"LayerNormalizationGrad", fmt::format("{0}, {0}, {1}; outputs=3", x, scale)});
    examples.push_back({"RMSNormalizationGrad", fmt::format("{0}, {0}, {1}; outputs=2", x, scale)});
  }
  for (const std::string_view x : {"[3,5,7,3]", "[3,5,6,2]", "[9,3,40,8]"}) {
    examples.push_back(
        {"BatchNormReluGrad", fmt::format("{0}, {0}, {0}, [{1}]; outputs=4", x, x.substr(3, 1))});
    examples.push_back({"BatchNormalizationGrad", fmt::format("{0}, {0}, [{1}]; training_mode=1 "
                                                              "outputs=3",
                                                              x, x.substr(3, 1))});
  }
}

// Elementwise functions of the types that the op rows' examples have not.
void add_types(std::vector<WideExample>& examples) {
  for (const std::string_view type : {"i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"}) {
    const std::string x = fmt::format("{}[11]<9", type);
    for (const std::string_view op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      examples.push_back({op, x + ", " + x});
    }
    examples.push_back({"BitwiseNot", x});
    if (type[0] == 'u') {
      examples.push_back({"ShiftLeft", x + ", " + x});
      examples.push_back({"ShiftRight", x + ", " + x});
    }
  }
  for (const std::string_view from : {"", "bool", "i32", "i64", "u8"}) {
    for (const int to : {1, 2, 6, 7, 9, 10, 11, 16}) {
      examples.push_back({"Cast", fmt::format("{}[11]; to={}", from, to)});
    }
  }
  for (const std::string_view exponent : {"i32", "i64", "f32", "f64"}) {
    examples.push_back({"Pow", fmt::format("[11]>0, {}[11]<9", exponent)});
    examples.push_back({"PowGrad", fmt::format("[11], [11]>0, {}[11]<9", exponent)});
  }
  examples.push_back({"Pow", "i32[11]<4, i32[11]<4"});
  examples.push_back({"Pow", "i64[11]<4, i32[11]<4"});
  for (const std::string_view type : {"", "bool", "i64", "i32"}) {
    for (const int width : {3, 1100}) {
      const std::string x = fmt::format("{}[5,{}]", type, width);
      examples.push_back({"PackRows", x + ", i64[5]={3,0,4,1,2}, i64[]={3}"});
      examples.push_back({"UnpackRows", x + ", i64[5]={3,0,4,1,2}, i64[]={3}"});
      examples.push_back({"PackRows", x + ", i64[5]={3,-2,9,1,2}, i64[]={3}"});
      examples.push_back({"UnpackRows", x + ", i64[5]={3,-2,9,1,2}, i64[]={3}"});
    }
  }
  for (const std::string_view type : {"i32", "i64"}) {
    examples.push_back({"CumSum", fmt::format("{}[90,701], i64[]={{0}}; reverse=1", type)});
  }
  for (const int classes : {3, 37, 1100}) {
    examples.push_back({"NegativeLogLikelihoodGrad",
                        fmt::format("[], i64[3]<{0}, []={{3}}; classes={0}", classes)});
    examples.push_back(
        {"WeightedCrossEntropyGrad",
         fmt::format("[], [3,{0}], i64[3]<{0}, [3]>0, []={{3}}; label_smoothing=0.1", classes)});
  }
}

// Elements behind the last whole pack, of four and of eight, in each type.
void add_packs(std::vector<WideExample>& examples) {
  for (const int elements : {1, 5, 9, 11, 15}) {
    const std::string x = fmt::format("[{}]", elements);
    examples.push_back({"RandomDropout", x + ", i64[]={1}; ratio=0.25 seed=7"});
    examples.push_back(
        {"UniformNumbers", fmt::format("i64[]={{1}}; shape={{{}}} seed=7 stream=3", elements)});
    examples.push_back({"CumSum", x + ", i64[]={0}"});
  }
}

}  // namespace

void add_edge_examples(std::vector<WideExample>& examples) {
  add_reductions(examples);
  add_types(examples);
  add_classes(examples);
  add_norms(examples);
  add_packs(examples);
  // Rows outside, of each width of elements and type of indices.
  for (const std::string_view type : {"", "bool", "i64"}) {
    for (const std::string_view indices : {"i32[4]={-9,4,9,-1}", "i64[4]={-9,4,9,-1}"}) {
      for (const std::string_view x : {"[5,3]", "[5,8]"}) {
        examples.push_back({"Gather", fmt::format("{}{}, {}", type, x, indices)});
      }
    }
    examples.push_back({"Pad", fmt::format("{}[2,3], i64[4]={{0,1,0,2}}", type)});
  }
  examples.push_back({"TopK", "i32[3,4], i64[1]={2}; outputs=2"});
  examples.push_back(
      {"LstmGrad",
       "-, [2,5,2], -, [3,2,5,2], [2,3,5,10], [3,5,2], [2,8,2], [2,8,2], -, -, -, -, "
       "[2,6]; direction='bidirectional' outputs=7"});
  examples.push_back(
      {"LstmGrad",
       "-, [2,1,2], -, [3,2,1,2], [2,3,1,10], [3,1,2], [2,8,2], [2,8,2], -, -, -, -, "
       "[2,6]; direction='bidirectional' outputs=7"});
  // Rows of a parameter that a sparse gradient names, or does not; rows of packs and others.
  for (const int width : {1, 3, 8, 1030, 1032}) {
    const std::string parameter = fmt::format("[5,{}]", width);
    for (const std::string_view ids :
         {"i64[3]={7,-1,4}, i64[]={3}", "i64[3]={4,0,-1}, i64[]={1}"}) {
      const std::string rest = fmt::format("{}, []>0, []>0, i64[]={{2}}; ", ids);
      const std::string rows = fmt::format("{}, [3,{}]", parameter, width);
      examples.push_back({"SgdRowsStep", rows + ", " + rest + "weight_decay={0.1}"});
      examples.push_back(
          {"SgdRowsStep", fmt::format("{}, {}, {}momentum=0.9 outputs=2", rows, parameter, rest)});
      for (const int mode : {0, 1, 2}) {
        examples.push_back(
            {"AdamWRowsStep", fmt::format("{0}, {1}, {1}>0, {2}mode={3} weight_decay={{0.1}} "
                                          "outputs=3",
                                          rows, parameter, rest, mode)});
      }
    }
  }
  examples.push_back({"TopK", "i64[3,4], i64[1]={2}; largest=0 outputs=2"});
  examples.push_back({"LstmGrad",
                      "-, [2,5,2], -, [3,2,5,2], [2,3,5,10], [3,5,2], [2,8,2], [2,8,2], -, -, "
                      "[2,5,2], [2,5,2], [2,6]; direction='bidirectional' outputs=7"});
  examples.push_back({"LstmGrad",
                      "-, [2,1,2], -, [3,2,1,2], [2,3,1,10], [3,1,2], [2,8,2], [2,8,2], -, -, "
                      "[2,1,2], [2,1,2], [2,6]; direction='bidirectional' outputs=7"});
  for (const int rows : {3, 1027, 2051, 3075, 4099}) {
    examples.push_back({"CompactRows", fmt::format("i64[{}]<3; ignore_index=1 outputs=2", rows)});
    examples.push_back({"CompactRows", fmt::format("i32[{}]<3; ignore_index=1 outputs=2", rows)});
  }
  // Lengths that are not possible, and none at all.
  const std::string lengths =
      "i64[5,2]={1,2,2,1,1,2,1,2,2,1}, i64[5]={5,-1,4,4,0}, "
      "i64[5]={1,1,3,-1,0}";
  examples.push_back({"CtcLoss", "[4,5,3], " + lengths});
  examples.push_back({"CtcLossGrad", "[5], [4,5,3], " + lengths});
  // Labels for several warps.
  const std::string labels = "i64[2,70]<4, i64[2]={150,145}, i64[2]={70,50}; blank=4";
  examples.push_back({"CtcLoss", "[150,2,5], " + labels});
  examples.push_back({"CtcLossGrad", "[2], [150,2,5], " + labels});
  examples.push_back({"PutRows", "i16[4,3], i64[2]={2,0}, i16[2,3]"});
  examples.push_back({"MaxRows", "i64[4,3], i64[2]={2,0}, i64[2,3]"});
  examples.push_back({"MinRows", "i64[4,3], i64[2]={2,0}, i64[2,3]"});
  // Places outside a plane, for each tap of a thread's loop.
  for (const int taps : {1, 2, 3, 5, 7}) {
    const std::string index = fmt::format("i64[1,9,{}]<9", taps);
    examples.push_back({"Sample", fmt::format("[1,2,4], {}, [1,9,{}]", index, taps)});
    examples.push_back(
        {"SampleGradInput", fmt::format("[1,2,9], {}, [1,9,{}]; shape={{1,2,4}}", index, taps)});
  }
}

}  // namespace trainscope::test
