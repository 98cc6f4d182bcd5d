// Partial sorting: what is beside the middle stays in any order.
#include "engine/core/median.h"

#include <algorithm>
#include <iterator>

namespace trainscope {

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto upper = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, upper);
  if (values.size() % 2 == 1) return *upper;
  return (*std::ranges::max_element(values.begin(), upper) + *upper) / 2.0;
}

}  // namespace trainscope
