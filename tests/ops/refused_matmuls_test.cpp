// Matmuls, convolutions, pools, attention, gates, norms and softmaxes that do not fit
// together are refused by their shape rules.
#include <doctest/doctest.h>

#include "tests/ops/refusal.h"

namespace trainscope::test {
namespace {

constexpr Refusal kMatmuls[] = {
    {"MatMul", "[2,3], [4,2]", "3 columns, the right one 4 rows"},
    {"MatMul", "[3], [4]", "cannot multiply"},
    {"MatMul", "[], [3]", "1 dimensions at least"},
    {"MatMul", "[2,2,3], [5,3,4]", "cannot be broadcast"},
    {"MatMul", "i64[2,3]<9, i64[3,2]<9", "float"},
    {"MatMul", "[2,3], i64[3,2]<9", "one element type"},
    {"Gemm", "[2,3], [3,4]; transB=1", "cannot multiply"},
    {"Gemm", "[1,2,3], [3,4]", "2 dimensions"},
    {"Gemm", "[2,3], [3,4], [3]", "cannot be broadcast"},
    {"Gemm", "[2,3], [3,4], [1,2,4]", "cannot be broadcast"},
    {"Gemm", "[1,3], [3,4], [2,4]", "cannot be broadcast"},
    {"BatchMatMul", "[3], [3,2]", "2 dimensions at least"},
    {"BatchMatMul", "[2,3], [3,4]; transpose_a=1", "cannot multiply"},
};

constexpr Refusal kWindows[] = {
    {"Conv", "[2,3], [2,3]", "one spatial dimension"},
    {"Conv", "[1,1,2,2,2,2], [1,1,1,1,1,1]", "spatial dimensions"},
    {"Conv", "[1,2,5,5], [3,2,3]", "must have 4 dimensions"},
    {"Conv", "[1,2,5,5], [3,4,3,3]", "4 input channels, 2 are expected"},
    {"Conv", "[1,4,5,5], [3,2,3,3]; group=2", "cannot be divided into 2 groups"},
    {"Conv", "[1,4,5,5], [4,4,3,3]; group=0", "0 groups"},
    {"Conv", "[1,4,5,5], [4,4,3,3]; group=-1", "-1 groups"},
    {"Conv", "[1,2,5,5], [3,2,0,3]", "sizes in [1,"},
    {"Conv", "[1,2,5,5], [3,2,6,3]", "does not fit"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; dilations={3,1}", "does not fit"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; strides={0,1}", "strides holds 0"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; strides={1}", "strides has 1 numbers"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; pads={-1,0,0,0}", "pads holds -1"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; pads={9223372036854775807,0,0,0}", "outside"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; dilations={9223372036854775807,1}", "outside"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; auto_pad='SAME'", "auto_pad is 'SAME'"},
    {"Conv", "[1,2,5,5], [3,2,3,3]; kernel_shape={3,2}", "kernel_shape is [3,2]"},
    {"Conv", "[1,2,5,5], [3,2,3,3], [2]", "must be [3]"},
    {"ConvGradInput", "[1,3,3,3], [3,2,3,3]; input_shape={1,2,5,6}", "must be [1,3,3,4]"},
    {"ConvGradInput", "[1,3,3,3], [3,2,3,3]; input_shape={1,2,5}", "must have 4 dimensions"},
    {"ConvGradInput", "[1,3,3,3], [3,2,3,3]", "must have 4 dimensions"},
    {"ConvGradInput", "[1,3,3,3], [3,2,3,3]; input_shape={1,2,-5,6}", "negative dimension"},
    {"ConvGradWeight", "[1,2,5,5], [1,3,3,3]; kernel_shape={3}", "must have 4 dimensions"},
    {"ConvGradWeight", "[1,2,5,5], [1,3,3,3]; kernel_shape={3,4}", "must be [1,3,3,2]"},
    {"ConvGradWeight", "[1,2,5,5], [1,3,3,3]; kernel_shape={-3,3}", "negative dimension"},
    {"ConvGradWeight", "[1,2,5,5], [1,3,3,3]; kernel_shape={3,3} group=3", "3 groups"},
    {"MaxPool", "[1,2,5,5]", "kernel_shape is missing"},
    {"MaxPool", "[1,2,5,5]; kernel_shape={2,2} storage_order=1 outputs=2", "columns first"},
    {"MaxPool", "[1,2,5,5]; kernel_shape={2,2} pads={2,0,0,0}", "holds whole windows"},
    {"MaxPool", "[1,2,5,5]; kernel_shape={0,2}", "sizes in [1,"},
    {"MaxPool", "i64[1,2,5,5]<9; kernel_shape={2,2}", "float"},
    {"AveragePool", "[1,2,5,5]; kernel_shape={2}", "kernel has 1 spatial dimensions"},
    {"AveragePool", "[1,2]; kernel_shape={2}", "spatial dimensions"},
    {"AveragePool", "[1,2,5,5]; kernel_shape={6,1}", "does not fit"},
    {"GlobalAveragePool", "[2,3]", "one spatial dimension"},
    {"MaxPoolGrad", "[1,2,3,3], [1,2,5,5]; kernel_shape={2,2}", "must be [1,2,4,4]"},
    {"AveragePoolGrad", "[1,2,3,3]; kernel_shape={2,2} input_shape={1,2,5,5}", "must be [1,2,4,4]"},
    {"AveragePoolGrad", "[1,2,3,3]; kernel_shape={2,2}", "spatial dimensions"},
};

constexpr Refusal kAttention[] = {
    {"Attention", "i64[2,5,3,4]<9, i64[2,5,3,4]<9, i64[2,5,3,4]<9", "float"},
    {"Attention", "[2,5,3,4], [2,5,3,4], i64[2,5,3,4]<9", "input 2 must be f"},
    {"Attention", "[5,3,4], [5,3,4], [5,3,4]", "4 dimensions"},
    {"Attention", "[2,5,3,4], [5,3,4], [5,3,4]", "4 dimensions"},
    {"Attention", "[2,5,3,4], [2,5,3,4]", "input 2 (v) is missing"},
    {"Attention", "[2,5,3,4], -, [2,5,3,4]", "input 2 (v) is given without k"},
    {"Attention", "[2,5,3,4], [2,5,3,4], [2,6,3,4]", "input 2 must be [2,5,3,4]"},
    {"Attention", "[2,5,3,4], [1,5,3,4], [1,5,3,4]", "must agree in the first and the last axis"},
    {"Attention", "[2,5,3,4], [2,5,3,6], [2,5,3,6]", "must agree in the first and the last axis"},
    {"Attention", "[2,5,3,4], [2,5,2,4], [2,5,2,4]", "3 heads of q cannot share 2 heads"},
    {"Attention", "[2,5,3,4], [2,5,0,4], [2,5,0,4]", "3 heads of q cannot share 0 heads"},
    {"Attention", "[2,5,0,4], [2,5,3,4], [2,5,3,4]", "0 heads of q cannot share 3 heads"},
    {"Attention", "[2,5,3,4], [2,6,3,4], [2,6,3,4]; causal=1", "5 queries to 6 keys"},
    {"Attention", "[2,5,3,4], [2,0,3,4], [2,0,3,4]", "5 queries have no keys"},
    {"Attention", "[2,5,3,4], [2,7,3,4], [2,7,3,4], [5]", "[5] and [2,3,5,7] cannot be broadcast"},
    {"Attention", "[2,5,3,4], [2,7,3,4], [2,7,3,4], [1,2,3,5,7]", "cannot be broadcast"},
    {"Attention", "[2,5,3,4], [2,7,3,4], [2,7,3,4], [4,2,3,5,7]", "cannot be broadcast"},
    {"Attention", "[2,5,9,4]", "q_heads=0 and kv_heads=0 must be above 0"},
    {"Attention", "[2,5,9,4]; q_heads=-3", "must be above 0"},
    {"Attention", "[2,5,9,4]; q_heads=5 kv_heads=2", "5 heads of q cannot share 2 heads"},
    {"Attention", "[2,5,9,4]; q_heads=4", "must be q_heads + 2 * kv_heads = 12"},
    {"Attention", "[2,5,9,4]; q_heads=9223372036854775807", "too large"},
    {"AttentionGrad", "[2,5,3,4], [2,5,3,5], [2,3,5], [2,5,3,4], [2,5,3,4], [2,5,3,4]", "one type"},
    {"AttentionGrad", "[2,5,3,8], [2,5,3,8], [2,3,5], [2,5,3,4], [2,5,3,4], [2,5,3,4]",
     "input 0 must be [2,5,3,4]"},
    {"AttentionGrad", "[2,5,3,4], [2,5,3,4], [2,5,3,2], [2,5,3,4], [2,5,3,4], [2,5,3,4]",
     "input 2 must be [2,3,5,2]"},
    {"AttentionGrad", "[2,5,3,4], [2,5,3,4], [2,3,5,2], [2,5,9,4]; q_heads=3 outputs=3",
     "3 outputs asked for; without k and v there is one"},
};

constexpr Refusal kGated[] = {
    {"Gelu", "[2,3]; approximate='erf'", "approximate is 'erf'; 'none' and 'tanh' exist"},
    {"Gelu", "i64[2,3]<9", "float"},
    {"GeluGrad", "[2,3], [2,3]; approximate=''", "approximate is ''"},
    {"GeluGrad", "[2,3], [3]", "one type"},
    {"Swish", "i64[2,3]<9", "float"},
    {"SwishGrad", "[2,3], [3,2]", "one type"},
};

constexpr Refusal kRotary[] = {
    {"RotaryEmbedding", "[2,3,4], [5,2], [5,2]", "cannot be broadcast to x [2,3,4]"},
    {"RotaryEmbedding", "[2,3,4], [3,3], [3,3]", "rotates 3 pairs of elements"},
    {"RotaryEmbedding", "[4], [3,2], [3,2]", "must have 1 to 1 dimensions"},
    {"RotaryEmbedding", "[3,4], [3,2], [3,1]", "one type"},
    {"RotaryEmbedding", "i64[3,4]<9, [3,2], [3,2]", "float"},
};

constexpr Refusal kNorms[] = {
    {"BatchNormalization", "[4], [4], [4], [4], [4]", "a channel dimension"},
    {"BatchNormalization", "[4,3], [4], [3], [3], [3]", "must be [3]"},
    {"BatchNormalization", "[4,3], [3], [3], [3], [1,3]", "must be [3]"},
    {"BatchNormalization", "[4,3], [3], [3], [3], [3]; outputs=3", "training_mode=1"},
    {"BatchNormalization", "[4,3], [3], [3], [3], i64[3]<2", "one element type"},
    {"BatchNormalizationGrad", "[4,3], [4,3], [3]; outputs=3", "5 expected"},
    {"BatchNormalizationGrad", "[4,3], [4,2], [2]; training_mode=1", "one type"},
    {"BatchNormRelu", "[4], [4], [4], [4], [4]", "a channel dimension"},
    {"BatchNormRelu", "[4,3], [4], [3], [3], [3]", "must be [3]"},
    {"BatchNormRelu", "[4,3], [3], [3], [3], -", "input 4 is missing"},
    {"BatchNormRelu", "[4,3], [3], [3], [3], [3], [4,1]", "one type"},
    {"BatchNormReluGrad", "[4,3], [4,3], [4,2], [2]", "one type"},
    {"BatchNormReluGrad", "[4,3], [4,2], [4,3], [3]", "one type"},
    {"LayerNormalization", "[2,3], [2]", "must be [3]"},
    {"LayerNormalization", "[2,3], [2,3]", "must be [3]"},
    {"LayerNormalization", "[2,3], [3], [1]", "must be [3]"},
    {"LayerNormalization", "[2,3], [3]; axis=2", "axis 2 is outside"},
    {"LayerNormalization", "[], []", "axis -1 is outside"},
    {"LayerNormalizationGrad", "[2,3], [2,4], [4]", "one type"},
    {"LayerNormalizationGrad", "[2,3], [2,3], [3], [3]", "one type"},
    {"RMSNormalizationGrad", "[2,3], [2,3], [3], [2,4]", "one type"},
    {"Softmax", "[2,3]; axis=2", "axis 2 is outside"},
    {"Softmax", "i64[2,3]<9", "float"},
    {"LogSoftmaxGrad", "[2,3], [3,2]", "one type"},
};

}  // namespace

TEST_CASE("refusals: matmuls") {
  for (const Refusal& refusal : kMatmuls) check_refused(refusal);
}

TEST_CASE("refusals: convolutions and pools") {
  for (const Refusal& refusal : kWindows) check_refused(refusal);
}

TEST_CASE("refusals: attention") {
  for (const Refusal& refusal : kAttention) check_refused(refusal);
}

TEST_CASE("refusals: gated activations") {
  for (const Refusal& refusal : kGated) check_refused(refusal);
}

TEST_CASE("refusals: rotary positions") {
  for (const Refusal& refusal : kRotary) check_refused(refusal);
}

TEST_CASE("refusals: norms and softmax") {
  for (const Refusal& refusal : kNorms) check_refused(refusal);
}

}  // namespace trainscope::test
