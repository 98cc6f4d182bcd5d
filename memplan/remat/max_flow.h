// Maximum flow by blocking flows (Dinic 1970), on networks of some thousand arcs.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace trainscope::memplan {

class MaxFlow {
 public:
  static constexpr std::int64_t kUncuttable = std::numeric_limits<std::int64_t>::max() / 4;

  explicit MaxFlow(std::int32_t nodes = 0) : first_arc_(static_cast<std::size_t>(nodes), -1) {}

  // The arc's number; its capacity is 0 until set.
  std::int32_t add_arc(std::int32_t from, std::int32_t to);
  // Capacities are set before solve() and forgotten by it.
  void set_capacity(std::int32_t arc, std::int64_t capacity);

  // The flow's value, or kUncuttable if it is at least that.
  std::int64_t solve(std::int32_t source, std::int32_t sink);
  // After solve(): whether the node is on the source's side of the cut nearest to the source.
  bool on_source_side(std::int32_t node) const {
    return level_[static_cast<std::size_t>(node)] >= 0;
  }

 private:
  struct Arc {
    std::int32_t to = 0;
    std::int32_t next = -1;  // of the same tail
    std::int64_t left = 0;
  };

  bool find_levels(std::int32_t source, std::int32_t sink);
  std::int64_t push_path(std::int32_t source, std::int32_t sink);

  std::vector<std::int32_t> first_arc_;
  std::vector<Arc> arcs_;  // an arc and its reverse side by side
  std::vector<std::int32_t> level_;
  std::vector<std::int32_t> current_;
  std::vector<std::int32_t> queue_;
  std::vector<std::int32_t> path_;
};

}  // namespace trainscope::memplan
