// A child process on a socket pair.
#include "gui/budget/worker_process.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "gui/budget/child_process.h"

namespace trainscope::gui {
namespace {

using Phase = WorkerState::Phase;

constexpr std::size_t kMostErrorBytes = 4096;
// Of one poll(): whoever shows frames has other things to do.
constexpr int kMostReads = 8;

// The first line of what a program wrote on standard error.
std::string first_line(const std::string& text) {
  return printable(trim(std::string_view(text).substr(0, text.find('\n'))));
}

}  // namespace

WorkerProcess::WorkerProcess(const std::filesystem::path& program, std::vector<std::string> words) {
  start(program, std::move(words));
}

void WorkerProcess::start(const std::filesystem::path& program, std::vector<std::string> words) {
  std::optional<DescriptorPair> socket = socket_pair();
  std::optional<DescriptorPair> errors = pipe_pair();
  if (!socket || !errors) {
    return fail(fmt::format("no worker can be started: {}", std::strerror(errno)), "");
  }
  words.emplace_back("--worker-fd");
  words.push_back(std::to_string(kChildDescriptor));
  pid_t process = 0;
  const int error = spawn_child(
      program, words, {.errors = errors->child.get(), .socket = socket->child.get()}, process);
  if (error != 0) {
    return fail(fmt::format("the worker '{}' cannot be started: {}", printable(program.string()),
                            std::strerror(error)),
                "the program trainscope has to be beside trainscope-window");
  }
  state_.process = process;
  socket_ = std::move(socket->ours);
  errors_ = std::move(errors->ours);
}

// The worker notices that its owner is gone. Somebody has to take its exit status.
WorkerProcess::~WorkerProcess() {
  socket_.close();
  if (state_.process == 0 || ended_) return;
  forget_child(static_cast<pid_t>(state_.process));
}

bool WorkerProcess::poll() {
  if (state_.has_ended()) return false;
  read_errors();
  bool is_new = false;
  try {
    is_new = read_messages();
  } catch (const Error& error) {
    // It ends by itself, with a checkpoint, when this end is closed.
    fail(fmt::format("the worker sent what is no message of protocol {}: {}", kWorkerProtocol,
                     error.message()),
         "trainscope and trainscope-window have to be of the same version");
    socket_.close();
    return true;
  }
  return look_for_end() || is_new;
}

void WorkerProcess::read_errors() {
  std::array<char, 1024> bytes = {};
  for (int i = 0; i < kMostReads && errors_.is_open(); ++i) {
    const ssize_t size = ::read(errors_.get(), bytes.data(), bytes.size());
    if (size < 0) break;
    if (size == 0) {
      errors_.close();
      break;
    }
    error_text_.append(bytes.data(), static_cast<std::size_t>(size));
    if (error_text_.size() > kMostErrorBytes) {
      error_text_.erase(0, error_text_.size() - kMostErrorBytes);
    }
  }
}

bool WorkerProcess::read_messages() {
  bool is_new = false;
  std::array<char, 4096> bytes = {};
  for (int i = 0; i < kMostReads && socket_.is_open(); ++i) {
    const ssize_t size = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (size <= 0) {
      socket_.close();
      break;
    }
    lines_.add({bytes.data(), static_cast<std::size_t>(size)});
    while (const std::optional<std::string> line = lines_.next()) {
      if (const std::optional<WorkerMessage> message = worker_message(*line)) take(*message);
      is_new = true;
    }
  }
  return is_new;
}

void WorkerProcess::take(const WorkerMessage& message) {
  if (const auto* hello = std::get_if<WorkerHello>(&message)) {
    require(hello->protocol == kWorkerProtocol, ErrorCode::kBadInput, "it speaks protocol {}",
            hello->protocol);
    greeted_ = true;
    return;
  }
  require(greeted_, ErrorCode::kBadInput, "a worker's first message says hello");
  if (const auto* progress = std::get_if<WorkerProgress>(&message)) state_.progress = *progress;
  if (const auto* begin = std::get_if<WorkerBegin>(&message)) {
    state_.begin = *begin;
    if (state_.phase == Phase::kStarting) state_.phase = Phase::kTraining;
  }
  if (const auto* peak = std::get_if<WorkerPeak>(&message)) state_.peak = *peak;
  if (const auto* step = std::get_if<WorkerStep>(&message)) state_.steps.push_back(*step);
  if (const auto* saved = std::get_if<WorkerCheckpoint>(&message)) {
    state_.checkpoint_step = saved->step;
  }
  if (const auto* done = std::get_if<WorkerDone>(&message)) done_ = *done;
  if (const auto* fault = std::get_if<WorkerFault>(&message)) fault_ = *fault;
}

// Once it has closed its end, and after its last message was read.
bool WorkerProcess::look_for_end() {
  if (socket_.is_open()) return false;
  int status = 0;
  const pid_t ended = ::waitpid(static_cast<pid_t>(state_.process), &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
  ended_ = true;
  end(status);
  return true;
}

void WorkerProcess::end(int status) {
  const bool clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (done_ && clean) {
    const bool complete = state_.begin && done_->step >= state_.begin->to_step;
    const bool finished = complete || done_->status == RunStatus::kFinished;
    state_.phase = finished ? Phase::kFinished : Phase::kStopped;
    return;
  }
  if (fault_) {
    const std::string where = fault_->where.empty() ? "" : fmt::format(" ({})", fault_->where[0]);
    return fail(fault_->message + where, fault_->hint);
  }
  read_errors();
  const std::string said = first_line(error_text_);
  std::string text = fmt::format("the worker {}", end_text(status));
  if (!state_.steps.empty()) text += fmt::format(" after step {}", state_.steps.back().step);
  if (!said.empty()) text += ": " + said;
  if (!state_.begin) return fail(std::move(text), "");
  const std::int64_t step = std::max(state_.checkpoint_step, state_.begin->from_step);
  fail(std::move(text), fmt::format("the run goes on from step {}: trainscope train --resume {}",
                                    step, printable(state_.begin->folder)));
}

void WorkerProcess::fail(std::string fault, std::string hint) {
  state_.phase = Phase::kFailed;
  state_.fault = std::move(fault);
  state_.hint = std::move(hint);
}

void WorkerProcess::stop() {
  if (state_.has_ended() || state_.phase == Phase::kStopping || !socket_.is_open()) return;
  const std::string line = worker_line(WorkerStop{});
  ::send(socket_.get(), line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  state_.phase = Phase::kStopping;
}

}  // namespace trainscope::gui
