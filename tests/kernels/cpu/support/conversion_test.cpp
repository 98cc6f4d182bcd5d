// Conversion of elements between any two types: each bit pattern of the small ones, rounding at
// ties, what is too large.
#include "kernels/api/conversion.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace trainscope {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::uint8_t bits_of(double x, DType to, const ConversionRule& rule = {}) {
  std::uint8_t bits = 0xAA;
  convert_elements({DType::kF64, &x}, {to, &bits}, 1, rule);
  return bits;
}

double value_of(std::uint8_t bits, DType from) {
  double value = 0.0;
  convert_elements({from, &bits}, {DType::kF64, &value}, 1);
  return value;
}

// What a conversion from f64 and back makes of x.
double rounded(double x, DType type, const ConversionRule& rule = {}) {
  return value_of(bits_of(x, type, rule), type);
}

constexpr ConversionRule kSpecial{.overflow = Overflow::kSpecial};

template <class From, class To>
To converted(From x) {
  To y{};
  convert_elements({kDTypeOf<From>, &x}, {kDTypeOf<To>, &y}, 1);
  return y;
}

}  // namespace

TEST_CASE("conversion: each bit pattern of a small type is read and written as itself") {
  for (DType type : kAllDTypes) {
    if (!is_storage(type)) continue;
    INFO(name_of(type));
    const int patterns = 1 << row_of(type).file_bits;
    for (int i = 0; i < patterns; ++i) {
      auto bits = static_cast<std::uint8_t>(i);
      const bool has_sign = type == DType::kI4 || type == DType::kI2;
      if (has_sign && i >= patterns / 2) bits = static_cast<std::uint8_t>(i - patterns);
      const double value = value_of(bits, type);
      // ONNX rounds 2^-127, which is no normal f32, like any other fraction of 2^-126.
      if (type == DType::kF8E8M0 && i == 0) continue;
      if (std::isnan(value)) {
        CHECK(std::isnan(rounded(value, type)));
      } else {
        CHECK(bits_of(value, type, kSpecial) == bits);
      }
    }
  }
}

TEST_CASE("conversion: the greatest numbers, and those next to zero") {
  CHECK(value_of(0x7E, DType::kF8E4M3FN) == 448.0);
  CHECK(value_of(0x01, DType::kF8E4M3FN) == 0x1p-9);
  CHECK(value_of(0x7F, DType::kF8E4M3FNUZ) == 240.0);
  CHECK(value_of(0x01, DType::kF8E4M3FNUZ) == 0x1p-10);
  CHECK(value_of(0x7B, DType::kF8E5M2) == 57344.0);
  CHECK(value_of(0xFC, DType::kF8E5M2) == -kInfinity);
  CHECK(value_of(0x7F, DType::kF8E5M2FNUZ) == 57344.0);
  CHECK(value_of(0x7, DType::kF4E2M1) == 6.0);
  CHECK(value_of(0xF, DType::kF4E2M1) == -6.0);
  CHECK(value_of(0x1, DType::kF4E2M1) == 0.5);
  CHECK(value_of(0x7F, DType::kF8E8M0) == 1.0);
}

TEST_CASE("conversion: floats go to the nearest, of two to the even one") {
  // Between 1 and 1.125, with three bits of fraction.
  CHECK(rounded(1.0625, DType::kF8E4M3FN) == 1.0);
  CHECK(rounded(std::nextafter(1.0625, 2.0), DType::kF8E4M3FN) == 1.125);
  CHECK(rounded(1.1875, DType::kF8E4M3FN) == 1.25);
  CHECK(rounded(-1.0625, DType::kF8E4M3FN) == -1.0);
  CHECK(rounded(1.125, DType::kF8E5M2) == 1.0);
  CHECK(rounded(1.375, DType::kF8E5M2) == 1.5);
  CHECK(rounded(0x1p-10, DType::kF8E4M3FN) == 0.0);  // half the least
  CHECK(rounded(0x1.8p-9, DType::kF8E4M3FN) == 0x1p-8);
  CHECK(rounded(2.5, DType::kF4E2M1) == 2.0);
  CHECK(rounded(5.0, DType::kF4E2M1) == 4.0);
  CHECK(rounded(1.999, DType::kF8E4M3FN) == 2.0);  // into the next exponent
  // Between the last normal number's half and the first: no step is lost.
  CHECK(rounded(0x1.fp-7, DType::kF8E4M3FN) == 0x1p-6);
}

