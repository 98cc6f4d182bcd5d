// Names, and what listeners ask for.
#include "engine/exec/execution_events.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"

namespace trainscope {

std::string_view name_of(CopyKind kind) {
  switch (kind) {
    case CopyKind::kBind:
      return "bind";
    case CopyKind::kInitial:
      return "initial";
    case CopyKind::kRead:
      return "read";
  }
  CHECK_INVARIANT(false);
}

std::string_view name_of(ThreadState state) {
  switch (state) {
    case ThreadState::kCaller:
      return "caller";
    case ThreadState::kStart:
      return "start";
    case ThreadState::kWork:
      return "work";
    case ThreadState::kJoin:
      return "join";
    case ThreadState::kIdle:
      return "idle";
    case ThreadState::kLibrary:
      return "library";
  }
  CHECK_INVARIANT(false);
}

namespace {

void tell(void* listeners, int thread, ThreadState state) {
  static_cast<const ExecutionListeners*>(listeners)->tell([&](ExecutionEvents& each) {
    if (each.wants_threads()) each.thread_state(thread, state);
  });
}

void tell_others(void* listeners, int threads, ThreadState state) {
  for (int thread = 1; thread < threads; ++thread) tell(listeners, thread, state);
}

constexpr ThreadWatch kWatch{
    .region_begin = [](void* listeners, int) { tell(listeners, 0, ThreadState::kStart); },
    .region_end =
        [](void* listeners, int threads) {
          tell_others(listeners, threads, ThreadState::kIdle);
          tell(listeners, 0, ThreadState::kCaller);  // last: until then it has to do with others
        },
    .thread_begin = [](void* listeners,
                       int thread) { tell(listeners, thread, ThreadState::kWork); },
    .thread_end = [](void* listeners, int thread) { tell(listeners, thread, ThreadState::kJoin); },
    .library_begin = [](void* listeners,
                        int threads) { tell_others(listeners, threads, ThreadState::kLibrary); },
    .library_end = [](void* listeners,
                      int threads) { tell_others(listeners, threads, ThreadState::kIdle); },
};

}  // namespace

void ExecutionListeners::add(ExecutionEvents& listener) {
  list_.push_back(&listener);
  want_calls_ = want_calls_ || listener.wants_calls();
  one_at_a_time_ = one_at_a_time_ || listener.one_at_a_time();
  if (!listener.wants_threads()) return;
  watch_ = kWatch;
  watch_.context = this;
}

void ExecutionListeners::remove(ExecutionEvents& listener) {
  std::erase(list_, &listener);
  want_calls_ = std::ranges::any_of(list_, &ExecutionEvents::wants_calls);
  one_at_a_time_ = std::ranges::any_of(list_, &ExecutionEvents::one_at_a_time);
  if (std::ranges::none_of(list_, &ExecutionEvents::wants_threads)) watch_ = {};
}

bool ExecutionListeners::wants_memory() const {
  return std::ranges::any_of(list_, &ExecutionEvents::wants_memory);
}

Subscription::Subscription(const std::shared_ptr<ExecutionListeners>& listeners,
                           ExecutionEvents& listener)
    : listeners_(listeners), listener_(&listener) {
  listeners->add(listener);
}

Subscription::Subscription(const std::shared_ptr<ExecutionListeners>& listeners,
                           std::shared_ptr<ExecutionEvents> listener)
    : Subscription(listeners, *listener) {
  share_ = std::move(listener);
}

Subscription::Subscription(Subscription&& other) noexcept
    : listeners_(std::move(other.listeners_)),
      listener_(std::exchange(other.listener_, nullptr)),
      share_(std::move(other.share_)) {}

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this == &other) return *this;
  end();
  listeners_ = std::move(other.listeners_);
  listener_ = std::exchange(other.listener_, nullptr);
  share_ = std::move(other.share_);
  return *this;
}

Subscription::~Subscription() { end(); }

void Subscription::end() {
  const std::shared_ptr<ExecutionListeners> listeners = listeners_.lock();
  if (listeners != nullptr && listener_ != nullptr) listeners->remove(*listener_);
  listener_ = nullptr;
  share_.reset();
}

}  // namespace trainscope
