// fork and exec, a pipe for each rank but the first, and one loop over signals and pipes.
#include "cli/launch/rank_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "engine/core/error.h"

namespace trainscope {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr std::chrono::seconds kUntilAsked{1};
constexpr std::chrono::seconds kUntilKilled{10};
constexpr int kLookMilliseconds = 200;
constexpr int kTextBytes = 4096;  // of a rank's text that are read at a time

std::string system_text() { return std::error_code(errno, std::generic_category()).message(); }

sigset_t signals_of_launch() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// What a rank finds in its environment besides what this process has: the names that torchrun
// gives, the flag of `train`, and what is `given`.
std::vector<std::string> environment_of(int rank, int ranks, int file,
                                        const std::vector<std::string>& given) {
  std::vector<std::string> own = given;
  own.insert(own.end(),
             {fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", ranks),
              fmt::format("LOCAL_RANK={}", rank), fmt::format("LOCAL_WORLD_SIZE={}", ranks),
              fmt::format("TRAINSCOPE_RANKS_FD={}/{}@{}", rank, ranks, file)});
  std::vector<std::string> all = own;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view text = *each;
    const std::string_view name = text.substr(0, text.find('=') + 1);
    const bool replaced =
        std::ranges::any_of(own, [name](const std::string& o) { return o.starts_with(name); });
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

// Between fork and exec: calls of the system alone. `error_end`: -1, or where standard error goes.
[[noreturn]] void become_rank(int file, int error_end, char* const* words, char* const* variables) {
  setpgid(0, 0);  // the terminal's signals come from the process that started it, once
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  const sigset_t mine = signals_of_launch();
  sigprocmask(SIG_UNBLOCK, &mine, nullptr);
  fcntl(file, F_SETFD, 0);
  if (error_end >= 0) {
    const int nothing = open("/dev/null", O_WRONLY);
    if (nothing >= 0) dup2(nothing, STDOUT_FILENO);
    dup2(error_end, STDERR_FILENO);
  }
  execve(kThisProgram, words, variables);
  _exit(static_cast<int>(ErrorCode::kIo));
}

}  // namespace

RankProcesses::RankProcesses(int ranks, const RankLine& line)
    : file_(RankMemory::make_file(ranks)),
      memory_(file_, ranks),
      processes_(static_cast<std::size_t>(ranks)) {
  const sigset_t mine = signals_of_launch();
  sigprocmask(SIG_BLOCK, &mine, nullptr);
  signals_ = signalfd(-1, &mine, SFD_CLOEXEC | SFD_NONBLOCK);
  require(signals_ >= 0, ErrorCode::kRunFailed, "cannot listen to signals: {}", system_text());
  try {
    for (int r = 0; r < ranks; ++r) start(r, line);
  } catch (...) {
    send_to_all(SIGKILL);
    throw;
  }
}

RankProcesses::~RankProcesses() {
  for (const Process& process : processes_) {
    if (process.standard_error >= 0) close(process.standard_error);
  }
  close(signals_);
  close(file_);
  const sigset_t mine = signals_of_launch();
  sigprocmask(SIG_UNBLOCK, &mine, nullptr);
}

void RankProcesses::start(int rank, const RankLine& line) {
  std::array<int, 2> ends = {-1, -1};
  if (rank > 0) {
    require(pipe2(ends.data(), O_CLOEXEC) == 0, ErrorCode::kIo,
            "cannot make a pipe for rank {}: {}", rank, system_text());
  }
  std::vector<std::string> words = {"trainscope"};
  words.insert(words.end(), line.words.begin(), line.words.end());
  std::vector<std::string> variables = environment_of(rank, memory_.ranks(), file_, line.variables);
  const std::vector<char*> word_pointers = pointers(words);
  const std::vector<char*> variable_pointers = pointers(variables);
  const pid_t child = fork();
  if (child == 0) become_rank(file_, ends[1], word_pointers.data(), variable_pointers.data());
  Process& process = processes_[static_cast<std::size_t>(rank)];
  process = {.id = child, .standard_error = ends[0]};
  if (ends[1] >= 0) close(ends[1]);
  require(child > 0, ErrorCode::kOutOfMemory, "cannot start rank {}: {}", rank, system_text());
}

bool RankProcesses::any_is_left() const {
  return std::ranges::any_of(processes_, [](const Process& process) { return process.id > 0; });
}

RankEnd RankProcesses::wait() {
  while (any_is_left()) {
    look();
    reap();
    end_others();
  }
  for (int r = 0; r < memory_.ranks(); ++r) hear_rest(r);
  return cause_.value_or(RankEnd{});
}

// For signals and texts of ranks, or a while.
void RankProcesses::look() {
  std::vector<pollfd> watched = {{.fd = signals_, .events = POLLIN, .revents = 0}};
  for (const Process& process : processes_) {
    watched.push_back({.fd = process.standard_error, .events = POLLIN, .revents = 0});
  }
  if (poll(watched.data(), watched.size(), kLookMilliseconds) <= 0) return;
  if (watched[0].revents != 0) pass_on_signals();
  for (std::size_t r = 0; r < processes_.size(); ++r) {
    if (watched[r + 1].revents != 0) hear(static_cast<int>(r));
  }
}

void RankProcesses::pass_on_signals() {
  signalfd_siginfo info = {};
  while (read(signals_, &info, sizeof info) == ssize_t{sizeof info}) {
    const auto signal = static_cast<int>(info.ssi_signo);
    if (signal != SIGCHLD) send_to_all(signal);
  }
}

void RankProcesses::hear(int rank) {
  Process& process = processes_[static_cast<std::size_t>(rank)];
  std::array<char, kTextBytes> bytes;
  const ssize_t count = read(process.standard_error, bytes.data(), bytes.size());
  if (count < 0 && errno == EINTR) return;
  if (count > 0) process.line.append(bytes.data(), static_cast<std::size_t>(count));
  const bool is_over = count <= 0;
  if (is_over && !process.line.empty()) process.line += '\n';
  for (std::size_t end = process.line.find('\n'); end != std::string::npos;
       end = process.line.find('\n')) {
    fmt::print(stderr, "rank {}: {}\n", rank, process.line.substr(0, end));
    process.line.erase(0, end + 1);
  }
  if (!is_over) return;
  close(process.standard_error);
  process.standard_error = -1;
}

// What a rank left in its pipe when it ended. A process that it started may have the other end
// still, which is not waited for.
void RankProcesses::hear_rest(int rank) {
  const Process& process = processes_[static_cast<std::size_t>(rank)];
  if (process.standard_error < 0) return;
  fcntl(process.standard_error, F_SETFL, O_NONBLOCK);
  const int reads = fcntl(process.standard_error, F_GETPIPE_SZ) / kTextBytes + 1;
  for (int i = 0; i < reads && process.standard_error >= 0; ++i) hear(rank);
}

void RankProcesses::reap() {
  for (std::size_t r = 0; r < processes_.size(); ++r) {
    Process& process = processes_[r];
    int status = 0;
    if (process.id <= 0 || waitpid(process.id, &status, WNOHANG) != process.id) continue;
    process.id = -1;
    memory_.note_end(static_cast<int>(r));
    note({.rank = static_cast<int>(r),
          .code = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
          .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0});
  }
}

// Ends that this process has asked for say nothing.
void RankProcesses::note(const RankEnd& end) {
  if (weight(end) == 0 || ending_signal_ != 0) return;
  if (!fault_time_ && ends_others(end)) fault_time_ = Clock::now();
  if (!cause_ || weight(end) > weight(*cause_)) cause_ = end;
}

void RankProcesses::end_others() {
  if (!fault_time_) return;
  const Clock::duration since = Clock::now() - *fault_time_;
  const int signal = since >= kUntilKilled ? SIGKILL : since >= kUntilAsked ? SIGTERM : 0;
  if (signal == ending_signal_) return;
  ending_signal_ = signal;
  send_to_all(signal);
}

void RankProcesses::send_to_all(int signal) {
  for (const Process& process : processes_) {
    if (process.id > 0) kill(process.id, signal);
  }
}

}  // namespace trainscope
