// The bits of integers, with numpy broadcasting.
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "kernels/cuda/pointwise/elementwise.h"
#include "kernels/cuda/support/types.h"

namespace trainscope::cuda {
namespace {

struct AndBits {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};

struct OrBits {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};

struct XorBits {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

struct NotBits {
  template <class T>
  __device__ T operator()(T x) const {
    return static_cast<T>(~x);
  }
};

// Whether all bits of T leave it when they move by `places`.
template <class T>
__device__ bool beyond(T places) {
  constexpr int kBits = std::numeric_limits<std::make_unsigned_t<T>>::digits;
  return std::cmp_less(places, 0) || std::cmp_greater_equal(places, kBits);
}

// In the unsigned type, where overflow is defined.
struct UpBits {
  template <class T>
  __device__ T operator()(T a, T b) const {
    using Unsigned = std::make_unsigned_t<T>;
    const T places = beyond(b) ? T{0} : b;
    const T moved = static_cast<T>(static_cast<Unsigned>(a) << places);
    return beyond(b) ? T{0} : moved;
  }
};

struct DownBits {
  template <class T>
  __device__ T operator()(T a, T b) const {
    const T places = beyond(b) ? T{0} : b;
    const T sign = std::cmp_less(a, 0) ? static_cast<T>(-1) : T{0};
    return beyond(b) ? sign : static_cast<T>(a >> places);
  }
};

template <class T, class F>
Kernel two_inputs(std::string_view name) {
  return {.name = name, .prepare = prepare_broadcast, .run = run_binary<T, T, F>};
}

}  // namespace

void add_bitwise(KernelTable& table) {
  for_types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
            std::int64_t, std::uint64_t>([&](auto* type) {
    using T = Pointee<decltype(type)>;
    constexpr DType dtype = kDTypeOf<T>;
    table.add("BitwiseAnd", dtype, two_inputs<T, AndBits>("bitwise_and.cuda"));
    table.add("BitwiseOr", dtype, two_inputs<T, OrBits>("bitwise_or.cuda"));
    table.add("BitwiseXor", dtype, two_inputs<T, XorBits>("bitwise_xor.cuda"));
    table.add("BitwiseNot", dtype, {.name = "bitwise_not.cuda", .run = run_unary<T, NotBits>});
    table.add("ShiftLeft", dtype, two_inputs<T, UpBits>("shift_left.cuda"));
    table.add("ShiftRight", dtype, two_inputs<T, DownBits>("shift_right.cuda"));
  });
}

}  // namespace trainscope::cuda
