// The two element types of two bytes: stored so, computed with as float. Conversions are plain
// integer arithmetic without branches, which compilers vectorise.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace trainscope {

// The number nearest to x, of two the even one; NaN stays NaN.
constexpr std::uint16_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const std::uint32_t quiet =
      (bits >> 16) | 0x40U;  // not the infinity that rounding may make of it
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded);
}
constexpr float from_bf16_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// The same for IEEE binary16: 65520 and more is infinite, below 2^-14 the steps are 2^-24.
constexpr std::uint16_t f16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const float size = std::bit_cast<float>(magnitude);
  // The exponent's bias goes from 127 to 15, 13 bits of the fraction are rounded away.
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  // Next to 0.5 a float's steps are 2^-24 too: the addition rounds.
  const std::uint32_t small =
      std::bit_cast<std::uint32_t>(size + 0.5F) - std::bit_cast<std::uint32_t>(0.5F);
  std::uint32_t result = magnitude < 0x38800000U ? small : normal;
  result = magnitude >= 0x477FF000U ? 0x7C00U : result;
  result = magnitude > 0x7F800000U ? 0x7E00U : result;
  return static_cast<std::uint16_t>(result | ((bits >> 16) & 0x8000U));
}
constexpr float from_f16_bits(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  // As the bits of a float the number is 2^112 times too small, denormal or not.
  const float number = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  const std::uint32_t unbounded = 0x7F800000U | (magnitude << 13);  // infinity and NaN
  const std::uint32_t value =
      magnitude >= 0x7C00U ? unbounded : std::bit_cast<std::uint32_t>(number);
  return std::bit_cast<float>(value | sign);
}

struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  constexpr explicit BFloat16(Number x) : bits(bf16_bits(static_cast<float>(x))) {}
  constexpr operator float() const { return from_bf16_bits(bits); }  // NOLINT: exact
};

struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  constexpr explicit Float16(Number x) : bits(f16_bits(static_cast<float>(x))) {}
  constexpr operator float() const { return from_f16_bits(bits); }  // NOLINT: exact
};

template <typename T>
inline constexpr bool kIsStoredOnly = std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>;

// What numbers of type T are computed with.
template <typename T>
using Computed = std::conditional_t<kIsStoredOnly<T>, float, T>;
template <typename T>
constexpr Computed<T> computed(T x) {
  return x;
}

}  // namespace trainscope
