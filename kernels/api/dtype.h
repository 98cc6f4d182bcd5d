// Element types of tensors, shared by every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/api/low_precision.h"

namespace trainscope {

enum class DType : std::uint8_t { kF32, kF64, kI32, kI64, kBool, kBF16, kF16 };

inline constexpr DType kAllDTypes[] = {DType::kF32,  DType::kF64,  DType::kI32, DType::kI64,
                                       DType::kBool, DType::kBF16, DType::kF16};

// Bytes of one element.
constexpr std::size_t size_of(DType t) {
  switch (t) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kBool:
      return 1;
    case DType::kBF16:
    case DType::kF16:
      return 2;
  }
  return 0;
}

// Short name used in printed graphs and messages: f32, f64, i32, i64, bool, bf16, f16.
constexpr std::string_view name_of(DType t) {
  switch (t) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kBool:
      return "bool";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
  }
  return "?";
}

// Stored in two bytes, computed with as float.
constexpr bool is_stored_only(DType t) { return t == DType::kBF16 || t == DType::kF16; }
constexpr bool is_float(DType t) {
  return t == DType::kF32 || t == DType::kF64 || is_stored_only(t);
}
// What numbers of this type are computed with, and what sums and statistics of them are kept in.
constexpr DType computed(DType t) { return is_stored_only(t) ? DType::kF32 : t; }

template <typename T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "no DType for this type");
  return DType::kF32;
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;
template <>
inline constexpr DType kDTypeOf<BFloat16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<Float16> = DType::kF16;

}  // namespace trainscope
