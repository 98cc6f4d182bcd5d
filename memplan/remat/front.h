// The whole trade of memory for time, computed once: plans in which values are recomputed at most
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/remat/bit_rows.h"
#include "memplan/remat/graph.h"

namespace trainscope::memplan {

struct FrontPoint {
  std::int64_t peak_bytes = 0;
  double time = 0;
  std::vector<std::int32_t> dropped = {};  // see hold_with_reruns()
};

struct FrontOptions {
  std::size_t most_points = 200;
  // With this many bytes or less some point is deep enough: no more checkpoints are forced.
  std::int64_t enough_bytes = -1;
};

// Points by falling peak and rising time, the first one without recompute.
class RematFront {
 public:
  // The nested cuts at the last forward node (or, without backward nodes, where most is in memory),
  // also with 1, 2, 3, ... values kept by force; between neighbours one layer or connected piece
  // after the other; and what the baselines find. Keeps at most `most_points` of what is not
  // beaten, evenly over the peaks, but first those without which a baseline's point would win.
  explicit RematFront(const RematGraph& graph, const FrontOptions& options = {});

  const std::vector<FrontPoint>& points() const { return points_; }
  std::int32_t frontier() const { return frontier_; }

  // The place of the point with the least time within the budget; points().size() if there is none.
  std::size_t find(std::int64_t budget_bytes) const;
  // That plan (or another) as holds.
  BitRows holds(const RematGraph& graph, std::size_t place) const;

 private:
  std::int32_t frontier_ = 0;
  std::vector<FrontPoint> points_;
};

}  // namespace trainscope::memplan
