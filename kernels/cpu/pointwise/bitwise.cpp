// The bits of integers, with numpy broadcasting.
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cpu/pointwise/elementwise.h"

namespace trainscope::cpu {
namespace {

struct AndBits {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};

struct OrBits {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};

struct XorBits {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

struct NotBits {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T x) {
    return static_cast<T>(~x);
  }
};

// Whether all bits of T leave it when they move by `places`.
template <class T>
bool beyond(T places) {
  constexpr int kBits = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  return std::cmp_less(places, 0) || std::cmp_greater_equal(places, kBits);
}

// In the unsigned type, where overflow is defined.
struct UpBits {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    using Unsigned = std::make_unsigned_t<T>;
    const T places = beyond(b) ? T{0} : b;
    const T moved = static_cast<T>(static_cast<Unsigned>(a) << places);
    return beyond(b) ? T{0} : moved;
  }
};

struct DownBits {
  static constexpr std::int64_t kGrain = kElementGrain;
  template <class T>
  static T apply(T a, T b) {
    const T places = beyond(b) ? T{0} : b;
    const T sign = std::cmp_less(a, 0) ? static_cast<T>(-1) : T{0};
    return beyond(b) ? sign : static_cast<T>(a >> places);
  }
};

template <class T, class F>
Kernel two_inputs(std::string_view name) {
  return {.name = name, .prepare = prepare_broadcast, .run = run_binary<T, T, F>};
}

template <class T>
void add_for(KernelTable& table) {
  constexpr DType dtype = kDTypeOf<T>;
  table.add("BitwiseAnd", dtype, two_inputs<T, AndBits>("bitwise_and"));
  table.add("BitwiseOr", dtype, two_inputs<T, OrBits>("bitwise_or"));
  table.add("BitwiseXor", dtype, two_inputs<T, XorBits>("bitwise_xor"));
  table.add("BitwiseNot", dtype, {.name = "bitwise_not", .run = run_unary<T, NotBits>});
  table.add("ShiftLeft", dtype, two_inputs<T, UpBits>("shift_left"));
  table.add("ShiftRight", dtype, two_inputs<T, DownBits>("shift_right"));
}

}  // namespace

void add_bitwise(KernelTable& table) {
  add_for<std::int8_t>(table);
  add_for<std::uint8_t>(table);
  add_for<std::int16_t>(table);
  add_for<std::uint16_t>(table);
  add_for<std::int32_t>(table);
  add_for<std::uint32_t>(table);
  add_for<std::int64_t>(table);
  add_for<std::uint64_t>(table);
}

}  // namespace trainscope::cpu
