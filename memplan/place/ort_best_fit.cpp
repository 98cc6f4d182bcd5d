// ONNX Runtime's memory pattern planner, as a baseline: in order of execution each buffer takes the
// smallest gap that holds it, the lowest of equal ones, or else the arena grows. What comes later
// is never looked at (onnxruntime, core/framework/mem_pattern_planner.h).
#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "memplan/place/free_list.h"
#include "memplan/place/placer.h"

namespace trainscope::memplan {

Placement place_ort_best_fit(const Task& task, const Limits& limits) {
  FreeList free_bytes(task.base_bytes, task.base_bytes);
  // That planner knows no fixed buffers; here their bytes are blocked all the time.
  for (const Obstacle& obstacle : task.obstacles) {
    free_bytes.block(obstacle.begin_bytes, obstacle.end_bytes);
  }
  using Death = std::pair<std::int32_t, std::size_t>;  // slot, box
  std::priority_queue<Death, std::vector<Death>, std::greater<>> alive;
  std::vector<std::int64_t> offsets(task.boxes.size(), 0);
  std::int64_t height_bytes = 0;
  for (std::size_t i = 0; i < task.boxes.size(); ++i) {  // boxes come in order of birth
    const Box& box = task.boxes[i];
    if (limits.give_up(i, height_bytes)) return {};
    for (; !alive.empty() && alive.top().first <= box.first_slot; alive.pop()) {
      const std::size_t dead = alive.top().second;
      free_bytes.give(offsets[dead], task.boxes[dead].size_bytes);
    }
    offsets[i] = free_bytes.take(box.size_bytes, box.alignment_bytes, Side::kLow);
    height_bytes = std::max(height_bytes, offsets[i] + box.size_bytes);
    alive.emplace(box.end_slot, i);
  }
  return offsets;
}

}  // namespace trainscope::memplan
