// A ring of batches between a reading thread and the caller, who reads what takes no time.
#include "datasets/prefetch.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "engine/core/error.h"

namespace trainscope {

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, const BatchOrder& order,
                       BatchRange range, int depth, SpareCore spare)
    : dataset_(std::move(dataset)),
      order_(order),
      range_(range),
      depth_(depth),
      spare_(spare),
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

// The caller may still look at batch taken_ - 1, whose slot is that of batch taken_ + depth_.
bool Prefetcher::has_room() const {
  const bool is_last = range_.count != BatchRange::kEndless && read_ >= range_.count;
  return !is_last && !failure_ && read_ < taken_ + depth_;
}

// False when there is nothing more to read.
bool Prefetcher::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] {
    const bool is_over = range_.count != BatchRange::kEndless && read_ >= range_.count;
    return stopping_ || failure_ || is_over || (!caller_reads_ && !reading_ && has_room());
  });
  return !stopping_ && has_room();
}

// Batch read_, with the lock given back meanwhile: slots at or beyond read_ belong to who reads.
void Prefetcher::read_one(std::unique_lock<std::mutex>& lock, BatchIndices& indices) {
  using Clock = std::chrono::steady_clock;
  reading_ = true;
  const std::int64_t i = read_;
  lock.unlock();
  const Clock::time_point begin = Clock::now();
  std::exception_ptr failure;
  try {
    order_.indices(range_.batch(i), indices);
    dataset_->read(indices.split, indices.epoch, indices.examples,
                   slots_[static_cast<std::size_t>(i) % slots_.size()]);
  } catch (...) {
    failure = std::current_exception();
  }
  const bool is_short = Clock::now() - begin < kShortReading;
  lock.lock();
  reading_ = false;
  failure_ = failure;
  read_ += failure ? 0 : 1;
  caller_reads_ = spare_ == SpareCore::kNo && is_short;
}

void Prefetcher::read_all() {
  BatchIndices indices;
  std::unique_lock lock(mutex_);
  while (wait_for_turn(lock)) {
    read_one(lock, indices);
    changed_.notify_all();
  }
}

// While the caller reads, there is always a batch that is ready: each that it takes it replaces.
const Batch* Prefetcher::next() {
  std::unique_lock lock(mutex_);
  if (range_.count != BatchRange::kEndless && taken_ >= range_.count) return nullptr;
  changed_.wait(lock, [this] { return failure_ || taken_ < read_; });
  if (taken_ == read_) std::rethrow_exception(failure_);
  const auto slot = static_cast<std::size_t>(taken_) % slots_.size();
  ++taken_;
  if (caller_reads_ && !reading_ && has_room()) read_one(lock, own_indices_);
  const bool thread_reads = !caller_reads_;
  lock.unlock();
  if (thread_reads) changed_.notify_all();
  return &slots_[slot];
}

}  // namespace trainscope
