// Numbers with their units.
#include "gui/ui/quantity.h"

#include <doctest/doctest.h>

#include <cmath>

namespace trainscope::gui {
namespace {

std::string text(double value, Unit unit) { return text_of({value, unit}).whole(); }

TEST_CASE("text_of: each unit has one way") {
  CHECK(text(12345.0, Unit::kCount) == "12 345");
  CHECK(text(-1234567.0, Unit::kCount) == "-1 234 567");
  CHECK(text(999.0, Unit::kCount) == "999");
  CHECK(text(1234.0, Unit::kChange) == "+1 234");
  CHECK(text(-17.0, Unit::kChange) == "-17");
  CHECK(text(0.0, Unit::kChange) == "0");
  CHECK(text(1.23456, Unit::kMilliseconds) == "1.235 ms");
  CHECK(text(512.0, Unit::kBytes) == "512 B");
  CHECK(text(1536.0, Unit::kBytes) == "1.5 KiB");
  CHECK(text(3.0 * 1024.0 * 1024.0 * 1024.0, Unit::kBytes) == "3.0 GiB");
  CHECK(text(1536.0, Unit::kByteCalls) == "1.5 KiB·calls");
  CHECK(text(100.0, Unit::kByteCalls) == "100 B·calls");
  CHECK(text(0.1234, Unit::kShare) == "12.34 %");
  CHECK(text(2.5e6, Unit::kFlops) == "2.50 MFLOP");
  CHECK(text(2.5e9, Unit::kMegaflops) == "2500.00 MFLOP");
  CHECK(text(1500.0, Unit::kNanoseconds) == "1.50 µs");
  CHECK(text(17.0, Unit::kNanoseconds) == "17 ns");
  CHECK(text(std::nan(""), Unit::kBytes) == "—");
}

TEST_CASE("text_of: plain numbers that four decimals do not tell have an exponent") {
  CHECK(text(2.0742, Unit::kPlain) == "2.0742");
  CHECK(text(0.0, Unit::kPlain) == "0.0000");
  CHECK(text(0.00012, Unit::kPlain) == "1.200e-04");
  CHECK(text(-1.977105332476779e31, Unit::kPlain) == "-1.977e+31");
  CHECK(text(999999.0, Unit::kPlain) == "999999.0000");
  CHECK(rounding_of({0.00012345678, Unit::kPlain}) == doctest::Approx(5e-8));
  CHECK(rounding_of({2.0742, Unit::kPlain}) == doctest::Approx(5e-5));
}

TEST_CASE("rounding_of: what the digits leave out is no more than this") {
  for (const double value : {0.0, 1.0, 17.3, 999.0, 1024.0, 123456.0, 9.87654e8}) {
    for (const Unit unit : {Unit::kCount, Unit::kChange, Unit::kMilliseconds, Unit::kBytes,
                            Unit::kFlops, Unit::kNanoseconds, Unit::kMegabytes}) {
      CHECK(rounding_of({value, unit}) > 0.0);
    }
  }
  CHECK(rounding_of({1536.0, Unit::kBytes}) == doctest::Approx(51.2));
  CHECK(rounding_of({0.5, Unit::kShare}) == doctest::Approx(0.00005));
}

}  // namespace
}  // namespace trainscope::gui
