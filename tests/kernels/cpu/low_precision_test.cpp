// Conversion to and from the types of two bytes: to nearest even, NaN kept; as scalars and in the
// vectorised loops of Cast.
#include "kernels/api/low_precision.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/kernels/cpu/typed_runner.h"

namespace trainscope::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

template <typename T>
T of_bits(std::uint32_t bits) {
  T number;
  number.bits = static_cast<std::uint16_t>(bits);
  return number;
}

template <typename T>
std::uint32_t bits_of(float x) {
  return T(x).bits;
}

// The first pattern that is no finite number.
template <typename T>
constexpr std::uint32_t kInfinite = std::is_same_v<T, BFloat16> ? 0x7F80U : 0x7C00U;

// Counts, so that a failure does not print 65536 lines.
template <typename T>
int wrong_round_trips() {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const float number = of_bits<T>(bits);
    const bool is_nan = (bits & 0x7FFFU) > kInfinite<T>;
    const bool right =
        is_nan ? std::isnan(number) && std::isnan(float{T(number)}) : bits_of<T>(number) == bits;
    wrong += right ? 0 : 1;
  }
  return wrong;
}

// Between each number and the next one: the middle goes to the even one, what is beside it to the
// nearer one.
template <typename T>
int wrong_roundings(float sign) {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits + 1 < kInfinite<T>; ++bits) {
    const float low = of_bits<T>(bits);
    const float high = of_bits<T>(bits + 1);
    const float middle = low + (high - low) / 2.0F;
    const std::uint32_t flag = sign < 0.0F ? 0x8000U : 0U;
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    const bool right = bits_of<T>(sign * middle) == (even | flag) &&
                       bits_of<T>(sign * std::nextafter(middle, 0.0F)) == (bits | flag) &&
                       bits_of<T>(sign * std::nextafter(middle, kInfinity)) == ((bits + 1) | flag);
    wrong += right ? 0 : 1;
  }
  return wrong;
}

template <typename T>
std::vector<T> cast_by_kernel(const std::vector<float>& x) {
  const Shape shape{static_cast<std::int64_t>(x.size())};
  return call({.op = "Cast",
               .key = kDTypeOf<T>,
               .inputs = {Literal::of(shape, x)},
               .outputs = {{.dtype = kDTypeOf<T>, .shape = shape}}})[0]
      .template values<T>();
}

template <typename T>
int kernel_differences() {
  std::vector<float> x{kNaN, -kNaN, kInfinity, -kInfinity, 0.0F, -0.0F};
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 20011) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  const std::vector<T> y = cast_by_kernel<T>(x);
  int different = 0;
  for (std::size_t i = 0; i < x.size(); ++i) different += y[i].bits == T(x[i]).bits ? 0 : 1;
  return different;
}

}  // namespace

TEST_CASE("stored types: every number and NaN survives the way to float and back") {
  CHECK(wrong_round_trips<BFloat16>() == 0);
  CHECK(wrong_round_trips<Float16>() == 0);
}

TEST_CASE("stored types: floats go to the nearest number, of two to the even one") {
  CHECK(wrong_roundings<BFloat16>(1.0F) == 0);
  CHECK(wrong_roundings<BFloat16>(-1.0F) == 0);
  CHECK(wrong_roundings<Float16>(1.0F) == 0);
  CHECK(wrong_roundings<Float16>(-1.0F) == 0);
}

TEST_CASE("stored types: ends of the ranges") {
  CHECK(float{Float16(65504.0F)} == 65504.0F);
  CHECK(float{Float16(65519.0F)} == 65504.0F);
  CHECK(float{Float16(65520.0F)} == kInfinity);
  CHECK(float{Float16(-1e10F)} == -kInfinity);
  CHECK(float{Float16(0x1p-24F)} == 0x1p-24F);
  CHECK(Float16(0x1p-25F).bits == 0);
  CHECK(Float16(-0x1p-26F).bits == 0x8000);
  CHECK(float{BFloat16(std::numeric_limits<float>::max())} == kInfinity);
  CHECK(float{BFloat16(1e-40F)} == doctest::Approx(1e-40F).epsilon(0.01));
  CHECK(std::isnan(float{BFloat16(std::bit_cast<float>(0x7F800001U))}));
  CHECK(std::isnan(float{BFloat16(std::bit_cast<float>(0xFFFFFFFFU))}));
}

TEST_CASE("stored types: the Cast kernel converts as the scalar functions do") {
  CHECK(kernel_differences<BFloat16>() == 0);
  CHECK(kernel_differences<Float16>() == 0);
}

}  // namespace trainscope::cpu
