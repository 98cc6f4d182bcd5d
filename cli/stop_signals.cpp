// A thread waits for the signals; nothing runs in a signal handler.
#include "cli/stop_signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>

#include "cli/exit_codes.h"
#include "engine/core/error.h"

namespace trainscope {
namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

int exit_code_of(std::uint32_t signal) {
  return signal == SIGINT ? kExitInterrupted : kExitTerminated;
}

}  // namespace

StopSignals::StopSignals() {
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  quit_ = eventfd(0, EFD_CLOEXEC);
  require(signals_ >= 0 && quit_ >= 0, ErrorCode::kIo, "cannot wait for signals");
  thread_ = std::thread([this] { wait(); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  if (write(quit_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  close(signals_);
  close(quit_);
  const sigset_t set = stop_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

void StopSignals::wait() {
  while (true) {
    std::array<pollfd, 2> files = {pollfd{.fd = signals_, .events = POLLIN, .revents = 0},
                                   pollfd{.fd = quit_, .events = POLLIN, .revents = 0}};
    if (poll(files.data(), files.size(), -1) < 0) continue;
    if (files[1].revents != 0) return;
    signalfd_siginfo info = {};
    if (read(signals_, &info, sizeof(info)) != sizeof(info)) continue;
    const int code = exit_code_of(info.ssi_signo);
    if (requested_.exchange(code) != 0) _exit(code);
  }
}

}  // namespace trainscope
