// com.microsoft's MatMulNBits: a matmul whose weights are stored in a few bits. They are unpacked
// when the model is read, and stay constant.
#include "engine/onnx/composites/quantized_matmul.h"

#include <algorithm>
#include <vector>

namespace trainscope {
namespace {

enum Input : std::size_t { kA, kWeights, kScales, kZeroPoints, kGroups, kBias };

struct Packing {
  std::int64_t rows = 0;     // N: columns of the result
  std::int64_t columns = 0;  // K
  std::int64_t bits = 4;
  std::int64_t block = 0;   // columns that share a scale
  std::int64_t blocks = 0;  // of a row
};

Packing packing_of(Composition& c) {
  const Attributes& attributes = c.attributes();
  Packing p{.rows = attributes.integer("N", 0),
            .columns = attributes.integer("K", 0),
            .bits = attributes.integer("bits", 4),
            .block = attributes.integer("block_size", 0)};
  c.require(p.rows > 0 && p.columns > 0 && p.block > 0,
            "N={}, K={} and block_size={} must be above 0", p.rows, p.columns, p.block);
  // Bytes of all rows are then a number that fits.
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  c.require_supported(p.rows <= kMost && p.columns <= kMost && p.block <= kMost,
                      "N={}, K={} and block_size={}: at most {} are supported", p.rows, p.columns,
                      p.block, kMost);
  c.require_supported(p.bits == 2 || p.bits == 4 || p.bits == 8,
                      "{} bits; 2, 4 and 8 are supported", p.bits);
  c.require_supported(attributes.integer("weight_prepacked", 0) == 0,
                      "weights that were packed for a processor are not supported");
  p.blocks = (p.columns + p.block - 1) / p.block;
  return p;
}

// Number i of those that lie in the bytes from `row` on, the lowest bits first.
double unpacked(const std::vector<double>& bytes, std::int64_t row, std::int64_t i,
                std::int64_t bits) {
  const std::int64_t per_byte = 8 / bits;
  const auto byte = static_cast<unsigned>(bytes[static_cast<std::size_t>(row + i / per_byte)]);
  const auto shift = static_cast<unsigned>(i % per_byte * bits);
  return static_cast<double>((byte >> shift) & ((1U << bits) - 1U));
}

// By row and block: what stands for 0.
std::vector<double> zero_points(Composition& c, const Packing& p) {
  std::vector<double> zeros(static_cast<std::size_t>(p.rows * p.blocks),
                            static_cast<double>(std::int64_t{1} << (p.bits - 1)));
  if (!c.has(kZeroPoints)) return zeros;
  if (is_float(c.dtype(c.input(kZeroPoints)))) {
    return known_numbers(c, kZeroPoints, p.rows * p.blocks);
  }
  const std::int64_t row_bytes = (p.blocks * p.bits + 7) / 8;
  const std::vector<double> packed = known_bytes(c, kZeroPoints, p.rows * row_bytes);
  for (std::int64_t n = 0; n < p.rows; ++n) {
    for (std::int64_t b = 0; b < p.blocks; ++b) {
      zeros[static_cast<std::size_t>(n * p.blocks + b)] =
          unpacked(packed, n * row_bytes, b, p.bits);
    }
  }
  return zeros;
}

// By column: the block whose scale it has.
std::vector<std::int64_t> block_of_columns(Composition& c, const Packing& p) {
  std::vector<std::int64_t> blocks;
  for (std::int64_t k = 0; k < p.columns; ++k) blocks.push_back(k / p.block);
  if (!c.has(kGroups)) return blocks;
  const std::vector<double> given = known_numbers(c, kGroups, p.columns);
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    blocks[k] = static_cast<std::int64_t>(given[k]);
    c.require(blocks[k] >= 0 && blocks[k] < p.blocks, "g_idx holds {}, there are {} blocks",
              blocks[k], p.blocks);
  }
  return blocks;
}

// [K, N]
Tensor weights_of(Composition& c, const Packing& p) {
  const std::int64_t row_bytes = p.blocks * ((p.block * p.bits + 7) / 8);
  const std::vector<double> packed = known_bytes(c, kWeights, p.rows * row_bytes);
  const std::vector<double> scales = known_numbers(c, kScales, p.rows * p.blocks);
  const std::vector<double> zeros = zero_points(c, p);
  const std::vector<std::int64_t> blocks = block_of_columns(c, p);
  Tensor weights(TensorType{.dtype = DType::kF64, .shape = {p.columns, p.rows}});
  const std::span<double> all = weights.values<double>();
  for (std::int64_t n = 0; n < p.rows; ++n) {
    for (std::int64_t k = 0; k < p.columns; ++k) {
      const auto at = static_cast<std::size_t>(n * p.blocks + blocks[static_cast<std::size_t>(k)]);
      const double q = unpacked(packed, n * row_bytes, k, p.bits);
      all[static_cast<std::size_t>(k * p.rows + n)] = (q - zeros[at]) * scales[at];
    }
  }
  return weights;
}

}  // namespace

std::vector<double> known_numbers(Composition& c, std::size_t input, std::int64_t count) {
  const Tensor* known = c.known(input);
  c.require_supported(known != nullptr, "input {} must be known before the run and not trained",
                      input);
  c.require(known->elements() >= count, "input {} holds {} numbers, {} are expected", input,
            known->elements(), count);
  const Tensor exact = convert(*known, DType::kF64);
  return {exact.values<double>().begin(), exact.values<double>().end()};
}

std::vector<double> known_bytes(Composition& c, std::size_t input, std::int64_t count) {
  const DType dtype = c.dtype(c.input(input));
  c.require(dtype == DType::kU8, "input {} holds packed numbers: it must be u8, is {}", input,
            name_of(dtype));
  return known_numbers(c, input, count);
}

void compose_quantized_matmul(Composition& c) {
  const Packing packing = packing_of(c);
  const ValueId a = c.input(kA);
  const Tensor weights = convert(weights_of(c, packing), c.dtype(a));
  const ValueId y = c("MatMul", {a, c.constant(weights)});
  c.result(0, c.has(kBias) ? c.add(y, c.input(kBias)) : y);
}

}  // namespace trainscope
