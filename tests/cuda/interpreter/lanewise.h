// Instructions that compute each lane's result from that lane's operands alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "tests/cuda/interpreter/opcodes.h"
#include "tests/cuda/interpreter/warp.h"

namespace trainscope::ptx {

// The low bits of a register as a T, and a T as a register's bits: the others are zero.
template <typename T>
T from_word(std::uint64_t word) {
  if constexpr (std::is_same_v<T, bool>) return word != 0;
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <typename T>
std::uint64_t to_word(T value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

// F on operands of type T: operand 0 = F()(operand 1, ...).
template <typename F, typename T>
void run_unary(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& a = warp.operand(instruction, 1);
  for_lanes(mask, [&](unsigned i) { to.words[i] = to_word(F()(from_word<T>(a.words[i]))); });
}
template <typename F, typename T>
void run_binary(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& a = warp.operand(instruction, 1);
  const Lanes& b = warp.operand(instruction, 2);
  for_lanes(mask, [&](unsigned i) {
    to.words[i] = to_word(F()(from_word<T>(a.words[i]), from_word<T>(b.words[i])));
  });
}
template <typename F, typename T>
void run_ternary(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& a = warp.operand(instruction, 1);
  const Lanes& b = warp.operand(instruction, 2);
  const Lanes& c = warp.operand(instruction, 3);
  for_lanes(mask, [&](unsigned i) {
    to.words[i] =
        to_word(F()(from_word<T>(a.words[i]), from_word<T>(b.words[i]), from_word<T>(c.words[i])));
  });
}
// Shifts by a number of 32 bits.
template <typename F, typename T>
void run_shift(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& a = warp.operand(instruction, 1);
  const Lanes& b = warp.operand(instruction, 2);
  for_lanes(mask, [&](unsigned i) {
    to.words[i] = to_word(F()(from_word<T>(a.words[i]), from_word<std::uint32_t>(b.words[i])));
  });
}

}  // namespace trainscope::ptx
