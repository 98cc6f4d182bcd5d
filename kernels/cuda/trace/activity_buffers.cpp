// Lists of buffers under one lock.
#include "kernels/cuda/trace/activity_buffers.h"

#include <algorithm>
#include <new>

namespace trainscope::cuda {

// Nothing that is thrown may reach CUPTI.
std::uint8_t* ActivityBuffers::request() {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && made_ == kMost) return nullptr;
  try {
    free_.reserve(kMost);
    out_.reserve(kMost);
    full_.reserve(kMost);
    if (free_.empty()) {
      free_.push_back(
          std::make_unique_for_overwrite<std::uint64_t[]>(kBytes / sizeof(std::uint64_t)));
      ++made_;
    }
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  out_.push_back(std::move(free_.back()));
  free_.pop_back();
  return reinterpret_cast<std::uint8_t*>(out_.back().get());
}

void ActivityBuffers::complete(std::uint8_t* buffer, std::size_t valid_bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(out_, [&](const Words& each) {
    return reinterpret_cast<std::uint8_t*>(each.get()) == buffer;
  });
  if (found == out_.end()) return;  // of nobody here
  full_.push_back({.words = std::move(*found), .bytes = std::min(valid_bytes, kBytes)});
  out_.erase(found);
}

std::vector<ActivityBuffers::Full> ActivityBuffers::take_full() {
  std::vector<Full> taken;
  taken.reserve(kMost);
  const std::lock_guard lock(mutex_);
  std::swap(taken, full_);
  return taken;
}

void ActivityBuffers::give_back(std::vector<Full> read) {
  const std::lock_guard lock(mutex_);
  for (Full& each : read) free_.push_back(std::move(each.words));
}

}  // namespace trainscope::cuda
