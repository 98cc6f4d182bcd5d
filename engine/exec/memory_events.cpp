// Two lists by time, followed once a step.
#include "engine/exec/memory_events.h"

#include <algorithm>

namespace trainscope {
namespace {

template <class F>
void tell(const ExecutionListeners& listeners, F f) {
  listeners.tell([&](ExecutionEvents& each) {
    if (each.wants_memory()) f(each);
  });
}

}  // namespace

MemoryEvents::MemoryEvents(const Program& program)
    : bound_(by_time(program, [](const PlannedBuffer& buffer) { return buffer.begin; })),
      freed_(by_time(program, [](const PlannedBuffer& buffer) { return buffer.end - 1; })),
      alive_(program.buffers.size(), false) {
  changed_.reserve(program.buffers.size());
}

MemoryEvents::ByTime MemoryEvents::by_time(const Program& program,
                                           std::int64_t (*time_of)(const PlannedBuffer&)) {
  std::vector<std::vector<BufferId>> lists(static_cast<std::size_t>(program.times));
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const PlannedBuffer& buffer = program.buffers[i];
    const auto time = static_cast<std::size_t>(time_of(buffer));
    const bool stays = buffer.persistent || buffer.external;
    if (!stays && time < lists.size()) lists[time].push_back(BufferId(static_cast<int>(i)));
  }
  ByTime result{.first = {0}, .buffers = {}};
  for (const std::vector<BufferId>& list : lists) {
    result.buffers.insert(result.buffers.end(), list.begin(), list.end());
    result.first.push_back(static_cast<std::int32_t>(result.buffers.size()));
  }
  return result;
}

std::span<const BufferId> MemoryEvents::ByTime::at(std::int64_t time) const {
  const auto i = static_cast<std::size_t>(time);
  const auto begin = static_cast<std::size_t>(first[i]);
  return std::span(buffers).subspan(begin, static_cast<std::size_t>(first[i + 1]) - begin);
}

std::span<const BufferId> MemoryEvents::changed(std::span<const BufferId> buffers, bool alive) {
  changed_.clear();
  for (const BufferId id : buffers) {
    const auto i = static_cast<std::size_t>(id);
    if (alive_[i] == alive) continue;
    alive_[i] = alive;
    changed_.push_back(id);
  }
  return changed_;
}

void MemoryEvents::tell_bound(std::int64_t time, const ExecutionListeners& listeners) {
  const std::span<const BufferId> buffers = changed(bound_.at(time), true);
  if (buffers.empty()) return;
  tell(listeners, [&](ExecutionEvents& each) { each.memory_bound(time, buffers); });
}

void MemoryEvents::begin_at(std::int64_t time, const ExecutionListeners& listeners) {
  entered_ = left_ = time;
  if (time > 0) return;
  changed_.clear();
  for (std::size_t i = 0; i < alive_.size(); ++i) {
    if (alive_[i]) changed_.push_back(BufferId(static_cast<int>(i)));
  }
  alive_.assign(alive_.size(), false);
  if (changed_.empty()) return;
  tell(listeners, [&](ExecutionEvents& each) { each.memory_freed(time, changed_); });
}

void MemoryEvents::enter(std::int64_t time, const ExecutionListeners& listeners) {
  if (time < entered_) return;
  leave_until(time, listeners);
  tell_bound(time, listeners);
  entered_ = time + 1;
}

// A time that was not entered had no call of its own: a section's buffers live from its first one.
void MemoryEvents::leave_until(std::int64_t time, const ExecutionListeners& listeners) {
  for (; left_ < time; ++left_) {
    if (left_ >= entered_) tell_bound(left_, listeners);
    const std::span<const BufferId> buffers = changed(freed_.at(left_), false);
    if (buffers.empty()) continue;
    tell(listeners, [&](ExecutionEvents& each) { each.memory_freed(left_, buffers); });
  }
  entered_ = std::max(entered_, time);
}

}  // namespace trainscope
