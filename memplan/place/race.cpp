// The pairs of placers and sections, taken in order by whoever is free.
#include "memplan/place/race.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <utility>

namespace trainscope::memplan {

using std::int64_t;
using std::size_t;

namespace {

// More would only wait for each other.
constexpr size_t kMostThreads = 64;
// Fewer boxes are placed before a thread has started.
constexpr size_t kBoxesPerThread = 512;

}  // namespace

// Threads that have something to do, as far as that can be told.
size_t Race::helpful_threads() const {
  size_t boxes = 0;
  size_t open = 0;
  for (size_t section = 0; section < sections_.size(); ++section) {
    if (best_[section].height_bytes <= goal_.target_bytes) continue;
    boxes += sections_[section].task.boxes.size();
    ++open;
  }
  const size_t worth = boxes * placers_.size() / kBoxesPerThread;
  return std::min(
      {static_cast<size_t>(goal_.threads), kMostThreads, worth, open * placers_.size()});
}

void Race::run(std::span<const Placer> placers) {
  placers_ = placers;
  next_ = 0;
  const size_t useful = helpful_threads();
  std::vector<std::future<void>> helpers;
  try {
    while (helpers.size() + 1 < useful) {
      helpers.push_back(std::async(std::launch::async, [this] { work(); }));
    }
  } catch (const std::system_error&) {
    // No more threads to be had: those that exist do all the work.
  }
  work();
  for (std::future<void>& helper : helpers) helper.get();
  first_placer_ += placers.size();
}

void Race::work() {
  const size_t pairs = sections_.size() * placers_.size();
  for (size_t pair = next_++; pair < pairs; pair = next_++) {
    const size_t placer = first_placer_ + pair / sections_.size();
    const size_t section = pair % sections_.size();
    if (worth_running(placer, section)) place(placer, section);
  }
}

bool Race::worth_running(size_t placer, size_t section) const {
  if (placer > 0 && goal_.deadline.expired()) return false;
  return best_[section].reached_by > placer && most_visits_[section] > 0;
}

void Race::place(size_t placer, size_t section) {
  const Task& task = sections_[section].task;
  Best& best = best_[section];
  const Placer& method = placers_[placer - first_placer_];
  const Limits limited{.deadline = goal_.deadline,
                       .height_to_beat = &best.height_bytes,
                       .reached_by = &best.reached_by,
                       .placer = placer,
                       .most_visits = most_visits_[section]};
  // The first placer must finish, or there is no placement at all.
  Placement offsets = method.place(task, placer == 0 ? Limits{} : limited);
  if (!offsets) return;
  int64_t height_bytes = goal_.target_bytes;
  for (size_t i = 0; i < offsets->size(); ++i) {
    height_bytes = std::max(height_bytes, (*offsets)[i] + task.boxes[i].size_bytes);
  }
  const std::scoped_lock lock(mutex_);
  const std::pair known(best.height_bytes.load(), best.placer);
  if (std::pair(height_bytes, placer) >= known) return;
  best.height_bytes = height_bytes;
  if (height_bytes == goal_.target_bytes) best.reached_by = placer;
  best.placer = placer;
  best.method = method.name;
  best.offsets = std::move(*offsets);
}

}  // namespace trainscope::memplan
