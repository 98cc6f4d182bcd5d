// Sizes by what the kernels do with them: rows of a block, chunks, tiles, shares, tables.
#include "tests/cuda/mutants/wide_examples.h"

namespace trainscope::test {
namespace {

// `count` times the text, with commas between.
std::string repeated(std::string_view text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) {
    if (i != 0) result += ", ";
    result += text;
  }
  return result;
}

// An optimizer's parameters, gradients and moments, each 39 times, and of a ragged block.
std::string optimizer_state() {
  std::string text;
  for (const std::string_view each : {"[3]", "[3]", "[3]", "[3]>0"}) {
    text += repeated(each, 39) + (each == "[3]" ? ", [2001], " : ", [2001]>0, ");
  }
  return text + "[]>0, []>0, i64[]={3}; outputs=120";
}

}  // namespace

std::vector<WideExample> wide_examples() {
  std::vector<WideExample> examples{
      // Rows that a block works on, more of them than blocks.
      {"Softmax", "[2,1100]"},
      {"Softmax", "[3,2001]"},
      {"SoftmaxGrad", "[2,1100], [2,1100]"},
      {"LogSoftmax", "[2,1100]"},
      {"LogSoftmaxGrad", "[2,1025], [2,1025]"},
      {"LayerNormalization", "[2,1100], [1100], [1100]"},
      {"LayerNormalization", "[3,1500], f32[1500], f32[1500]; outputs=3"},
      {"LayerNormalizationGrad", "[70,770], [70,770], [770]; outputs=3"},
      {"LayerNormalizationGrad", "[9,1024], [9,1024], f32[1024], [9,1024]; outputs=3"},
      {"LayerNormalizationGrad", "[5,2001], [5,2001], f32[2001]; outputs=3"},
      {"RMSNormalization", "[5,1028], f32[1028]"},
      {"RMSNormalizationGrad", "[33,1025], [33,1025], f32[1025]; outputs=2"},
      {"RMSNormalizationGrad", "[45,392], [45,392], f32[392]; outputs=2"},
      {"BatchNormalization", "[5,3,20,21], [3], [3], [3], [3]>0; training_mode=1 outputs=3"},
      {"BatchNormalizationGrad", "[5,3,20,21], [5,3,20,21], [3]; training_mode=1 outputs=3"},
      // Packs with a rest, several blocks.
      {"Add", "[2501], [2501]"},
      {"Add", "[3,1030], [1030]"},
      {"Mul", "[7,12,40], [12,1]"},
      {"Sub", "[3,1,40], [1,25,1]"},
      {"Where", "bool[3,1,40], [25,1], [40]"},
      // Sums that are cut into chunks, and columns by fours and eights.
      {"ReduceSum", "[3,2100], i64[1]={1}"},
      {"ReduceSum", "[1501,5], i64[1]={0}"},
      {"ReduceSum", "[700,72], i64[1]={0}"},
      {"ReduceSum", "[40,33,50], i64[2]={0,2}"},
      {"ReduceSumWide", "[300,76], i64[1]={0}; keepdims=0"},
      {"ReduceMean", "[20,1100], i64[1]={1}"},
      {"ReduceMax", "[9001]"},
      {"ReduceMax", "[1501,5], i64[1]={0}"},
      {"ArgMax", "[40,300]; axis=1"},
      {"CumSum", "[3,700], i64[]={1}"},
      {"CumSum", "[3,70,40], i64[]={1}; reverse=1 exclusive=1"},
      // Matrices of several tiles, rows that many indices name.
      {"Transpose", "[70,45]; perm={1,0}"},
      {"Transpose", "[3,33,5,66]; perm={0,3,2,1}"},
      {"Gather", "[300,36], i64[40,7]<300"},
      {"GatherGrad", "[300,5], i64[300]<7; shape={7,5}"},
      {"GatherGrad", "[700,132], i64[700]<3; shape={3,132}"},
      {"GatherGrad", "[1100,5], i64[1100]<400; shape={400,5}"},
      {"CompactRows", "i64[2501]<3; ignore_index=1 outputs=2"},
      {"CompactMatMul", "[70,90], [90,80], i64[]={67}, [80]"},
      {"CompactMatMul", "[90,70], [90,80], i64[]={81}; transpose_a=1"},
      // Losses over many classes and rows; tables that are full.
      {"CrossEntropy", "[3,2001], i64[3]<2001; outputs=3"},
      {"CrossEntropy", "[700,7], i64[700]<7; outputs=3"},
      {"CrossEntropyGrad", "[], [3,2001], i64[3]<2001, [3], []>0"},
      {"MeanSquaredError", "[4001], [4001]"},
      {"GlobalNorm", repeated("[3]", 200) + ", [5001]"},
      {"AddPartials", repeated("[300]", 130)},
      {"AdamWStep", optimizer_state()},
      {"LambStep", optimizer_state()},
      // Convolutions of several tiles, depths in shares.
      {"Conv", "[2,5,17,18], [70,5,3,3], [70]; pads={1,1,1,1} strides={2,1}"},
      {"ConvGradInput",
       "[2,20,9,18], [20,66,3,3]; input_shape={2,66,17,18} pads={1,1,1,1} strides={2,1}"},
      {"ConvGradWeight", "[3,9,20,20], [3,70,20,20]; kernel_shape={3,3} pads={1,1,1,1}"},
      {"ConvGradWeight", "[2,6,21,20], [2,8,21,20]; kernel_shape={3,3} group=2 pads={1,1,1,1}"},
      // Attention: several tiles of queries and of keys; heads of 64, of less, of more; rows that
      // cannot be copied by 16 bytes; shared keys; a bias; dropout.
      {"Attention", "[1,140,6,64]; q_heads=2 causal=1 outputs=2"},
      {"Attention", "[2,70,4,72], [2,67,2,72], [2,67,2,72]; outputs=2"},
      {"Attention", "[1,70,2,27], [1,129,1,27], [1,129,1,27]; outputs=2"},
      {"Attention", "[1,200,6,16]; q_heads=2 outputs=2"},
      {"Attention",
       "[1,66,2,100], [1,66,2,100], [1,66,2,100], f32[2,1,66], i64[]={3}; "
       "causal=1 ratio=0.2 seed=5 outputs=2"},
      {"AttentionGrad",
       "[1,140,2,64], [1,140,2,64], f32[1,2,140,2], [1,140,6,64]; q_heads=2 causal=1"},
      {"AttentionGrad",
       "[2,70,4,72], [2,70,4,72], f32[2,4,70,2], [2,70,4,72], [2,67,2,72], [2,67,2,72]; "
       "outputs=3"},
      {"AttentionGrad",
       "[1,70,2,27], [1,70,2,27], f32[1,2,70,2], [1,70,2,27], [1,129,1,27], [1,129,1,27]; "
       "outputs=3"},
      {"AttentionGrad", "[1,150,2,16], [1,150,2,16], f32[1,2,150,2], [1,150,6,16]; q_heads=2"},
      {"AttentionGrad", "[1,150,2,72], [1,150,2,72], f32[1,2,150,2], [1,150,6,72]; q_heads=2"},
      {"AttentionGrad",
       "[1,66,2,100], [1,66,2,100], f32[1,2,66,2], [1,66,2,100], [1,66,2,100], [1,66,2,100], "
       "f32[2,1,66], i64[]={3}; causal=1 ratio=0.2 seed=5 outputs=3"},
      {"AttentionGrad",
       "[1,70,4,40], [1,70,4,40], f32[1,4,70,2], [1,70,4,40], [1,131,2,40], [1,131,2,40], -, "
       "i64[]={3}; ratio=0.3 seed=5 outputs=3"},
  };
  add_ragged_examples(examples);
  add_edge_examples(examples);
  return examples;
}

}  // namespace trainscope::test
