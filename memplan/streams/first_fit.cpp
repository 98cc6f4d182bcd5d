// Goes up through what is placed until a gap is wide enough.
#include "memplan/streams/first_fit.h"

#include <algorithm>

namespace trainscope::memplan {

using std::int64_t;
using std::size_t;

std::optional<Fit> StreamFitter::fit(const std::vector<size_t>& order, const FitLimits& limits) {
  Fit fit{.offsets = std::vector<int64_t>(sizes_.size(), 0), .height_bytes = 0};
  placed_.clear();
  for (const size_t buffer : order) {
    int64_t offset = 0;
    for (const size_t other : placed_) {
      ++visits_;
      if (fit.offsets[other] >= offset + sizes_[buffer]) break;
      const int64_t end = fit.offsets[other] + sizes_[other];
      if (end > offset && lifetimes_.meet(buffer, other)) offset = end;
    }
    fit.offsets[buffer] = offset;
    fit.height_bytes = std::max(fit.height_bytes, offset + sizes_[buffer]);
    if (fit.height_bytes > limits.most_bytes || visits_ > limits.most_visits) return {};
    const auto above = std::upper_bound(
        placed_.begin(), placed_.end(), offset,
        [&](int64_t address, size_t other) { return address < fit.offsets[other]; });
    placed_.insert(above, buffer);
  }
  return fit;
}

std::optional<Fit> StreamFitter::stack(const std::vector<size_t>& order, const FitLimits& limits) {
  Fit fit{.offsets = std::vector<int64_t>(sizes_.size(), 0), .height_bytes = 0};
  std::vector<size_t> waiting = order;  // the offset of one that waits: where it would lie now
  while (!waiting.empty()) {
    const auto lowest = std::min_element(waiting.begin(), waiting.end(), [&](size_t a, size_t b) {
      return fit.offsets[a] < fit.offsets[b];
    });
    const size_t buffer = *lowest;
    waiting.erase(lowest);
    const int64_t end = fit.offsets[buffer] + sizes_[buffer];
    fit.height_bytes = std::max(fit.height_bytes, end);
    visits_ += waiting.size();
    if (fit.height_bytes > limits.most_bytes || visits_ > limits.most_visits) return {};
    for (const size_t other : waiting) {
      if (fit.offsets[other] < end && lifetimes_.meet(buffer, other)) fit.offsets[other] = end;
    }
  }
  return fit;
}

}  // namespace trainscope::memplan
