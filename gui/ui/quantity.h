// Numbers with units, as the window writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainscope::gui {

// What a number counts; each has one way to be written.
enum class Unit : std::uint8_t {
  kCount,         // 12 345
  kChange,        // of a count: +12, -3
  kMean,          // of counts: one decimal
  kPlain,         // four decimals, an exponent where they do not say what it is
  kMilliseconds,  // 1.2346 ms
  kNanoseconds,   // as ms, s or µs, whichever reads best
  kSeconds,       // as kNanoseconds
  kBytes,         // 1.5 MiB
  kByteCalls,     // bytes times calls that they wait: 1.5 MiB·calls
  kMegabytes,     // of 10^6, whatever their number: for columns
  kFlops,         // 12.3 MFLOP
  kMegaflops,     // as kMegabytes
  kGigaflopsPerSecond,
  kGigabytesPerSecond,
  kFlopsPerByte,
  kShare,  // of 1: 12.34 %
  kRate,   // per second
};

struct Quantity {
  double value = 0.0;
  Unit unit = Unit::kCount;
};

struct QuantityText {
  std::string number = {};
  std::string_view unit = {};

  std::string whole() const;  // with a narrow blank between: "1.5 MiB"
};

// "—" without a unit for what is not known (NaN).
QuantityText text_of(const Quantity& quantity);
// Half of the last digit that text_of() writes of it, in the quantity's own unit.
double rounding_of(const Quantity& quantity);

// "12 345": blanks between each three digits.
std::string grouped(std::int64_t number);

}  // namespace trainscope::gui
