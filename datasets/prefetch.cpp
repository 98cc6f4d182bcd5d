// A ring of batches between a reading thread and the caller.
#include "datasets/prefetch.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "engine/core/error.h"

namespace trainscope {

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, const BatchOrder& order,
                       BatchRange range, int depth)
    : dataset_(std::move(dataset)),
      order_(order),
      range_(range),
      depth_(depth),
      slots_(static_cast<std::size_t>(depth) + 1) {
  CHECK_INVARIANT(depth >= 1);
  try {
    thread_ = std::thread([this] { read_all(); });
  } catch (const std::system_error& error) {
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("cannot start the thread that reads batches: {}", error.code().message()))
        .hint("a higher limit of threads (`ulimit -u`, or the cgroup's pids.max)");
  }
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

// False when there is nothing more to read.
bool Prefetcher::wait_for_room() {
  std::unique_lock lock(mutex_);
  if (range_.count != BatchRange::kEndless && read_ >= range_.count) return false;
  // The caller may still look at batch taken_ - 1, whose slot is that of batch taken_ + depth_.
  changed_.wait(lock, [this] { return stopping_ || read_ < taken_ + depth_; });
  return !stopping_;
}

void Prefetcher::read_all() {
  try {
    BatchIndices indices;
    for (std::int64_t i = 0; wait_for_room(); ++i) {
      order_.indices(range_.first + i, indices);
      // Slots at or beyond read_ belong to this thread.
      Batch& slot = slots_[static_cast<std::size_t>(i) % slots_.size()];
      dataset_->read(indices.split, indices.epoch, indices.examples, slot);
      {
        const std::lock_guard lock(mutex_);
        ++read_;
      }
      changed_.notify_all();
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    changed_.notify_all();
  }
}

const Batch* Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (range_.count != BatchRange::kEndless && taken_ >= range_.count) return nullptr;
  changed_.wait(lock, [this] { return failure_ || taken_ < read_; });
  if (taken_ == read_) std::rethrow_exception(failure_);
  const auto slot = static_cast<std::size_t>(taken_) % slots_.size();
  ++taken_;
  lock.unlock();
  changed_.notify_all();
  return &slots_[slot];
}

}  // namespace trainscope
