// Batches read ahead by a thread of its own, in the same order.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/train/data.h"

namespace trainscope {

// The thread stays at most `depth` batches ahead. A batch whose reading fails makes next() throw
// what the reading threw, in the batch's place; nothing follows it.
class Prefetcher final : public BatchSource {
 public:
  Prefetcher(std::shared_ptr<const Dataset> dataset, const BatchOrder& order, BatchRange range,
             int depth = 2);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  ~Prefetcher() override;  // waits for the batch that is being read

  const Batch* next() override;

 private:
  void read_all();
  bool wait_for_room();

  const std::shared_ptr<const Dataset> dataset_;
  const BatchOrder order_;
  const BatchRange range_;
  const std::int64_t depth_;
  // Batch i is in slot i modulo their number, which is one more than depth_: the caller holds one.
  std::vector<Batch> slots_;

  std::mutex mutex_;  // of all that follows
  std::condition_variable changed_;
  std::int64_t read_ = 0;   // batches that are ready
  std::int64_t taken_ = 0;  // batches handed out
  bool stopping_ = false;
  std::exception_ptr failure_;

  std::thread thread_;
};

}  // namespace trainscope
