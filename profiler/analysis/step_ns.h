// What one call took in each of many steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace trainscope::profiler {

// Nanoseconds by step. A profile of 10^7 events has nearly as many of them: 32 bits each, as long
// as every step fits, which is 4.29 s.
class StepNs {
 public:
  StepNs() = default;
  StepNs(std::initializer_list<std::int64_t> steps) {
    for (const std::int64_t ns : steps) push_back(ns);
  }

  std::size_t size() const { return is_wide_ ? wide_.size() : narrow_.size(); }
  std::int64_t operator[](std::size_t step) const {
    return is_wide_ ? wide_[step] : std::int64_t{narrow_[step]};
  }
  std::int64_t sum() const { return sum_; }
  std::vector<double> doubles() const;

  // For so many steps in all.
  void reserve(std::size_t steps);
  // In steps that are new it took nothing.
  void resize(std::size_t steps);
  void push_back(std::int64_t ns) {
    resize(size() + 1);
    add(size() - 1, ns);
  }
  void add(std::size_t step, std::int64_t ns);
  void append(const StepNs& more);

  bool operator==(const StepNs& other) const;

 private:
  void widen();

  std::vector<std::uint32_t> narrow_;
  std::vector<std::int64_t> wide_;
  bool is_wide_ = false;
  std::int64_t sum_ = 0;
};

}  // namespace trainscope::profiler
