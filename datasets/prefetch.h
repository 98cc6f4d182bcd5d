// Batches read ahead by a thread of its own, in the same order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/train/data.h"

namespace trainscope {

// Where a core is free for the thread it reads all batches. Where the step's threads have every
// core, it would take one of theirs in the midst of an op, and another op in each run; so what was
// read in less than kShortReading is read by the caller, within next(), and the thread has what
// takes longer: what waits for a disk.
enum class SpareCore : std::uint8_t { kYes, kNo };
inline constexpr std::chrono::microseconds kShortReading{1000};
inline constexpr int kBatchesAhead = 2;

// It stays at most `depth` batches ahead. A batch whose reading fails makes next() throw what the
// reading threw, in the batch's place; nothing follows it.
class Prefetcher final : public BatchSource {
 public:
  Prefetcher(std::shared_ptr<const Dataset> dataset, const BatchOrder& order, BatchRange range,
             int depth = kBatchesAhead, SpareCore spare = SpareCore::kYes);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher() override;  // waits for the batch that is being read

  const Batch* next() override;

 private:
  void read_all();
  bool wait_for_turn(std::unique_lock<std::mutex>& lock);
  bool has_room() const;
  void read_one(std::unique_lock<std::mutex>& lock, BatchIndices& indices);

  const std::shared_ptr<const Dataset> dataset_;
  const BatchOrder order_;
  const BatchRange range_;
  const std::int64_t depth_;
  const SpareCore spare_;
  // Batch i is in slot i modulo their number, which is one more than depth_: the caller holds one.
  std::vector<Batch> slots_;

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::int64_t read_ = 0;   // batches that are ready
  std::int64_t taken_ = 0;  // batches handed out
  bool reading_ = false;    // batch read_ is being read, by the thread or the caller
  bool caller_reads_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  BatchIndices own_indices_;  // the caller's

  std::thread thread_;
};

}  // namespace trainscope
