// Arithmetic and bits of integers, which wrap around.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "tests/cuda/interpreter/lanewise.h"

namespace trainscope::ptx {
namespace {

template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>>;

// Unsigned numbers as wide as int at least: C++ would widen narrower ones to a signed type.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};
struct Subtract {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
  }
};
struct MultiplyLow {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
  }
};
struct MultiplyHigh {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(Wide<T>(a) * Wide<T>(b) >> (8 * sizeof(T)));
  }
};
struct MultiplyWide {
  template <typename T>
  Wide<T> operator()(T a, T b) const {
    return static_cast<Wide<T>>(Wide<T>(a) * Wide<T>(b));
  }
};
struct MultiplyAdd {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b) + Wrapping<T>(c));
  }
};
// By zero a GPU gives all bits; the least number by -1 wraps around.
struct Divide {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Subtract()(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Remainder {
  template <typename T>
  T operator()(T a, T b) const {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Least {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Largest {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Negate {
  template <typename T>
  T operator()(T a) const {
    return Subtract()(T{0}, a);
  }
};
struct Absolute {
  template <typename T>
  T operator()(T a) const {
    return a < 0 ? Negate()(a) : a;
  }
};
struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct ExclusiveOr {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  bool operator()(bool a) const { return !a; }
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct ShiftLeft {
  template <typename T>
  T operator()(T a, std::uint32_t by) const {
    return by >= 8 * sizeof(T) ? T{0} : static_cast<T>(Wrapping<T>(a) << by);
  }
};
struct ShiftRight {
  template <typename T>
  T operator()(T a, std::uint32_t by) const {
    if (by < 8 * sizeof(T)) return static_cast<T>(a >> by);
    return a < 0 ? static_cast<T>(-1) : T{0};
  }
};
struct CountOnes {
  template <typename T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct CountLeadingZeros {
  template <typename T>
  std::uint32_t operator()(T a) const {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct ReverseBits {
  template <typename T>
  T operator()(T a) const {
    T reversed = 0;
    for (std::size_t i = 0; i < 8 * sizeof(T); ++i, a >>= 1) {
      reversed = static_cast<T>(reversed << 1 | (a & 1));
    }
    return reversed;
  }
};

// Four of the eight bytes of operands 1 and 2, each as a digit of operand 3 chooses: 0 to 7 the
// byte, 8 more for its sign in all bits.
struct ChooseBytes {
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t choices) const {
    const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
    std::uint32_t chosen = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint32_t choice = choices >> 4 * i & 15;
      std::uint32_t byte = static_cast<std::uint32_t>(bytes >> 8 * (choice & 7)) & 0xFF;
      if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
      chosen |= byte << 8 * i;
    }
    return chosen;
  }
};

// The lowest bits of operand 1 over those of operand 2, from bit operand 3 on, operand 4 of them.
template <typename T>
void run_insert_bits(Warp& warp, const Instruction& instruction, unsigned mask) {
  constexpr std::uint64_t kBits = 8 * sizeof(T);
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& inserted = warp.operand(instruction, 1);
  const Lanes& into = warp.operand(instruction, 2);
  const Lanes& begins = warp.operand(instruction, 3);
  const Lanes& lengths = warp.operand(instruction, 4);
  for_lanes(mask, [&](unsigned i) {
    const std::uint64_t begin = begins.words[i] & 0xFF;
    const std::uint64_t length = std::min(lengths.words[i] & 0xFF, kBits);
    T bits = length == kBits ? static_cast<T>(-1) : static_cast<T>((T{1} << length) - 1);
    bits = ShiftLeft()(bits, static_cast<std::uint32_t>(begin));
    const T moved = ShiftLeft()(from_word<T>(inserted.words[i]), static_cast<std::uint32_t>(begin));
    const T kept = from_word<T>(into.words[i]);
    to.words[i] = to_word(static_cast<T>((kept & ~bits) | (moved & bits)));
  });
}

// operand 0 = operand 1 * operand 2 + operand 3, of which the first and the last are twice as wide.
template <typename T>
void run_multiply_add_wide(Warp& warp, const Instruction& instruction, unsigned mask) {
  Lanes& to = warp.operand(instruction, 0);
  const Lanes& a = warp.operand(instruction, 1);
  const Lanes& b = warp.operand(instruction, 2);
  const Lanes& c = warp.operand(instruction, 3);
  for_lanes(mask, [&](unsigned i) {
    const Wide<T> product = MultiplyWide()(from_word<T>(a.words[i]), from_word<T>(b.words[i]));
    to.words[i] = to_word(Add()(product, from_word<Wide<T>>(c.words[i])));
  });
}

template <typename T>
void add_numbers(OpcodeTable& table, const std::string& type) {
  table["add." + type] = {run_binary<Add, T>};
  table["sub." + type] = {run_binary<Subtract, T>};
  table["mul.lo." + type] = {run_binary<MultiplyLow, T>};
  table["mul.hi." + type] = {run_binary<MultiplyHigh, T>};
  table["mad.lo." + type] = {run_ternary<MultiplyAdd, T>};
  table["div." + type] = {run_binary<Divide, T>};
  table["rem." + type] = {run_binary<Remainder, T>};
  table["min." + type] = {run_binary<Least, T>};
  table["max." + type] = {run_binary<Largest, T>};
  table["shr." + type] = {run_shift<ShiftRight, T>};
  if constexpr (sizeof(T) < 8) table["mul.wide." + type] = {run_binary<MultiplyWide, T>};
  if constexpr (std::is_signed_v<T>) {
    table["neg." + type] = {run_unary<Negate, T>};
    table["abs." + type] = {run_unary<Absolute, T>};
  }
}

template <typename T>
void add_bits(OpcodeTable& table, const std::string& type) {
  table["and." + type] = {run_binary<And, T>};
  table["or." + type] = {run_binary<Or, T>};
  table["xor." + type] = {run_binary<ExclusiveOr, T>};
  table["not." + type] = {run_unary<Not, T>};
}

template <typename T>
void add_words(OpcodeTable& table, const std::string& type) {
  add_bits<T>(table, type);
  table["shl." + type] = {run_shift<ShiftLeft, T>};
  table["shr." + type] = {run_shift<ShiftRight, T>};
}

}  // namespace

void add_integer_opcodes(OpcodeTable& table) {
  add_numbers<std::int16_t>(table, "s16");
  add_numbers<std::uint16_t>(table, "u16");
  add_numbers<std::int32_t>(table, "s32");
  add_numbers<std::uint32_t>(table, "u32");
  add_numbers<std::int64_t>(table, "s64");
  add_numbers<std::uint64_t>(table, "u64");
  add_words<std::uint16_t>(table, "b16");
  add_words<std::uint32_t>(table, "b32");
  add_words<std::uint64_t>(table, "b64");
  add_bits<bool>(table, "pred");
  table["bfi.b32"] = {run_insert_bits<std::uint32_t>};
  table["bfi.b64"] = {run_insert_bits<std::uint64_t>};
  table["prmt.b32"] = {run_ternary<ChooseBytes, std::uint32_t>};
  table["mad.wide.s32"] = {run_multiply_add_wide<std::int32_t>};
  table["mad.wide.u32"] = {run_multiply_add_wide<std::uint32_t>};
  table["popc.b32"] = {run_unary<CountOnes, std::uint32_t>};
  table["popc.b64"] = {run_unary<CountOnes, std::uint64_t>};
  table["clz.b32"] = {run_unary<CountLeadingZeros, std::uint32_t>};
  table["clz.b64"] = {run_unary<CountLeadingZeros, std::uint64_t>};
  table["brev.b32"] = {run_unary<ReverseBits, std::uint32_t>};
  table["brev.b64"] = {run_unary<ReverseBits, std::uint64_t>};
}

}  // namespace trainscope::ptx
