// A recompute problem as flat arrays, made once and read by every method.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "memplan/remat/problem.h"
#include "memplan/stopped.h"

namespace trainscope::memplan {

class RematGraph {
 public:
  explicit RematGraph(const RematProblem& problem, std::stop_token stop = {});

  std::int32_t size() const { return static_cast<std::int32_t>(bytes_.size()); }
  std::span<const std::int32_t> inputs(std::int32_t node) const {
    return slice(input_begin_, inputs_, node);
  }
  // In ascending order.
  std::span<const std::int32_t> consumers(std::int32_t node) const {
    return slice(consumer_begin_, consumers_, node);
  }
  std::int64_t bytes(std::int32_t node) const { return bytes_[static_cast<std::size_t>(node)]; }
  std::int64_t workspace_bytes(std::int32_t node) const {
    return workspace_bytes_[static_cast<std::size_t>(node)];
  }
  double time(std::int32_t node) const { return time_[static_cast<std::size_t>(node)]; }
  // Of a node that must not rerun: more than any plan without such a rerun takes.
  double rerun_time(std::int32_t node) const { return rerun_time_[static_cast<std::size_t>(node)]; }
  bool may_rerun(std::int32_t node) const { return rerun_time(node) < forbidden_time_; }
  // What one forbidden rerun costs.
  double forbidden_time() const { return forbidden_time_; }

  // The last first execution that can need the value, be it through nodes that rerun for it; the
  // node itself if nobody reads it.
  std::int32_t horizon(std::int32_t node) const { return horizon_[static_cast<std::size_t>(node)]; }
  // The last first execution that reads the value directly; the node itself if nobody does.
  std::int32_t last_use(std::int32_t node) const {
    const auto readers = consumers(node);
    return readers.empty() ? node : readers.back();
  }
  // The first backward node; size() if there is none.
  std::int32_t first_backward() const { return first_backward_; }

  // Called by every search between its steps: throws Stopped once somebody has asked to stop.
  void check_stop() const {
    if (stop_.stop_requested()) throw Stopped();
  }

  // The bytes that must be in memory while the node runs for the first time, whatever the plan:
  // inputs, value, workspace, and values that cannot be recomputed and are read later.
  std::int64_t least_bytes(std::int32_t node) const {
    return least_bytes_[static_cast<std::size_t>(node)];
  }

 private:
  static std::span<const std::int32_t> slice(const std::vector<std::size_t>& begin,
                                             const std::vector<std::int32_t>& items,
                                             std::int32_t node) {
    const auto at = static_cast<std::size_t>(node);
    return std::span(items).subspan(begin[at], begin[at + 1] - begin[at]);
  }
  void fill_consumers();
  void fill_horizons();
  void fill_least_bytes();

  std::vector<std::size_t> input_begin_;
  std::vector<std::int32_t> inputs_;
  std::vector<std::size_t> consumer_begin_;
  std::vector<std::int32_t> consumers_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::int64_t> workspace_bytes_;
  std::vector<double> time_;
  std::vector<double> rerun_time_;
  std::vector<std::int32_t> horizon_;
  std::vector<std::int64_t> least_bytes_;
  std::int32_t first_backward_ = 0;
  double forbidden_time_ = 0;
  std::stop_token stop_;
};

}  // namespace trainscope::memplan
