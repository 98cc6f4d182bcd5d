// Numbers as people look at them: the middle of measurements, round ones along an axis.
#pragma once

#include <vector>

namespace trainscope {

// What a standard deviation is in median absolute ones, of a normal distribution.
inline constexpr double kMedianDeviations = 1.4826;

// The middle one; of an even number the mean of both. 0 of none.
double median(std::vector<double> values);
// How far values are from `middle`, in the middle: the median absolute deviation.
double median_deviation(std::vector<double> values, double middle);

// Multiples of 1, 2 or 5 times a power of ten within [low, high], which are `most` steps or fewer.
// Empty for an empty range, and for ends that are no numbers.
std::vector<double> round_numbers(double low, double high, int most);
// Of bytes: multiples of 1, 2, 5, 10, ... 500 times a binary unit (B, KiB, MiB).
std::vector<double> round_byte_counts(double low, double high, int most);
// Powers of ten within [low, high], both above 0, at most so many.
std::vector<double> powers_of_ten(double low, double high, int most);

}  // namespace trainscope
