// Ops that the importer writes with others: their gradients against f64 central differences of
// sum(cotangent * output), by every subset of the float inputs.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/check/model_probe.h"

namespace trainscope::test {
namespace {

constexpr std::string_view kNew = R"("" : 28)";

constexpr ModelCase kCases[] = {
    {"swiglu", kNew, "float[2,3] a, float[2,3] b", "float[2,3] y", "y = SwiGLU<alpha = 0.7>(a, b)"},
    {"mish", kNew, "float[2,3] x", "float[2,3] y", "y = Mish(x)"},
    {"group norm by group", R"("" : 18)", "float[2,4,3] x, float[2] s, float[2] b",
     "float[2,4,3] y", "y = GroupNormalization<num_groups = 2>(x, s, b)"},
    {"group norm by channel", kNew, "float[2,4,3,2] x, float[4] s, float[4] b", "float[2,4,3,2] y",
     "y = GroupNormalization<num_groups = 2, epsilon = 0.01>(x, s, b)"},
    {"attention", R"("" : 23)", "float[2,2,3,4] q, float[2,2,5,4] k, float[2,2,5,3] v",
     "float[2,2,3,3] y", "y = Attention(q, k, v)"},
    {"causal attention of grouped heads", kNew, "float[2,3,8] q, float[2,3,4] k, float[2,3,4] v",
     "float[2,3,8] y",
     "y = Attention<q_num_heads = 4, kv_num_heads = 2, is_causal = 1, scale = 0.3>(q, k, v)"},
    {"attention with a trained bias, capped", kNew,
     "float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v, float[2,3,3] m",
     "float[1,2,3,4] y, float[1,2,3,3] s",
     "y, , , s = Attention<softcap = 1.5, qk_matmul_output_mode = 2>(q, k, v, m)"},
    {"attention with a cache and a window", kNew,
     "float[1,2,2,4] q, float[1,2,2,4] k, float[1,2,2,4] v, float[1,2,3,4] pk, float[1,2,3,4] pv",
     "float[1,2,2,4] y, float[1,2,5,4] nk, float[1,2,5,4] nv",
     "y, nk, nv = Attention<is_causal = 1, left_window_size = 2>(q, k, v, , pk, pv)"},
    {"attention of rows that see nothing", kNew,
     "float[2,1,3,4] q, float[2,1,3,4] k, float[2,1,3,4] v", "float[2,1,3,4] y",
     "y = Attention<is_causal = 1>(q, k, v, , , , n)", "int64[2] n = {1, 3}"},
    {"running product", kNew, "float[2,4] x", "float[2,4] y", "y = CumProd<exclusive = 1>(x, axis)",
     "int64 axis = {1}"},
    {"padding that wraps", kNew, "float[2,3] x", "float[6,4] y",
     R"(y = Pad<mode = "wrap">(x, pads))", "int64[4] pads = {1, 2, 3, -1}"},
    {"linear attention", kNew,
     "float[1,3,4] q, float[1,3,4] k, float[1,3,6] v, float[1,2,2,3] p, float[1,3,2] d, "
     "float[1,3,2] b",
     "float[1,3,6] y, float[1,2,2,3] s",
     "y, s = LinearAttention<q_num_heads = 2, kv_num_heads = 2>(q, k, v, p, d, b)"},
    {"causal convolution", kNew, "float[2,3,4] x, float[3,1,3] w, float[3] b, float[2,3,2] p",
     "float[2,3,4] y, float[2,3,2] s",
     R"(y, s = CausalConvWithState<activation = "silu">(x, w, b, p))"},
    {"LSTM with all its inputs", R"("" : 17)",
     "float[3,2,3] x, float[2,8,3] w, float[2,8,2] r, float[2,16] b, float[2,2,2] h, float[2,2,2] "
     "c, float[2,6] p",
     "float[3,2,2,2] y, float[2,2,2] hn, float[2,2,2] cn",
     R"(y, hn, cn = LSTM<hidden_size = 2, direction = "bidirectional">(x, w, r, b, l, h, c, p))",
     "int32[2] l = {3, 2}"},
    {"LSTM of batches, coupled, without a bias", R"("" : 22)",
     "float[2,3,3] x, float[1,8,3] w, float[1,8,2] r, float[2,1,2] h",
     "float[2,3,1,2] y, float[2,1,2] cn",
     "y, , cn = LSTM<hidden_size = 2, layout = 1, input_forget = 1, clip = 1.25>(x, w, r, , , h)"},
    {"GRU by the state that it resets", R"("" : 7)",
     "float[3,2,3] x, float[1,6,3] w, float[1,6,2] r, float[1,12] b, float[1,2,2] h",
     "float[3,1,2,2] y, float[1,2,2] hn",
     R"(y, hn = GRU<hidden_size = 2, direction = "reverse">(x, w, r, b, l, h))",
     "int32[2] l = {1, 3}"},
    {"GRU by the product that it resets", R"("" : 14)",
     "float[2,3,3] x, float[2,6,3] w, float[2,6,2] r, float[2,12] b",
     "float[2,3,2,2] y, float[2,2,2] hn",
     "y, hn = GRU<hidden_size = 2, layout = 1, direction = \"bidirectional\", linear_before_reset "
     "= "
     "1>(x, w, r, b)"},
    {"RNN of two functions", R"("" : 14)",
     "float[3,2,3] x, float[2,2,3] w, float[2,2,2] r, float[2,4] b, float[2,2,2] h",
     "float[3,2,2,2] y, float[2,2,2] hn",
     "y, hn = RNN<hidden_size = 2, direction = \"bidirectional\", activations = [\"Affine\", "
     "\"HardSigmoid\"], activation_alpha = [0.9, 0.15], activation_beta = [0.1, 0.45]>"
     "(x, w, r, b, , h)"},
    {"a transform of 12 numbers, two behind", R"("" : 20)", "float[10,1] x", "float[7,2] y",
     "y = DFT<onesided = 1>(x, n)", "int64 n = {12}"},
    {"a complex transform of a length that is prime", R"("" : 17)", "float[2,7,2] x",
     "float[2,5,2] y", "y = DFT<inverse = 1>(x, n)", "int64 n = {5}"},
    {"a transform back", R"("" : 20)", "float[2,3,2] x", "float[2,4,1] y",
     "y = DFT<inverse = 1, onesided = 1>(x)"},
    {"sequences", kNew, "float[3,4] x, float[1,4] z", "float[3,4] y, float[1,4] e",
     "s = SplitToSequence<axis = 0>(x) t = SequenceInsert(s, z) e = SequenceAt(t, at) u = "
     "SequenceErase(t, at) y = ConcatFromSequence<axis = 0>(u)",
     "int64 at = {-1}"},
    {"fused matmul", kMicrosoftOpsets, "float[2,4,3] a, float[2,5,4] b", "float[2,3,5] y",
     "y = com.microsoft.FusedMatMul<transA = 1, transB = 1, alpha = 0.5>(a, b)"},
    {"bias gelu", kMicrosoftOpsets, "float[2,3] x, float[3] b", "float[2,3] y",
     "y = com.microsoft.BiasGelu(x, b)"},
    {"fast gelu", kMicrosoftOpsets, "float[2,3] x, float[3] b", "float[2,3] y",
     "y = com.microsoft.FastGelu(x, b)"},
    {"skip layer norm", kMicrosoftOpsets, "float[2,3,4] x, float[2,3,4] r, float[4] s, float[4] b",
     "float[2,3,4] y, float[2,3,4] t",
     "y, , , t = com.microsoft.SkipLayerNormalization<epsilon = 0.01>(x, r, s, b)"},
    {"skip RMS norm", kMicrosoftOpsets, "float[2,3,4] x, float[2,3,4] r, float[4] s",
     "float[2,3,4] y",
     "y = com.microsoft.SkipSimplifiedLayerNormalization<epsilon = 0.01>(x, r, s)"},
    {"embeddings", kMicrosoftOpsets, "float[5,4] w, float[3,4] p, float[4] s, float[4] b",
     "float[2,3,4] y",
     "y = com.microsoft.EmbedLayerNormalization<epsilon = 0.01>(i, , w, p, , s, b)",
     "int64[2,3] i = {0, 4, 1, 2, 2, 0}"},
    {"attention of one input", kMicrosoftOpsets, "float[2,3,4] x, float[4,12] w, float[12] b",
     "float[2,3,4] y", "y = com.microsoft.Attention<num_heads = 2>(x, w, b, n)",
     "int64[2] n = {3, 2}"},
    {"multi head attention", kMicrosoftOpsets,
     "float[2,3,4] q, float[2,3,4] k, float[2,3,4] v, float[12] b, float[1,2,3,3] m",
     "float[2,3,4] y",
     "y = com.microsoft.MultiHeadAttention<num_heads = 2, unidirectional = 1>(q, k, v, b, , m)"},
    {"group query attention", kMicrosoftOpsets,
     "float[1,3,8] q, float[1,3,4] k, float[1,3,4] v, float[3,1] c, float[3,1] s", "float[1,3,8] y",
     "y = com.microsoft.GroupQueryAttention<num_heads = 4, kv_num_heads = 2, do_rotary = 1>(q, k, "
     "v, , , n, t, c, s)",
     "int64[1] n = {2}, int64 t = {3}"},
    {"a triangle", kMicrosoftOpsets, "float[2,3,3] x", "float[2,3,3] y",
     "y = com.microsoft.Trilu<upper = 0>(x)"},
    {"bias softmax", kMicrosoftOpsets, "float[2,3,4] x, float[3,4] b", "float[2,3,4] y",
     "y = com.microsoft.BiasSoftmax<axis = 2>(x, b)"},
    {"a loss with its classes", kMicrosoftOpsets, "float[4,5] x, float[5] w", "float y",
     R"(y = com.microsoft.SoftmaxCrossEntropyLossInternal<reduction = "sum">(x, l, w))",
     "int64[4] l = {1, 0, 4, 2}"},
    {"scaled sum", kMicrosoftOpsets, "float[2,3] a, float[2,3] b, float[2,3] c", "float[2,3] y",
     "y = com.microsoft.ScaledSum<scale_0 = 0.5, scale_1 = -2.0, scale_2 = 0.25>(a, b, c)"},
    {"sizes of what is side by side", kMicrosoftOpsets, "float[2,3] a, float[2,1] b",
     "float[2,4] y, int64[2] n", "y, n = com.microsoft.ConcatTraining<axis = 1>(a, b)"},
    {"a loss with shares of classes", kMicrosoftOpsets, "float[2,3,5] x, float[2,3,5] l",
     "float y, float[2,3,5] p", "y, p = com.microsoft.SoftmaxCrossEntropy(x, l)"},
    {"a loss by labels", kMicrosoftOpsets, "float[2,2,5] x", "float y, float[2,2,5] p",
     R"(y, p = com.microsoft.SparseSoftmaxCrossEntropy<reduction = "sum">(x, l))",
     "int64[2,2] l = {1, 0, 4, 2}"},
    {"a loss by weighted labels", kMicrosoftOpsets, "float[4,5] x, float[4] w", "float y",
     "y = SparseSoftmaxCrossEntropy(x, l, w)", "int64[4] l = {1, 0, 4, 2}"},
    {"batch norm in training", kMicrosoftOpsets, "float[3,2,2] x, float[2] s, float[2] b",
     "float[3,2,2] y, float[2] bm, float[2] bi",
     "y, nm, nv, bm, bi = com.microsoft.BatchNormInternal<epsilon = 0.01>(x, s, b, m, v)",
     "float[2] m = {0, 1}, float[2] v = {1, 2}"},
    {"fake quantization, of steps that are next to none", kMicrosoftOpsets, "float[2,3] x",
     "float[2,3] y, bool[2,3] m",
     "y, m = com.microsoft.FakeQuant<quant_min = -1000000000000, quant_max = 1000000000000>(x, s, "
     "z)",
     "float s = {1e-11}, float z = {0.0}"},
    {"fewer rows", kMicrosoftOpsets, "float[2,4,3] x", "float[2,2,3] y",
     "y = com.microsoft.ShrunkenGather<axis = 1>(x, i)", "int64[2] i = {3, 1}"},
    {"rows without padding and back", kMicrosoftOpsets, "float[2,3,2] x", "float[2,3,2] y",
     "r, n = com.microsoft.FlattenAndUnpad(x, i) q = Mul(r, r) "
     "y = com.microsoft.PadAndUnflatten(q, i, n)",
     "int64[4] i = {0, 1, 3, 5}"},
    {"matmul of four-bit floats", kMicrosoftOpsets, "float[2,4] a", "float[2,3] y",
     "y = com.microsoft.MatMulBnb4<K = 4, N = 3, block_size = 4, quant_type = 1>(a, w, m)",
     "uint8[6] w = {18, 52, 86, 120, 154, 188}, float[3] m = {0.5, 1.0, 2.0}"},
};

// Every subset of the inputs but all of them.
std::vector<InputSubset> subsets_of(const InputSubset& inputs) {
  const std::size_t n = inputs.size();
  std::vector<InputSubset> subsets;
  for (std::size_t bits = 1; bits + 1 < (std::size_t{1} << n); ++bits) {
    InputSubset some;
    for (std::size_t k = 0; k < n; ++k) {
      if ((bits >> k & 1) != 0) some.push_back(inputs[k]);
    }
    subsets.push_back(std::move(some));
  }
  return subsets;
}

}  // namespace

TEST_CASE("composite gradients: those of what an op is written with, checked by differences") {
  check_gradients(kCases, subsets_of);
}

}  // namespace trainscope::test
