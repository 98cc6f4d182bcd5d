// Units and digits.
#include "gui/ui/quantity.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace trainscope::gui {
namespace {

struct Step {
  double size = 1.0;  // of one of these in the quantity's unit
  std::string_view name = {};
};

constexpr Step kByteSteps[] = {{1.0, "B"},
                               {1024.0, "KiB"},
                               {1048576.0, "MiB"},
                               {1073741824.0, "GiB"},
                               {1099511627776.0, "TiB"}};
constexpr Step kByteCallSteps[] = {{1.0, "B·calls"},
                                   {1024.0, "KiB·calls"},
                                   {1048576.0, "MiB·calls"},
                                   {1073741824.0, "GiB·calls"},
                                   {1099511627776.0, "TiB·calls"}};
constexpr Step kFlopSteps[] = {{1.0, "FLOP"},  {1e3, "kFLOP"},  {1e6, "MFLOP"},
                               {1e9, "GFLOP"}, {1e12, "TFLOP"}, {1e15, "PFLOP"}};
constexpr Step kNanosecondSteps[] = {{1.0, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}};
constexpr Step kMegabyteSteps[] = {{1e6, "MB"}};
constexpr Step kMegaflopSteps[] = {{1e6, "MFLOP"}};
constexpr Step kPlainSteps[] = {{1.0, ""}};
constexpr Step kMillisecondSteps[] = {{1.0, "ms"}};
constexpr Step kSecondSteps[] = {{1e-9, "ns"}, {1e-6, "µs"}, {1e-3, "ms"}, {1.0, "s"}};
constexpr Step kGigaflopSteps[] = {{1.0, "GFLOP/s"}};
constexpr Step kGigabyteSteps[] = {{1.0, "GB/s"}};
constexpr Step kIntensitySteps[] = {{1.0, "FLOP/B"}};
constexpr Step kShareSteps[] = {{0.01, "%"}};
constexpr Step kRateSteps[] = {{1.0, "/s"}};

struct Style {
  std::span<const Step> steps;
  int digits = 0;  // behind the point
};

Style style_of(Unit unit) {
  switch (unit) {
    case Unit::kCount:
    case Unit::kChange:
      return {kPlainSteps, 0};
    case Unit::kMean:
      return {kPlainSteps, 1};
    case Unit::kPlain:
      return {kPlainSteps, 4};
    case Unit::kMilliseconds:
      return {kMillisecondSteps, 3};
    case Unit::kNanoseconds:
      return {kNanosecondSteps, 2};
    case Unit::kSeconds:
      return {kSecondSteps, 2};
    case Unit::kBytes:
      return {kByteSteps, 1};
    case Unit::kByteCalls:
      return {kByteCallSteps, 1};
    case Unit::kMegabytes:
      return {kMegabyteSteps, 2};
    case Unit::kMegaflops:
      return {kMegaflopSteps, 2};
    case Unit::kFlops:
      return {kFlopSteps, 2};
    case Unit::kGigaflopsPerSecond:
      return {kGigaflopSteps, 2};
    case Unit::kGigabytesPerSecond:
      return {kGigabyteSteps, 2};
    case Unit::kFlopsPerByte:
      return {kIntensitySteps, 2};
    case Unit::kShare:
      return {kShareSteps, 2};
    case Unit::kRate:
      return {kRateSteps, 1};
  }
  return {kPlainSteps, 3};
}

const Step& step_of(const Quantity& quantity, const Style& style) {
  std::size_t chosen = 0;
  for (std::size_t i = 1; i < style.steps.size(); ++i) {
    if (std::abs(quantity.value) >= style.steps[i].size) chosen = i;
  }
  return style.steps[chosen];
}

constexpr int kFloatDigits = 3;  // behind the point of what is written with an exponent

// A plain number that four decimals would show as nothing, or as a row of digits.
bool has_exponent(const Quantity& quantity) {
  const double size = std::abs(quantity.value);
  return quantity.unit == Unit::kPlain && size != 0.0 && (size < 1e-3 || size >= 1e6);
}

// Whole units below the first step have no fractions.
int digits_of(const Step& step, const Style& style) {
  const bool is_first = style.steps.size() > 1 && &step == &style.steps.front();
  return is_first ? 0 : style.digits;
}

}  // namespace

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t end = digits.size(); end > first + 3; end -= 3) digits.insert(end - 3, " ");
  return digits;
}

std::string QuantityText::whole() const {
  return unit.empty() ? number : number + " " + std::string(unit);
}

QuantityText text_of(const Quantity& quantity) {
  if (!std::isfinite(quantity.value)) return {.number = "—"};
  if (quantity.unit == Unit::kCount) {
    return {.number = grouped(std::llround(quantity.value))};
  }
  if (quantity.unit == Unit::kChange) {
    const std::int64_t change = std::llround(quantity.value);
    return {.number = (change > 0 ? "+" : "") + grouped(change)};
  }
  if (has_exponent(quantity)) {
    return {.number = fmt::format("{:.{}e}", quantity.value, kFloatDigits)};
  }
  const Style style = style_of(quantity.unit);
  const Step& step = step_of(quantity, style);
  return {.number = fmt::format("{:.{}f}", quantity.value / step.size, digits_of(step, style)),
          .unit = step.name};
}

double rounding_of(const Quantity& quantity) {
  if (has_exponent(quantity)) {
    return 0.5 * std::pow(10.0, std::floor(std::log10(std::abs(quantity.value))) - kFloatDigits);
  }
  const Style style = style_of(quantity.unit);
  const Step& step = step_of(quantity, style);
  return 0.5 * step.size * std::pow(10.0, -digits_of(step, style));
}

}  // namespace trainscope::gui
