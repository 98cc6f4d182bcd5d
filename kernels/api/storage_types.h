// The element types that are only stored: floats of 8 and 4 bits, integers of 4 and 2. In memory
// each fills a byte, of which files pack the low bits. Floats are read exactly and rounded to the
// nearest, of two to the even one; integers keep their low bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/api/dtype.h"

namespace trainscope {

// What a conversion to a float of 8 bits does beyond its greatest number.
enum class Overflow : std::uint8_t {
  kSaturate,  // the greatest number
  kSpecial,   // infinity, or NaN where the type has no infinity
};
// How a float of 8 bits without a fraction (f8e8m0) is rounded.
enum class PowerRounding : std::uint8_t { kUp, kDown, kNearest };

// --- Floats --------------------------------------------------------------------------------------
// One bit of sign, then the exponent and the fraction.
struct SmallFloatFormat {
  int exponent_bits = 0;
  int fraction_bits = 0;
  int bias = 0;
  std::uint8_t greatest = 0;       // bits of the greatest number
  std::uint8_t beyond = 0;         // bits of what is more: infinity, NaN or the greatest number
  std::uint8_t nan = 0;            // bits of NaN; 0: the type has none
  bool minus_zero_is_nan = false;  // the only NaN, and there is one zero
  bool has_infinity = false;

  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr std::uint8_t sign() const { return static_cast<std::uint8_t>(1U << (bits() - 1)); }
};

inline double read_small_float(const SmallFloatFormat& format, std::uint8_t bits) {
  const unsigned magnitude = bits & (format.sign() - 1U);
  const bool negative = (bits & format.sign()) != 0;
  if (format.minus_zero_is_nan && negative && magnitude == 0) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (magnitude > format.greatest) {
    const bool infinite = format.has_infinity && magnitude == format.beyond;
    const double special = infinite ? std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::quiet_NaN();
    return negative ? -special : special;
  }
  const auto exponent = static_cast<int>(magnitude >> format.fraction_bits);
  const auto fraction = static_cast<int>(magnitude & ((1U << format.fraction_bits) - 1U));
  const int digits = exponent == 0 ? fraction : fraction + (1 << format.fraction_bits);
  const int power = (exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits;
  const double value = std::ldexp(static_cast<double>(digits), power);
  return negative ? -value : value;
}

// The bits without a sign of |x|, which is a number: more than `greatest` where it is too large.
inline unsigned small_float_magnitude(const SmallFloatFormat& format, double size) {
  if (size >= 0x1p20) return 0xFF;
  if (size == 0.0) return 0;
  int exponent = 0;
  std::frexp(size, &exponent);  // size = f * 2^exponent, f in [0.5, 1)
  const int least = 1 - format.bias;
  const bool normal = exponent - 1 >= least;
  const int step = (normal ? exponent - 1 : least) - format.fraction_bits;
  const auto digits = static_cast<unsigned>(std::nearbyint(std::ldexp(size, -step)));
  if (!normal) return digits;
  const auto lifted = static_cast<unsigned>(exponent - 1 + format.bias) << format.fraction_bits;
  return lifted + digits - (1U << format.fraction_bits);
}

inline std::uint8_t small_float_bits(const SmallFloatFormat& format, double x, Overflow overflow) {
  if (x != x) return format.nan;
  unsigned magnitude = small_float_magnitude(format, std::fabs(x));
  if (magnitude > format.greatest) {
    magnitude = overflow == Overflow::kSaturate ? format.greatest : format.beyond;
  }
  if (format.minus_zero_is_nan && (magnitude == 0 || magnitude > format.greatest)) {
    return static_cast<std::uint8_t>(magnitude);
  }
  return static_cast<std::uint8_t>(magnitude | (std::signbit(x) ? format.sign() : 0U));
}

inline constexpr SmallFloatFormat kE4M3FN = {.exponent_bits = 4,
                                             .fraction_bits = 3,
                                             .bias = 7,
                                             .greatest = 0x7E,
                                             .beyond = 0x7F,
                                             .nan = 0x7F};
inline constexpr SmallFloatFormat kE4M3FNUZ = {.exponent_bits = 4,
                                               .fraction_bits = 3,
                                               .bias = 8,
                                               .greatest = 0x7F,
                                               .beyond = 0x80,
                                               .nan = 0x80,
                                               .minus_zero_is_nan = true};
inline constexpr SmallFloatFormat kE5M2 = {.exponent_bits = 5,
                                           .fraction_bits = 2,
                                           .bias = 15,
                                           .greatest = 0x7B,
                                           .beyond = 0x7C,
                                           .nan = 0x7E,
                                           .has_infinity = true};
inline constexpr SmallFloatFormat kE5M2FNUZ = {.exponent_bits = 5,
                                               .fraction_bits = 2,
                                               .bias = 16,
                                               .greatest = 0x7F,
                                               .beyond = 0x80,
                                               .nan = 0x80,
                                               .minus_zero_is_nan = true};
// Without infinity and NaN: what is more becomes the greatest number, NaN becomes -0.
inline constexpr SmallFloatFormat kE2M1 = {
    .exponent_bits = 2, .fraction_bits = 1, .bias = 1, .greatest = 0x7, .beyond = 0x7, .nan = 0x8};

template <const SmallFloatFormat& kFormat>
struct SmallFloat {
  std::uint8_t bits = 0;

  static std::uint8_t bits_of(double x, Overflow overflow) {
    return small_float_bits(kFormat, x, overflow);
  }
  double value() const { return read_small_float(kFormat, bits); }
};
struct Float8E4M3FN : SmallFloat<kE4M3FN> {};
struct Float8E4M3FNUZ : SmallFloat<kE4M3FNUZ> {};
struct Float8E5M2 : SmallFloat<kE5M2> {};
struct Float8E5M2FNUZ : SmallFloat<kE5M2FNUZ> {};
struct Float4E2M1 : SmallFloat<kE2M1> {};

// A power of two, 2^(bits - 127): the exponent of a float without its sign.
struct Float8E8M0 {
  std::uint8_t bits = 0;

  static std::uint8_t bits_of(double x, Overflow overflow, PowerRounding rounding) {
    constexpr unsigned kNaN = 0xFF;
    const auto whole = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    const unsigned exponent = (whole >> 23) & 0xFFU;
    const unsigned fraction = whole & 0x7FFFFFU;
    if (exponent == kNaN) return kNaN;
    constexpr unsigned kHalf = 0x400000U;
    const bool nearer = fraction > kHalf || (fraction == kHalf && exponent > 0);
    const bool up = rounding == PowerRounding::kUp ? fraction != 0
                                                   : rounding == PowerRounding::kNearest && nearer;
    const bool over = exponent + 1 == kNaN && overflow == Overflow::kSaturate;
    return static_cast<std::uint8_t>(exponent + (up && !over ? 1U : 0U));
  }
  double value() const {
    return bits == 0xFF ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127);
  }
};

// --- Integers ------------------------------------------------------------------------------------
// In memory with the sign of the number: a byte that holds it.
template <int kBits, bool kSigned>
struct SmallInteger {
  std::uint8_t bits = 0;

  static constexpr std::int64_t kLeast = kSigned ? -(1 << (kBits - 1)) : 0;
  static constexpr std::int64_t kGreatest = (1 << (kSigned ? kBits - 1 : kBits)) - 1;
  // Of the low bits of a number, as an integer conversion keeps them.
  static std::uint8_t bits_of(std::int64_t number) {
    const auto low = static_cast<unsigned>(number) & ((1U << kBits) - 1U);
    const bool negative = kSigned && (low >> (kBits - 1)) != 0;
    return static_cast<std::uint8_t>(negative ? low | (0xFFU << kBits) : low);
  }
  std::int64_t value() const {
    return kSigned ? std::int64_t{static_cast<std::int8_t>(bits)} : std::int64_t{bits};
  }
};
struct Int4 : SmallInteger<4, true> {};
struct UInt4 : SmallInteger<4, false> {};
struct Int2 : SmallInteger<2, true> {};
struct UInt2 : SmallInteger<2, false> {};

}  // namespace trainscope
