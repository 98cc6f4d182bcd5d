// The largest batch that fits, in as few attempts as can be: memory is nearly a line over the
// batch.
#pragma once

#include <cstdint>
#include <functional>

namespace trainscope {

// Batches are not looked for beyond this one.
inline constexpr std::int64_t kMostBatch = 1 << 20;

// What an attempt with a batch comes to.
struct BatchNeed {
  bool fits = false;
  std::int64_t bytes = 0;  // that it needs; 0: not known, as of one that was made to fit
};

struct BatchSearch {
  std::int64_t budget_bytes = 0;
  std::int64_t fixed_bytes = 0;  // about what is needed whatever the batch
  std::int64_t fits = 0;         // this batch does
  std::int64_t first = 1;        // tried first
  std::int64_t stride = 1;       // ... and so much more if it fits
};

// 0: not even one example fits. A larger batch is taken not to fit where a smaller one does not. So
// the answer was tried and fits (or is `search.fits`), and the next batch was tried and does not
// (unless the answer is kMostBatch).
std::int64_t largest_batch(const BatchSearch& search,
                           const std::function<BatchNeed(std::int64_t batch)>& attempt);

}  // namespace trainscope
