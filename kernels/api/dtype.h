// Element types of tensors, shared by every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainscope {

enum class DType : std::uint8_t { kF32, kF64, kI32, kI64, kBool };

inline constexpr DType kAllDTypes[] = {DType::kF32, DType::kF64, DType::kI32, DType::kI64,
                                       DType::kBool};

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
  }
  return 0;
}

// Short name used in printed graphs and messages: f32, f64, i32, i64, bool.
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
  }
  return "?";
}

constexpr bool is_float(DType t) { return t == DType::kF32 || t == DType::kF64; }

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

}  // namespace trainscope
