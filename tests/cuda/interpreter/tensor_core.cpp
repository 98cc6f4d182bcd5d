// What a warp does on tensor cores: matrices from shared memory, MMAs, and pairs for them. The
// layouts are those of "Warp Level Matrix Instructions" in NVIDIA's PTX ISA; with g = lane / 4 and
// t = lane % 4 a lane has elements 2 t and 2 t + 1 of row g of a matrix [8, 8] of two-byte
// elements.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/api/low_precision.h"
#include "tests/cuda/interpreter/lanewise.h"
#include "tests/cuda/interpreter/machine.h"

namespace trainscope::ptx {
namespace {

constexpr unsigned kMatrices = 4;
constexpr unsigned kRows = 8;  // of a matrix, of 16 bytes

// Operands 0 to 3 = matrices; lane i holds, in operand 4, where row i % 8 of matrix i / 8 begins.
// A lane takes what it gets of them, so that a race with whoever wrote it is found.
template <bool kTransposed>
void run_load_matrices(Warp& warp, const Instruction& instruction, unsigned mask) {
  const Lanes rows = warp.operand(instruction, kMatrices);
  Machine& machine = warp.machine();
  machine.count({.space = Space::kShared, .bytes = 16}, rows, mask, Use::kRead);
  for_lanes(mask, [&](unsigned lane) {
    if (rows.words[lane] % 16 != 0) {
      machine.fail(warp, lane, instruction, "a row of a matrix is not aligned to 16 bytes");
    }
  });
  for (unsigned m = 0; m < kMatrices; ++m) {
    Lanes& to = warp.operand(instruction, m);
    for_lanes(mask, [&](unsigned lane) {
      std::uint32_t pair = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned along = lane % 4 * 2 + i;
        const unsigned row = kTransposed ? along : lane / 4;
        const unsigned column = kTransposed ? lane / 4 : along;
        const std::byte* element =
            machine.use(warp, lane, instruction, {.space = Space::kShared, .bytes = 2},
                        rows.words[m * kRows + row] + std::uint64_t{2} * column, Use::kRead);
        std::uint16_t bits = 0;
        std::memcpy(&bits, element, sizeof bits);
        pair |= std::uint32_t{bits} << 16 * i;
      }
      to.words[lane] = pair;
    });
  }
}

// The element of a matrix [8 r, 2 c], or its transpose, that lanes hold in pairs along its rows.
template <typename T>
float element_of(const Lanes& pairs, unsigned row, unsigned column) {
  const std::uint64_t pair = pairs.words[row * 4 + column / 2];
  T value;
  value.bits = static_cast<std::uint16_t>(pair >> 16 * (column % 2));
  return value;
}

// D [16, 8] = A [16, 16] times B [16, 8], plus C: operands 0 to 3 are D, 4 to 7 A (upper and lower
// rows of its left half, then of its right half), 8 and 9 the upper and lower half of B by columns,
// 10 to 13 C. Sums are formed in order, as the emulator forms them; a GPU has an order of its own.
template <typename T>
void run_multiply(Warp& warp, const Instruction& instruction, unsigned mask) {
  float sums[4][kLanes];
  for_lanes(mask, [&](unsigned lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned half = i / 2;  // upper or lower rows
      const unsigned column = lane % 4 * 2 + i % 2;
      float sum = from_word<float>(warp.operand(instruction, 10 + i).words[lane]);
      for (unsigned k = 0; k < 16; ++k) {
        const Lanes& a = warp.operand(instruction, 4 + half + 2 * (k / 8));
        const Lanes& b = warp.operand(instruction, 8 + k / 8);
        sum = std::fma(element_of<T>(a, lane / 4, k % 8), element_of<T>(b, column, k % 8), sum);
      }
      sums[i][lane] = sum;
    }
  });
  for (unsigned i = 0; i < 4; ++i) {
    Lanes& to = warp.operand(instruction, i);
    for_lanes(mask, [&](unsigned lane) { to.words[lane] = to_word(sums[i][lane]); });
  }
  ++warp.machine().counters().multiplies;
}

// Operand 0 = operand 1, rounded, in its upper half and operand 2 in its lower one.
template <typename T>
void run_round_pair(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& upper = warp.operand(instruction, 1);
  const Lanes& lower = warp.operand(instruction, 2);
  for_lanes(mask, [&](unsigned lane) {
    const T high = static_cast<T>(from_word<float>(upper.words[lane]));
    const T low = static_cast<T>(from_word<float>(lower.words[lane]));
    to.words[lane] = std::uint32_t{high.bits} << 16 | low.bits;
  });
}

}  // namespace

void add_tensor_opcodes(OpcodeTable& table) {
  table["ldmatrix.sync.aligned.m8n8.x4.shared.b16"] = {run_load_matrices<false>, Flow::kLanesMeet};
  table["ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"] = {run_load_matrices<true>,
                                                             Flow::kLanesMeet};
  table["mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"] = {run_multiply<BFloat16>,
                                                                  Flow::kLanesMeet};
  table["mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"] = {run_multiply<Float16>,
                                                                Flow::kLanesMeet};
  table["cvt.rn.bf16x2.f32"] = {run_round_pair<BFloat16>};
  table["cvt.rn.f16x2.f32"] = {run_round_pair<Float16>};
}

}  // namespace trainscope::ptx
