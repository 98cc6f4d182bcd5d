// Units are listed here again: what the window writes is held against another list than its own.
#include "tests/gui/platform/drawn_numbers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "engine/core/numbers.h"
#include "engine/core/text.h"

namespace trainscope::gui::test {
namespace {

constexpr double kKi = 1024.0;

constexpr NumberUnit kUnits[] = {
    {"ns", 1e-9, "s"},
    {"µs", 1e-6, "s"},
    {"ms", 1e-3, "s"},
    {"s", 1.0, "s"},
    {"B", 1.0, "B"},
    {"KiB", kKi, "B"},
    {"MiB", kKi* kKi, "B"},
    {"GiB", kKi* kKi* kKi, "B"},
    {"TiB", kKi* kKi* kKi* kKi, "B"},
    {"MB", 1e6, "B"},
    {"B·calls", 1.0, "B·calls"},
    {"KiB·calls", kKi, "B·calls"},
    {"MiB·calls", kKi* kKi, "B·calls"},
    {"GiB·calls", kKi* kKi* kKi, "B·calls"},
    {"TiB·calls", kKi* kKi* kKi* kKi, "B·calls"},
    {"FLOP", 1.0, "FLOP"},
    {"kFLOP", 1e3, "FLOP"},
    {"MFLOP", 1e6, "FLOP"},
    {"GFLOP", 1e9, "FLOP"},
    {"TFLOP", 1e12, "FLOP"},
    {"PFLOP", 1e15, "FLOP"},
    {"GFLOP/s", 1e9, "FLOP/s"},
    {"GB/s", 1e9, "B/s"},
    {"FLOP/B", 1.0, "FLOP/B"},
    {"/s", 1.0, "/s"},
    {"%", 0.01, "share"},
};

// By what pointers end with; the first that does counts.
constexpr NumberUnit kPrintedUnits[] = {
    {"byte_calls", 1.0, "B·calls"},
    {"milliseconds", 1e-3, "s"},
    {"_ms", 1e-3, "s"},
    {"/ms", 1e-3, "s"},
    {"_ns", 1e-9, "s"},
    {"/ns", 1e-9, "s"},
    {"/counters/task clock/least", 1e-9, "s"},
    {"/counters/task clock/greatest", 1e-9, "s"},
    {"seconds", 1.0, "s"},
    {"seconds_after", 1.0, "s"},
    {"/counters/resident bytes/least", 1.0, "B"},
    {"/counters/resident bytes/greatest", 1.0, "B"},
    {"bytes", 1.0, "B"},
    {"bytes_after", 1.0, "B"},
    {"bytes_read", 1.0, "B"},
    {"bytes_written", 1.0, "B"},
    {"/offset", 1.0, "B"},
    {"/arena_a", 1.0, "B"},
    {"/arena_b", 1.0, "B"},
    {"gflops", 1e9, "FLOP/s"},
    {"gbs", 1e9, "B/s"},
    {"flops", 1.0, "FLOP"},
    {"flops_after", 1.0, "FLOP"},
    {"intensity", 1.0, "FLOP/B"},
    {"/share", 1.0, "share"},
    {"/roof", 1.0, "share"},
    {"overhead", 1.0, "share"},
    {"/accuracy", 1.0, "share"},
};

// Without the blanks between each three digits; none where they stand elsewhere.
std::optional<std::string> ungrouped(std::string_view digits) {
  std::string number;
  std::size_t first = 0;
  for (const std::string_view group : split(digits, ' ')) {
    if (first > 0 && group.size() != 3) return std::nullopt;
    number += group;
    ++first;
  }
  return number;
}

// Half of the last digit of "1.977e+31".
double half_digit_of(std::string_view number) {
  const std::size_t exponent = number.find('e');
  const std::string_view digits = number.substr(0, exponent);
  const std::size_t point = digits.find('.');
  double half = 0.5;
  if (point != std::string_view::npos) {
    half *= std::pow(10.0, -static_cast<double>(digits.size() - point - 1));
  }
  if (exponent == std::string_view::npos) return half;
  std::string_view power = number.substr(exponent + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  return half * std::pow(10.0, parse_number(power).value_or(std::nan("")));
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '/';
}

// Whether a number stands before the place, with a blank between.
bool ends_number(std::string_view text, std::size_t place) {
  return place >= 2 && text[place - 1] == ' ' && text[place - 2] >= '0' && text[place - 2] <= '9';
}

}  // namespace

std::optional<DrawnNumber> drawn_number(std::string_view text) {
  DrawnNumber drawn;
  const std::size_t blank = text.rfind(' ');
  if (blank != std::string_view::npos) {
    const auto unit = std::ranges::find(kUnits, text.substr(blank + 1), &NumberUnit::name);
    if (unit != std::end(kUnits)) {
      drawn.unit = *unit;
      text = text.substr(0, blank);
    }
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  const std::optional<std::string> digits = ungrouped(text);
  const auto number = digits ? parse_number(*digits) : std::nullopt;
  if (!number) return std::nullopt;
  drawn.value = *number * drawn.unit.size;
  drawn.half_digit = half_digit_of(*digits) * drawn.unit.size;
  return drawn;
}

NumberUnit unit_of_fact(std::string_view pointer) {
  const bool is_pass_counter = pointer.find("/stages/") != std::string_view::npos &&
                               pointer.find("/counters/") != std::string_view::npos;
  if (is_pass_counter) return {};
  if (pointer.find("/by_class/") != std::string_view::npos) return {{}, 1.0, "B"};
  const auto unit = std::ranges::find_if(
      kPrintedUnits, [&](const NumberUnit& each) { return pointer.ends_with(each.name); });
  return unit == std::end(kPrintedUnits) ? NumberUnit{} : *unit;
}

bool says_quantity(std::string_view text) {
  return std::ranges::any_of(kUnits, [&](const NumberUnit& unit) {
    for (std::size_t at = text.find(unit.name); at != std::string_view::npos;
         at = text.find(unit.name, at + 1)) {
      const std::size_t end = at + unit.name.size();
      if (ends_number(text, at) && (end == text.size() || !is_letter(text[end]))) return true;
    }
    return false;
  });
}

}  // namespace trainscope::gui::test
