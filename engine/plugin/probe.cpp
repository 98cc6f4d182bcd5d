// Looks at an ELF header; loads a library in a child, which says over a pipe how far it came.
#include "engine/plugin/probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);
constexpr std::size_t kMostReasonBytes = 1024;

// Offsets and values of the ELF header, as its specification has them.
constexpr std::size_t kElfHeaderBytes = 64;
constexpr std::size_t kClassAt = 4;
constexpr std::size_t kTypeAt = 16;
constexpr std::size_t kMachineAt = 18;
constexpr std::byte kClass64{2};
constexpr unsigned kSharedObject = 3;
constexpr unsigned kMachineX86 = 62;

unsigned half_word(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]) | std::to_integer<unsigned>(bytes[at + 1]) << 8U;
}

// --- In the child --------------------------------------------------------------------------------

// 'l' loading, 'e' in the entry, 't' looking at its tables, 'd' done; 'n': the entry gives nothing;
// or 'f' and why the library cannot be loaded.
void tell(int pipe, char step, std::string_view text = {}) {
  std::array<char, kMostReasonBytes> message = {};
  message[0] = step;
  const std::size_t length = std::min(text.size(), message.size() - 1);
  std::copy_n(text.data(), length, message.begin() + 1);
  const ssize_t written = write(pipe, message.data(), length + 1);
  if (written < 0) _exit(1);
}

// What a plugin prints there is of no use to anybody.
void be_silent() {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, stream);
}

using Look = std::function<void(const plugin::Plugin&)>;

[[noreturn]] void load_and_tell(const char* file, int pipe, const Look& look) {
  be_silent();
  tell(pipe, 'l');
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    tell(pipe, 'f', text == nullptr ? "it cannot be loaded" : text);
    _exit(0);
  }
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
  if (entry == nullptr) {
    tell(pipe, 'f', fmt::format("it is no plugin: it does not export {}", kPluginEntry));
    _exit(0);
  }
  tell(pipe, 'e');
  const plugin::Plugin* given = entry(plugin::kVersion);
  if (given == nullptr) {
    tell(pipe, 'n');
    _exit(0);
  }
  tell(pipe, 't');
  try {
    look(*given);
  } catch (const std::exception&) {  // the process that goes on with the plugin says why
  }
  tell(pipe, 'd');
  _exit(0);
}

// --- In this process -----------------------------------------------------------------------------

// What the child told, to its end; kills it when that takes too long.
struct Heard {
  std::string text;
  bool in_time = true;
};

Heard hear(int pipe, pid_t child) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + kPatience;
  Heard heard;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wanted{.fd = pipe, .events = POLLIN, .revents = 0};
    const int ready = left <= 0 ? 0 : poll(&wanted, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      kill(child, SIGKILL);
      heard.in_time = false;
      return heard;
    }
    std::array<char, kMostReasonBytes> bytes = {};
    const ssize_t count = read(pipe, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return heard;
    heard.text.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::optional<std::string> fault_of(const Heard& heard, int status) {
  std::string_view where = "while it was loaded";
  if (heard.text == "le") where = "in its entry";
  if (heard.text == "let") where = "when its tables were read";
  if (!heard.in_time) {
    return fmt::format("it did not come to an end {} within {} s", where, kPatience.count());
  }
  if (heard.text.starts_with("lf")) return printable(heard.text.substr(2), kMostReasonBytes);
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fmt::format("it crashed {}: signal {} ({})", where, number, strsignal(number));
  }
  if (heard.text == "letd") return std::nullopt;
  if (heard.text == "len") {
    return fmt::format("it does not work with version {} of the plugin interface",
                       plugin::kVersion);
  }
  return fmt::format("it ended the process {}: exit code {}", where, WEXITSTATUS(status));
}

}  // namespace

std::optional<std::string> find_elf_fault(const std::filesystem::path& file) {
  static constexpr std::array<std::byte, 4> kMagic = {std::byte{0x7f}, std::byte{'E'},
                                                      std::byte{'L'}, std::byte{'F'}};
  const MappedFile mapped = MappedFile::open(file);
  std::array<std::byte, kElfHeaderBytes> header = {};
  if (mapped.size_bytes() < header.size()) return "it is no ELF file, which libraries are";
  mapped.read(0, header);
  if (!std::equal(kMagic.begin(), kMagic.end(), header.begin())) {
    return "it is no ELF file, which libraries are";
  }
  const unsigned machine = half_word(header, kMachineAt);
  if (header[kClassAt] != kClass64 || machine != kMachineX86) {
    return fmt::format(
        "it is for another architecture (ELF machine {}), this program is for x86-64", machine);
  }
  if (half_word(header, kTypeAt) != kSharedObject) return "it is no shared library";
  return std::nullopt;
}

std::optional<std::string> find_load_fault(const std::filesystem::path& file, const Look& look) {
  std::array<int, 2> ends = {};
  require(pipe2(ends.data(), O_CLOEXEC) == 0, ErrorCode::kRunFailed, "cannot make a pipe: {}",
          std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGINT}) {
      signal(number, SIG_DFL);
    }
    load_and_tell(file.c_str(), ends[1], look);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    fail(ErrorCode::kRunFailed, "cannot start a process that tries the plugin: {}",
         std::strerror(errno));
  }
  const Heard heard = hear(ends[0], child);
  close(ends[0]);
  return fault_of(heard, wait_for(child));
}

OpenedPlugin open_plugin(const std::filesystem::path& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = dlerror();
    return {.fault = text == nullptr ? "it cannot be loaded" : printable(text, kMostReasonBytes)};
  }
  const auto entry = reinterpret_cast<PluginEntry>(dlsym(library, kPluginEntry));
  if (entry == nullptr) return {.fault = fmt::format("it does not export {}", kPluginEntry)};
  const plugin::Plugin* opened = entry(plugin::kVersion);
  if (opened == nullptr) return {.fault = "its entry gives nothing"};
  return {.plugin = opened, .fault = {}};
}

}  // namespace trainscope
