// com.microsoft's MatMulBnb4: a matmul whose weights are four bits each, numbers of a table times
// the largest size in their block. They are unpacked when the model is read, and stay constant.
#include <array>
#include <vector>

#include "engine/onnx/composites/quantized_matmul.h"

namespace trainscope {
namespace {

enum Input : std::size_t { kA, kWeights, kLargest };

// By the four bits: sign, then shares of 12 of the largest number (Dettmers' FP4), and the means of
// a normal distribution's parts of one size (NF4; Dettmers et al. 2023, appendix E).
constexpr std::array<double, 16> kFloat4 = {
    0.0,  0.0625 / 12.0,  8.0 / 12.0,  12.0 / 12.0,  4.0 / 12.0,  6.0 / 12.0,  2.0 / 12.0,  0.25,
    -0.0, -0.0625 / 12.0, -8.0 / 12.0, -12.0 / 12.0, -4.0 / 12.0, -6.0 / 12.0, -2.0 / 12.0, -0.25};
constexpr std::array<double, 16> kNormalFloat4 = {-1.0,
                                                  -0.6961928009986877,
                                                  -0.5250730514526367,
                                                  -0.39491748809814453,
                                                  -0.28444138169288635,
                                                  -0.18477343022823334,
                                                  -0.09105003625154495,
                                                  0.0,
                                                  0.07958029955625534,
                                                  0.16093020141124725,
                                                  0.24611230194568634,
                                                  0.33791524171829224,
                                                  0.44070982933044434,
                                                  0.5626170039176941,
                                                  0.7229568362236023,
                                                  1.0};

struct Packing {
  std::int64_t rows = 0;     // N
  std::int64_t columns = 0;  // K
  std::int64_t block = 0;    // numbers in a row that share their largest size
  const std::array<double, 16>* table = &kFloat4;
};

Packing packing_of(Composition& c) {
  const Attributes& attributes = c.attributes();
  Packing p{.rows = attributes.integer("N", 0),
            .columns = attributes.integer("K", 0),
            .block = attributes.integer("block_size", 0)};
  c.require(p.rows > 0 && p.columns > 0 && p.block > 0,
            "N={}, K={} and block_size={} must be above 0", p.rows, p.columns, p.block);
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  c.require_supported(p.rows <= kMost && p.columns <= kMost,
                      "N={} and K={}: at most {} are supported", p.rows, p.columns, kMost);
  const std::int64_t kind = attributes.integer("quant_type", 0);
  c.require(kind == 0 || kind == 1, "quant_type is {}; 0 (FP4) and 1 (NF4) exist", kind);
  if (kind == 1) p.table = &kNormalFloat4;
  return p;
}

// [N, K]; the first of two numbers is in the upper bits of their byte.
Tensor weights_of(Composition& c, const Packing& p) {
  const std::int64_t count = p.rows * p.columns;
  const std::vector<double> bytes = known_bytes(c, kWeights, (count + 1) / 2);
  const std::vector<double> largest =
      known_numbers(c, kLargest, count / p.block + (count % p.block != 0 ? 1 : 0));
  Tensor weights(TensorType{.dtype = DType::kF64, .shape = {p.rows, p.columns}});
  const std::span<double> all = weights.values<double>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto byte = static_cast<unsigned>(bytes[i / 2]);
    const unsigned bits = i % 2 == 0 ? byte >> 4U : byte & 15U;
    all[i] = (*p.table)[bits] * largest[i / static_cast<std::size_t>(p.block)];
  }
  return weights;
}

}  // namespace

// A [..., K] times the transposed weights, or with transB=0 A [..., N] times the weights.
void compose_four_bit_float_matmul(Composition& c) {
  const Packing packing = packing_of(c);
  const ValueId a = c.input(kA);
  const ValueId weights = c.constant(convert(weights_of(c, packing), c.dtype(a)));
  const bool transposed = c.attributes().integer("transB", 1) != 0;
  c.result(0, c("MatMul", {a, transposed ? c.transpose(weights, {1, 0}) : weights}));
}

}  // namespace trainscope
