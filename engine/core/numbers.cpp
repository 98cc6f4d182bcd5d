// Partial sorting, and the least round step of which no more are in a range than asked for.
#include "engine/core/numbers.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

namespace trainscope {
namespace {

// Of a step: a number that misses a multiple, or the end of a range, by no more is there.
constexpr double kSlack = 1e-9;

// A range that is narrow beside its numbers has fewer doubles than multiples: some are equal then.
std::vector<double> multiples_within(double low, double high, double step) {
  std::vector<double> numbers;
  const double first = std::ceil(low / step - kSlack);
  const double count = std::floor(high / step + kSlack) - first + 1.0;
  for (std::int64_t i = 0; static_cast<double>(i) < count; ++i) {
    const double number = (first + static_cast<double>(i)) * step;
    if (numbers.empty() || number > numbers.back()) numbers.push_back(number);
  }
  return numbers;
}

// The least length of `most` steps; 0 for a range that has none.
double least_step(double low, double high, int most) {
  const bool is_range = std::isfinite(low) && std::isfinite(high) && low < high;
  return is_range ? (high - low) / std::max(1, most) : 0.0;
}

// The least of 1, 2, 5 and 10 times `decade` that is no less.
double round_step(double least, double decade) {
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * decade >= least * (1.0 - kSlack)) return factor * decade;
  }
  return 10.0 * decade;
}

double decade_of(double number) { return std::pow(10.0, std::floor(std::log10(number))); }

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto upper = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, upper);
  if (values.size() % 2 == 1) return *upper;
  return (*std::ranges::max_element(values.begin(), upper) + *upper) / 2.0;
}

double median_deviation(std::vector<double> values, double middle) {
  for (double& value : values) value = std::abs(value - middle);
  return median(std::move(values));
}

std::vector<double> round_numbers(double low, double high, int most) {
  const double least = least_step(low, high, most);
  if (!(least > 0.0)) return {};
  return multiples_within(low, high, round_step(least, decade_of(least)));
}

std::vector<double> round_byte_counts(double low, double high, int most) {
  const double least = least_step(low, high, most);
  if (!(least > 0.0)) return {};
  constexpr double kUnit = 1024.0;
  double unit = 1.0;
  while (least >= unit * kUnit) unit *= kUnit;
  const double units = std::max(1.0, least / unit);
  const double step = round_step(units, decade_of(units));
  // Behind 500 KiB comes 1 MiB.
  return multiples_within(low, high, (step > 500.0 ? kUnit : step) * unit);
}

std::vector<double> powers_of_ten(double low, double high, int most) {
  std::vector<double> numbers;
  if (!(low > 0.0) || !std::isfinite(high) || most < 1) return numbers;
  const double first = std::ceil(std::log10(low) - kSlack);
  const double last = std::floor(std::log10(high) + kSlack);
  const double step = std::max(1.0, std::ceil((last - first + 1.0) / most));
  for (double p = first; p <= last; p += step) numbers.push_back(std::pow(10.0, p));
  return numbers;
}

}  // namespace trainscope
