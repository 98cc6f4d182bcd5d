// Element types of tensors, shared by every layer: one row of dtypes.def for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/api/low_precision.h"

namespace trainscope {

enum class DType : std::uint8_t {
#define DTYPE(enumerator, ...) enumerator,
#include "kernels/api/dtypes.def"
#undef DTYPE
};

enum class DTypeKind : std::uint8_t {
  kFloat,        // f32 and f64
  kStoredFloat,  // bf16 and f16: stored in two bytes, computed with as f32
  kInteger,      // of 8 to 64 bits, with and without a sign
  kBool,
  kStorage,  // floats of 8 and 4 bits, integers of 4 and 2: read, written, moved and converted only
};

// What is known of a type at compile time of this program.
struct DTypeRow {
  std::string_view name;  // in printed graphs and messages
  DTypeKind kind = DTypeKind::kFloat;
  int bytes = 0;                           // of one element in memory
  int file_bits = 0;                       // of one element in an ONNX file
  int onnx_number = 0;                     // TensorProto.DataType
  std::string_view safetensors_name = {};  // empty: that format has no such type
};

inline constexpr DType kAllDTypes[] = {
#define DTYPE(enumerator, ...) DType::enumerator,
#include "kernels/api/dtypes.def"
#undef DTYPE
};

inline constexpr DTypeRow kDTypeRows[] = {
#define DTYPE(enumerator, type, name, kind, bytes, bits, number, safetensors) \
  {name, DTypeKind::kind, bytes, bits, number, safetensors},
#include "kernels/api/dtypes.def"
#undef DTYPE
};

constexpr const DTypeRow& row_of(DType t) { return kDTypeRows[static_cast<std::size_t>(t)]; }
constexpr std::string_view name_of(DType t) { return row_of(t).name; }
// Bytes of one element in memory.
constexpr std::size_t size_of(DType t) { return static_cast<std::size_t>(row_of(t).bytes); }

constexpr bool is_stored_only(DType t) { return row_of(t).kind == DTypeKind::kStoredFloat; }
constexpr bool is_storage(DType t) { return row_of(t).kind == DTypeKind::kStorage; }
constexpr bool is_float(DType t) {
  return row_of(t).kind == DTypeKind::kFloat || is_stored_only(t);
}
constexpr bool is_integer_type(DType t) { return row_of(t).kind == DTypeKind::kInteger; }
// What ops compute with: neither truth values nor what is only stored.
constexpr bool is_number(DType t) { return is_float(t) || is_integer_type(t); }
// Integers other than i32 and i64 that every i64 kernel computes exactly.
constexpr bool is_narrow_integer(DType t) {
  return is_integer_type(t) && t != DType::kI32 && size_of(t) <= 4;
}
// What numbers of this type are computed with, and what sums and statistics of them are kept in.
constexpr DType computed(DType t) { return is_stored_only(t) ? DType::kF32 : t; }

// The types that are only stored: kernels/api/storage_types.h.
struct Float8E4M3FN;
struct Float8E4M3FNUZ;
struct Float8E5M2;
struct Float8E5M2FNUZ;
struct Float8E8M0;
struct Float4E2M1;
struct Int4;
struct UInt4;
struct Int2;
struct UInt2;

template <typename T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "no DType for this type");
  return DType::kF32;
}();
#define DTYPE(enumerator, type, ...) \
  template <>                        \
  inline constexpr DType kDTypeOf<type> = DType::enumerator;
#include "kernels/api/dtypes.def"
#undef DTYPE

}  // namespace trainscope
