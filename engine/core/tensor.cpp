// Memory of host tensors and conversion between element types.
#include "engine/core/tensor.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "kernels/api/conversion.h"

namespace trainscope {
namespace {

constexpr std::size_t kAlignment = 64;

// Shapes may come from files: their product may not fit anything.
std::size_t checked_bytes(const TensorType& type) {
  std::size_t bytes = size_of(type.dtype);
  for (std::int64_t dim : type.shape.span()) {
    CHECK_INVARIANT(dim >= 0);
    if (dim == 0) return 0;
  }
  for (std::int64_t dim : type.shape.span()) {
    const bool overflow = __builtin_mul_overflow(bytes, static_cast<std::size_t>(dim), &bytes);
    require(!overflow && bytes <= std::size_t{1} << 62, ErrorCode::kOutOfMemory,
            "a tensor {} does not fit into memory", type_text(type));
  }
  return bytes;
}

// At least one byte, so that an empty tensor has a pointer too.
std::byte* allocate(const TensorType& type) {
  const std::size_t bytes = checked_bytes(type);
  const std::size_t rounded = (bytes / kAlignment + 1) * kAlignment;
  void* memory = std::aligned_alloc(kAlignment, rounded);
  require(memory != nullptr, ErrorCode::kOutOfMemory, "out of memory: a tensor {} needs {}",
          type_text(type), human_bytes(bytes));
  return static_cast<std::byte*>(memory);
}

// Calls f with a value of the C++ type of `dtype`; not for types that have no loops of their own.
template <typename F>
void visit(DType dtype, F f) {
  switch (dtype) {
    case DType::kF32:
      return f(float{});
    case DType::kF64:
      return f(double{});
    case DType::kI32:
      return f(std::int32_t{});
    case DType::kI64:
      return f(std::int64_t{});
    case DType::kBool:
      return f(bool{});
    case DType::kBF16:
      return f(BFloat16{});
    case DType::kF16:
      return f(Float16{});
    default:
      return;
  }
}

// The types whose pairs have loops of their own below.
bool is_common(DType dtype) {
  return is_float(dtype) || dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kBool;
}

// static_cast with an answer for what C++ leaves undefined: a float that is NaN or outside the
// integer's range becomes its least value, as x86 does it.
template <typename To, typename From>
To convert_element(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr To kLeast = std::numeric_limits<To>::min();
    // -kLeast is a power of two, so it is exact as a float; the greatest value is not.
    const bool fits = value >= static_cast<From>(kLeast) && value < -static_cast<From>(kLeast);
    return fits ? static_cast<To>(value) : kLeast;
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

void Tensor::Free::operator()(std::byte* p) const { std::free(p); }

Tensor::Tensor(TensorType type) : Tensor(unwritten(type)) { std::memset(data_.get(), 0, bytes()); }

Tensor::Tensor(TensorType type, std::byte* data) : type_(type), data_(data) {}

Tensor Tensor::unwritten(TensorType type) { return {type, allocate(type)}; }

Tensor::Tensor(const Tensor& other) : type_(other.type_), data_(allocate(other.type_)) {
  std::memcpy(data_.get(), other.data_.get(), bytes());
}

Tensor& Tensor::operator=(const Tensor& other) {
  if (this != &other) *this = Tensor(other);
  return *this;
}

Tensor Tensor::reshaped(Shape shape) && {
  CHECK_INVARIANT(shape.elements() == elements());
  type_.shape = shape;
  return std::move(*this);
}

Tensor convert(const Tensor& tensor, DType to) {
  Tensor result(TensorType{.dtype = to, .shape = tensor.shape()});
  if (!is_common(tensor.dtype()) || !is_common(to)) {
    // Only read.
    convert_elements({tensor.dtype(), const_cast<std::byte*>(tensor.data())}, {to, result.data()},
                     tensor.elements());
    return result;
  }
  visit(tensor.dtype(), [&](auto from_tag) {
    using From = decltype(from_tag);
    visit(to, [&](auto to_tag) {
      using To = decltype(to_tag);
      const auto from = tensor.values<From>();
      const auto into = result.values<To>();
      for (std::size_t i = 0; i < from.size(); ++i)
        into[i] = convert_element<To>(computed(from[i]));
    });
  });
  return result;
}

std::vector<std::int64_t> as_ints(const Tensor& tensor) {
  require(tensor.dtype() == DType::kI64 || tensor.dtype() == DType::kI32, ErrorCode::kBadInput,
          "expected a tensor of integers (i32 or i64), found {}", type_text(tensor.type()));
  if (tensor.dtype() == DType::kI64) {
    const auto values = tensor.values<std::int64_t>();
    return {values.begin(), values.end()};
  }
  const auto values = tensor.values<std::int32_t>();
  return {values.begin(), values.end()};
}

}  // namespace trainscope
