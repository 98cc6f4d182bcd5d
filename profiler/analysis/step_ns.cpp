// Keeps 32 bits of a step until one of them does not fit.
#include "profiler/analysis/step_ns.h"

#include <utility>

namespace trainscope::profiler {

std::vector<double> StepNs::doubles() const {
  std::vector<double> all(size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<double>((*this)[i]);
  return all;
}

void StepNs::reserve(std::size_t steps) {
  if (is_wide_) {
    wide_.reserve(steps);
  } else {
    narrow_.reserve(steps);
  }
}

void StepNs::resize(std::size_t steps) {
  for (std::size_t i = steps; i < size(); ++i) sum_ -= (*this)[i];
  if (is_wide_) {
    wide_.resize(steps);
  } else {
    narrow_.resize(steps);
  }
}

void StepNs::add(std::size_t step, std::int64_t ns) {
  sum_ += ns;
  const std::int64_t now = (*this)[step] + ns;
  if (!is_wide_ && !std::in_range<std::uint32_t>(now)) widen();
  if (is_wide_) {
    wide_[step] = now;
  } else {
    narrow_[step] = static_cast<std::uint32_t>(now);
  }
}

void StepNs::append(const StepNs& more) {
  const std::size_t before = size();
  resize(before + more.size());
  for (std::size_t i = 0; i < more.size(); ++i) add(before + i, more[i]);
}

bool StepNs::operator==(const StepNs& other) const {
  if (size() != other.size()) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    if ((*this)[i] != other[i]) return false;
  }
  return true;
}

void StepNs::widen() {
  wide_.reserve(narrow_.capacity());
  wide_.assign(narrow_.begin(), narrow_.end());
  narrow_ = std::vector<std::uint32_t>();
  is_wide_ = true;
}

}  // namespace trainscope::profiler
