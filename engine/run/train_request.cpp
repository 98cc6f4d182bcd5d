// Ways to give a request its data.
#include "engine/run/train_request.h"

#include <limits>
#include <utility>

namespace trainscope {

std::unique_ptr<BatchSource> direct_batches(std::shared_ptr<const Dataset> data,
                                            const BatchOrder& order, const BatchRange& range) {
  return std::make_unique<DirectBatches>(std::move(data), order, range);
}

bool ProfileSteps::has(std::int64_t step) const {
  if (step < from || step > last()) return false;
  return (every == 0 ? step - from : (step - from) % every) <= to - from;
}

std::int64_t ProfileSteps::last() const {
  if (every == 0) return to;
  return repeat == 0 ? std::numeric_limits<std::int64_t>::max() : to + (repeat - 1) * every;
}

OpenData opened(std::shared_ptr<const Dataset> data) {
  return [data = std::move(data)](const Compiled&) { return data; };
}

}  // namespace trainscope
