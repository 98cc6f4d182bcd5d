// Whether work grows with its size, not with its square, by comparing two times of one process: a
// limit in seconds fails on slow or busy machines.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace trainscope::test {

// Seconds of the processor, so that other programs do not count.
template <typename Action>
double processor_seconds(Action&& action) {
  const std::clock_t start = std::clock();
  std::forward<Action>(action)();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// `seconds_of(n)` does the work for n things and returns what it took; ten times as many things may
// take forty times as long, where linear work takes ten to twenty times (less fits into caches) and
// quadratic work a hundred. What takes less than 40 ms in all passes.
template <typename SecondsOf>
void check_linear(int n, SecondsOf seconds_of) {
  const double of_few = std::min(seconds_of(n / 10), seconds_of(n / 10));
  const double of_all = seconds_of(n);
  CAPTURE(of_few);
  CAPTURE(of_all);
  CHECK(of_all < 40 * std::max(of_few, 1e-3));
}

}  // namespace trainscope::test
