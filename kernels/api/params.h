// Plain parameter structs of kernels. Shapes travel with the tensors and are not repeated here;
// what an op takes as a constant input or attribute (axes, pads, ...) arrives here, normalised:
// axes are in [0, rank), defaults are filled in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/api/conversion.h"
#include "kernels/api/tensor_view.h"

namespace trainscope {

struct NoParams {};

struct AxisParams {  // Softmax, Concat, Split, Gather, LayerNormalization without epsilon ...
  int axis = 0;
};

struct ReduceParams {  // reduced[a] tells whether axis a of the input is reduced
  std::array<bool, kMaxRank> reduced{};
};

struct PermutationParams {  // Transpose: output axis a is input axis permutation[a]
  std::array<int, kMaxRank> permutation{};
};

// Slice: output[i] = input[start + i * step] per axis. SliceGrad: the reverse, zeros elsewhere.
struct SliceParams {
  std::array<std::int64_t, kMaxRank> start{};
  std::array<std::int64_t, kMaxRank> step{};
};

enum class PadMode : std::uint8_t { kConstant, kReflect, kEdge };
struct PadParams {  // elements added before each axis; negative crops. After: from the output shape
  std::array<std::int64_t, kMaxRank> before{};
  PadMode mode = PadMode::kConstant;
};

inline constexpr int kMaxSpatialRank = 3;
using Spatial = std::array<std::int64_t, kMaxSpatialRank>;

// Window of a convolution or pool over `rank` spatial axes of an [N, C, spatial...] tensor.
struct WindowParams {
  int rank = 2;
  Spatial kernel{1, 1, 1};
  Spatial stride{1, 1, 1};
  Spatial dilation{1, 1, 1};
  Spatial pad_begin{};
  Spatial pad_end{};
};

struct ConvParams {  // Conv, ConvGradInput, ConvGradWeight
  WindowParams window;
  std::int64_t group = 1;
};

struct PoolParams {  // MaxPool, AveragePool and their gradients
  WindowParams window;
  bool count_include_pad = false;
};

struct NormParams {  // Batch-, Layer- and RMSNormalization and their gradients
  int axis = 1;
  double epsilon = 1e-5;
  double momentum = 0.9;  // ONNX: running = running * momentum + batch * (1 - momentum)
  bool training = false;
  bool centered = true;  // false: RMSNormalization, which subtracts no mean
};

struct MatMulParams {  // Gemm, MatMul, BatchMatMul: alpha * op(A) op(B) + beta * C
  bool transpose_a = false;
  bool transpose_b = false;
  double alpha = 1.0;
  double beta = 1.0;
};

// Element i is kept when uniform(seed, stream, step, i) >= ratio; kept ones are scaled by
// 1 / (1 - ratio). step arrives as an int64 scalar tensor.
struct DropoutParams {
  double ratio = 0.0;
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
};

struct AttentionParams {      // Attention and its gradient
  std::int64_t heads = 0;     // of q
  std::int64_t kv_heads = 0;  // of k and v each; divides heads
  double scale = 1.0;
  bool causal = false;    // query i sees the keys up to i
  bool packed = false;    // q, k and v are side by side in one input
  DropoutParams dropout;  // of the weights [batch, heads, tokens, keys]
};

struct TriluParams {
  bool upper = true;
  std::int64_t diagonal = 0;
};

struct LossParams {  // cross entropies, NegativeLogLikelihood and their gradients
  int class_axis = 1;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;  // WeightedCrossEntropy
};

// What Adam's relatives do differently: see the doc of AdamWStep.
enum class AdamMode : std::uint8_t { kTorchAdamW, kHuggingFaceAdamW, kAdam };

// SgdStep, AdamWStep, LambStep: one pass over all parameters. One entry per parameter.
struct OptimizerParams {
  std::vector<double> weight_decay;
  std::vector<double> learning_rate_scale;
  double momentum = 0.0;  // SGD
  bool nesterov = false;  // SGD
  double beta1 = 0.9;     // Adam, LAMB
  double beta2 = 0.999;
  double epsilon = 1e-8;
  AdamMode mode = AdamMode::kTorchAdamW;
  bool bias_correction = true;  // Adam, LAMB
  double ratio_min = 0.0;       // LAMB: limits of ||p|| / ||update||
  double ratio_max = std::numeric_limits<double>::infinity();
};

struct ClipParams {  // GradientScale: min(1, max_norm / (norm + 1e-6)); max_norm <= 0 means no
                     // limit
  double max_norm = 0.0;
  double divisor = 1.0;  // micro-batches whose gradients were added up
};

struct LossScaleParams {  // LossScaleStep: when the scale doubles, and its limits
  std::int64_t interval = 2000;
  double least = 1.0;
  double most = 16777216.0;  // 2^24
};

struct FillParams {  // ConstantOfShape: the value as double (exact for |integers| <= 2^53)
  double value = 0.0;
};

struct AlphaParams {  // Elu, LeakyRelu, Swish and their gradients
  double alpha = 1.0;
};

struct GeluParams {  // Gelu and its gradient: by tanh, else by erf
  bool by_tanh = false;
};

struct CastParams {
  ConversionRule conversion = {};  // to floats of 8 bits
};

// Integers [least, greatest] that stand for multiples of a scale. There is one scale, or one for
// each index of an axis, or one for each block of `block_size` indices (the last may be shorter).
struct QuantizeParams {
  int axis = 0;
  std::int64_t block_size = 0;  // 0: no blocks
  double least = 0.0;
  double greatest = 0.0;
};

struct ModParams {  // the sign of the result: the dividend's (C's %), else the divisor's (Python's)
  bool truncated = false;
};

struct ArgParams {  // ArgMax, ArgMin: the first or the last of equal elements along the axis
  int axis = 0;
  bool last = false;
};

struct TopKParams {  // the `count` largest or smallest elements along the axis
  int axis = 0;
  std::int64_t count = 0;
  bool largest = true;
};

struct ScanParams {  // CumSum along the axis; exclusive: without the element itself
  int axis = 0;
  bool exclusive = false;
  bool reverse = false;
};

// What a gate of a recurrent cell is a function of. Alpha and beta are ONNX's, where it has them.
enum class CellFunction : std::uint8_t {
  kSigmoid,
  kTanh,
  kRelu,
  kHardSigmoid,
  kAffine,
  kLeakyRelu,
  kThresholdedRelu,
  kScaledTanh,
  kElu,
  kSoftsign,
  kSoftplus,
};
struct CellActivation {
  CellFunction function = CellFunction::kSigmoid;
  double alpha = 0.0;
  double beta = 0.0;
};
inline constexpr std::size_t kMostCellActivations = 3;

struct RecurrentParams {  // Rnn, Lstm, Gru and their gradients
  bool reverse = false;   // a single direction goes from the last step to the first
  // By direction, what ONNX calls f, g and h; a cell has the first one, two or three of them.
  std::array<std::array<CellActivation, kMostCellActivations>, 2> activations{};
  double clip = 0.0;     // what activations are given is brought into [-clip, clip]; 0: it is not
  bool coupled = false;  // LSTM: the forget gate is 1 - the input gate
  bool linear_before_reset = false;  // GRU: the reset gate scales a product of h, else h
};

// Of the ops of plugins: the node's attributes, in a form that engine/plugin alone knows.
struct PluginParams {
  std::shared_ptr<const void> attributes;
};

using Params =
    std::variant<NoParams, AxisParams, ReduceParams, PermutationParams, SliceParams, PadParams,
                 ConvParams, PoolParams, NormParams, MatMulParams, TriluParams, LossParams,
                 DropoutParams, OptimizerParams, ClipParams, FillParams, AlphaParams, GeluParams,
                 ModParams, ArgParams, TopKParams, ScanParams, AttentionParams, LossScaleParams,
                 CastParams, QuantizeParams, RecurrentParams, PluginParams>;

}  // namespace trainscope
