// Elements pass through the widest type of their kind, a block at a time: loops for each type once
// as the source and once as the target, not for each pair.
#include "kernels/api/conversion.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <type_traits>

namespace trainscope {
namespace {

constexpr std::int64_t kBlock = 256;

template <class T>
inline constexpr bool kIsSmallInteger = std::is_same_v<T, Int4> || std::is_same_v<T, UInt4> ||
                                        std::is_same_v<T, Int2> || std::is_same_v<T, UInt2>;
template <class T>
inline constexpr bool kIsStorage = is_storage(kDTypeOf<T>);

// What holds every number of T exactly.
template <class T>
using Widest = std::conditional_t<
    std::is_same_v<T, std::uint64_t>, std::uint64_t,
    std::conditional_t<std::is_integral_v<T> || kIsSmallInteger<T>, std::int64_t, double>>;

template <class T>
Widest<T> widest(T x) {
  if constexpr (kIsStorage<T>) {
    return x.value();
  } else {
    return static_cast<Widest<T>>(computed(x));
  }
}

// The integer in [least, greatest] that is next to x on the way to 0.
template <std::integral T>
T nearest_integer(double x, T least, T greatest) {
  if (x != x) return 0;
  if (x <= static_cast<double>(least)) return least;
  // The greatest number of 64 bits is rounded up as a double: what reaches it is too large.
  if (x >= static_cast<double>(greatest)) return greatest;
  return static_cast<T>(x);
}

template <class T, class From>
T to_small_integer(From x) {
  T result;
  if constexpr (std::is_same_v<From, double>) {
    using Limits = std::numeric_limits<std::int64_t>;
    result.bits = T::bits_of(nearest_integer(x, Limits::min(), Limits::max()));
  } else {
    result.bits = T::bits_of(static_cast<std::int64_t>(x));
  }
  return result;
}

template <class T, class From>
T narrowed(From x, const ConversionRule& rule) {
  if constexpr (kIsSmallInteger<T>) {
    return to_small_integer<T>(x);
  } else if constexpr (std::is_same_v<T, Float8E8M0>) {
    T result;
    result.bits = T::bits_of(static_cast<double>(x), rule.overflow, rule.rounding);
    return result;
  } else if constexpr (kIsStorage<T>) {
    T result;
    result.bits = T::bits_of(static_cast<double>(x), rule.overflow);
    return result;
  } else if constexpr (std::is_same_v<T, bool>) {
    return x != From{};
  } else if constexpr (std::is_integral_v<T> && std::is_same_v<From, double>) {
    return nearest_integer(x, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
  } else {
    return static_cast<T>(x);
  }
}

// Calls f with a null pointer to the element type.
template <class F>
void with_any_dtype(DType dtype, F&& f) {
  switch (dtype) {
#define DTYPE(enumerator, type, ...) \
  case DType::enumerator:            \
    return f(static_cast<type*>(nullptr));
#include "kernels/api/dtypes.def"
#undef DTYPE
  }
}

template <class Wide>
void write_block(const std::array<Wide, kBlock>& wide, const ElementsOf& y, std::int64_t at,
                 std::int64_t count, const ConversionRule& rule) {
  with_any_dtype(y.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T* to = static_cast<T*>(y.data) + at;
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = narrowed<T>(wide[static_cast<std::size_t>(i)], rule);
    }
  });
}

}  // namespace

void convert_elements(const ElementsOf& x, const ElementsOf& y, std::int64_t count,
                      const ConversionRule& rule) {
  with_any_dtype(x.dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const T* from = static_cast<const T*>(x.data);
    std::array<Widest<T>, kBlock> wide;
    for (std::int64_t at = 0; at < count; at += kBlock) {
      const std::int64_t size = std::min(kBlock, count - at);
      for (std::int64_t i = 0; i < size; ++i) {
        wide[static_cast<std::size_t>(i)] = widest(from[at + i]);
      }
      write_block(wide, y, at, size, rule);
    }
  });
}

}  // namespace trainscope
