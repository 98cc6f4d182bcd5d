// Aims by a line through the last two needs that are known, then looks at the neighbours.
#include "engine/run/batch/batch_search.h"

#include <algorithm>
#include <cmath>

namespace trainscope {
namespace {

struct Point {
  std::int64_t batch = 0;
  std::int64_t bytes = 0;
};

class Line {
 public:
  explicit Line(std::int64_t fixed_bytes) : last_{.batch = 0, .bytes = fixed_bytes} {}

  void add(Point point) {
    before_ = last_;
    last_ = point;
  }

  // The batch that needs so many bytes.
  std::int64_t batch_at(std::int64_t bytes) const {
    const auto rise = static_cast<double>(last_.bytes - before_.bytes) /
                      static_cast<double>(last_.batch - before_.batch);
    if (!(rise > 0)) return kMostBatch;
    const double batch =
        static_cast<double>(last_.batch) + static_cast<double>(bytes - last_.bytes) / rise;
    return static_cast<std::int64_t>(std::clamp(std::floor(batch), 0.0, 1.0 * kMostBatch));
  }

 private:
  Point before_;
  Point last_;
};

}  // namespace

std::int64_t largest_batch(const BatchSearch& search,
                           const std::function<BatchNeed(std::int64_t batch)>& attempt) {
  constexpr int kAimed = 8;  // attempts; then the range is halved
  Line line(search.fixed_bytes);
  std::int64_t good = search.fits;
  std::int64_t bad = kMostBatch + 1;
  std::int64_t guess = search.first;
  std::int64_t stride = search.stride;
  for (int attempts = 1; bad - good > 1; ++attempts) {
    guess = std::clamp(guess, good + 1, bad - 1);
    const BatchNeed need = attempt(guess);
    (need.fits ? good : bad) = guess;
    if (need.bytes > 0) line.add({.batch = guess, .bytes = need.bytes});
    if (attempts >= kAimed && bad <= kMostBatch) {
      guess = good + (bad - good) / 2;
    } else if (need.bytes > 0) {
      guess = line.batch_at(search.budget_bytes);
      stride = 1;
    } else {
      guess = good + stride;
      stride *= 2;
    }
  }
  return good;
}

}  // namespace trainscope
