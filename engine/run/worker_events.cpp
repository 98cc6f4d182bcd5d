// Events as lines on a socket, and the owner's wish read from it.
#include "engine/run/worker_events.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "engine/core/error.h"
#include "profiler/record/system_counters.h"

namespace trainscope {
namespace {

using Clock = std::chrono::steady_clock;

// Of progress that nobody could read quicker.
constexpr std::chrono::milliseconds kBetweenProgress{50};
constexpr int kLongestGoodbyeMs = 5000;
// What an owner that reads nothing may leave in this process's memory.
constexpr std::size_t kMostWaitingBytes = std::size_t{16} << 20;

bool would_wait(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

WorkerSocket::WorkerSocket(int descriptor) {
  struct stat facts = {};
  const bool is_socket = ::fstat(descriptor, &facts) == 0 && S_ISSOCK(facts.st_mode);
  if (!is_socket) {
    throw Error(ErrorCode::kUsage, fmt::format("--worker-fd is {}, which is no socket", descriptor))
        .hint("the flag is for programs that start a worker: docs/worker-protocol.md");
  }
  socket_ = FileDescriptor(descriptor);
}

void WorkerSocket::write_waiting() {
  while (!waiting_.empty()) {
    const ssize_t sent =
        ::send(socket_.get(), waiting_.data(), waiting_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      waiting_.erase(0, static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      stop_ = stop_ || !would_wait(errno);
      return;
    }
  }
}

void WorkerSocket::send(const WorkerMessage& message) {
  waiting_ += worker_line(message);
  write_waiting();
  stop_ = stop_ || waiting_.size() > kMostWaitingBytes;
}

void WorkerSocket::finish(const WorkerMessage& message) {
  send(message);
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(kLongestGoodbyeMs);
  while (!waiting_.empty() && Clock::now() < end) {
    pollfd writable = {.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    ::poll(&writable, 1, kLongestGoodbyeMs);
    if ((writable.revents & (POLLERR | POLLHUP)) != 0) return;
    write_waiting();
  }
}

// An owner that sends something else than messages is none.
void WorkerSocket::read_messages() {
  std::array<char, 4096> bytes = {};
  while (true) {
    const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      stop_ = stop_ || size == 0 || !would_wait(errno);
      return;
    }
    lines_.add({bytes.data(), static_cast<std::size_t>(size)});
    while (const std::optional<std::string> line = lines_.next()) {
      const std::optional<WorkerMessage> message = worker_message(*line);
      stop_ = stop_ || (message && std::holds_alternative<WorkerStop>(*message));
    }
  }
}

bool WorkerSocket::wants_stop() {
  if (stop_) return true;
  write_waiting();
  try {
    read_messages();
  } catch (const Error&) {
    stop_ = true;
  }
  return stop_;
}

WorkerEvents::WorkerEvents(int descriptor, std::string program_version, std::stop_source stop)
    : socket_(descriptor), stop_(std::move(stop)) {
  socket_.send(WorkerHello{.program_version = std::move(program_version),
                           .process = static_cast<std::int64_t>(::getpid())});
}

void WorkerEvents::look_for_stop() {
  if (socket_.wants_stop()) stop_.request_stop();
}

void WorkerEvents::tell_fault(const Error& error) {
  if (std::exchange(ended_, true)) return;
  socket_.finish(WorkerFault{.code = error.code(),
                             .message = error.message(),
                             .where = error.context(),
                             .hint = error.hint()});
}

void WorkerEvents::tell_peak(std::int64_t used_bytes) {
  socket_.send(WorkerPeak{.predicted_bytes = predicted_bytes_,
                          .used_bytes = used_bytes,
                          .resident_bytes = profiler::read_system_counters().resident_bytes});
}

void WorkerEvents::session_begin(const SessionFacts& facts) {
  predicted_bytes_ = facts.arena_bytes;
  step_ = facts.from_step;
  socket_.send(WorkerBegin{.folder = std::filesystem::absolute(facts.folder).string(),
                           .from_step = facts.from_step,
                           .to_step = facts.to_step});
  tell_peak(0);
}

void WorkerEvents::step_end(const StepRecord& step, std::int64_t used_bytes) {
  step_ = step.step;
  socket_.send(WorkerStep{.step = step.step, .loss = step.loss, .milliseconds = step.step_ms});
  tell_peak(used_bytes);
}

void WorkerEvents::checkpoint_end(std::int64_t step, const std::filesystem::path& /*folder*/) {
  socket_.send(WorkerCheckpoint{.step = step});
}

void WorkerEvents::progress(const Progress& moment) {
  look_for_stop();
  const Clock::time_point now = Clock::now();
  if (now - told_progress_ < kBetweenProgress) return;
  told_progress_ = now;
  socket_.send(WorkerProgress{.work = std::string(moment.work),
                              .now = std::string(moment.now),
                              .done = moment.done,
                              .total = moment.total});
}

void WorkerEvents::session_end(RunStatus status) {
  if (std::exchange(ended_, true)) return;
  socket_.finish(WorkerDone{.status = status, .step = step_});
}

}  // namespace trainscope