TEST_CASE("conversion: what is too large, infinite or no number") {
  struct Case {
    DType type;
    double greatest;
    double special;  // what is beyond becomes this without saturation
  };
  for (const Case& c : {Case{DType::kF8E4M3FN, 448.0, kNaN}, Case{DType::kF8E4M3FNUZ, 240.0, kNaN},
                        Case{DType::kF8E5M2, 57344.0, kInfinity},
                        Case{DType::kF8E5M2FNUZ, 57344.0, kNaN}, Case{DType::kF4E2M1, 6.0, 6.0}}) {
    INFO(name_of(c.type));
    for (double sign : {1.0, -1.0}) {
      for (double beyond : {2.0 * c.greatest, 1e300, kInfinity}) {
        CHECK(rounded(sign * beyond, c.type) == sign * c.greatest);
        const double special = rounded(sign * beyond, c.type, kSpecial);
        CHECK((std::isnan(c.special) ? std::isnan(special) : special == sign * c.special));
      }
    }
    if (c.type != DType::kF4E2M1) CHECK(std::isnan(rounded(kNaN, c.type)));
  }
  CHECK(rounded(464.0, DType::kF8E4M3FN, kSpecial) == 448.0);  // a tie with what does not exist
  CHECK(std::isnan(rounded(464.5, DType::kF8E4M3FN, kSpecial)));
}

TEST_CASE("conversion: there is one zero in the types whose -0 is no number") {
  CHECK(bits_of(-0.0, DType::kF8E4M3FNUZ) == 0);
  CHECK(bits_of(-0x1p-20, DType::kF8E5M2FNUZ) == 0);
  CHECK(bits_of(-0.0, DType::kF8E4M3FN) == 0x80);
}

TEST_CASE("conversion: powers of two are rounded as asked") {
  const auto with = [](PowerRounding rounding) -> ConversionRule { return {.rounding = rounding}; };
  CHECK(rounded(1.0, DType::kF8E8M0) == 1.0);
  CHECK(rounded(1.25, DType::kF8E8M0) == 2.0);
  CHECK(rounded(1.25, DType::kF8E8M0, with(PowerRounding::kDown)) == 1.0);
  CHECK(rounded(1.25, DType::kF8E8M0, with(PowerRounding::kNearest)) == 1.0);
  CHECK(rounded(1.75, DType::kF8E8M0, with(PowerRounding::kNearest)) == 2.0);
  CHECK(rounded(0x1.8p127, DType::kF8E8M0) == 0x1p127);
  CHECK(std::isnan(rounded(0x1.8p127, DType::kF8E8M0, kSpecial)));
}

TEST_CASE("conversion: integers keep their low bits, floats stop at the limits") {
  CHECK(converted<std::int64_t, std::uint8_t>(300) == 44);
  CHECK(converted<std::int32_t, std::int8_t>(200) == -56);
  CHECK(converted<std::int8_t, std::uint64_t>(-1) == ~std::uint64_t{0});
  CHECK(converted<std::uint64_t, double>(~std::uint64_t{0}) == 0x1p64);
  CHECK(converted<float, std::uint8_t>(300.0F) == 255);
  CHECK(converted<float, std::uint8_t>(-1.5F) == 0);
  CHECK(converted<float, std::int8_t>(-1.5F) == -1);
  CHECK(converted<double, std::uint64_t>(1e30) == ~std::uint64_t{0});
  CHECK(converted<double, std::int16_t>(kNaN) == 0);
  CHECK(converted<std::uint16_t, bool>(256));
  CHECK(static_cast<std::int8_t>(bits_of(9.9, DType::kI4)) == -7);
  const std::int32_t number = 9;
  std::uint8_t bits = 0;
  convert_elements({DType::kI32, const_cast<std::int32_t*>(&number)}, {DType::kI4, &bits}, 1);
  CHECK(static_cast<std::int8_t>(bits) == -7);
}

TEST_CASE("conversion: more elements than a block") {
  std::vector<std::uint16_t> from(1000);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint16_t>(i * 60);
  std::vector<float> to(from.size(), -1.0F);
  convert_elements({DType::kU16, from.data()}, {DType::kF32, to.data()}, 1000);
  for (std::size_t i = 0; i < from.size(); ++i) CHECK(to[i] == static_cast<float>(from[i]));
}

}  // namespace trainscope
