// Reads a child's output until it ends, then parses it.
#include "gui/budget/json_process.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "engine/core/any_error.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "gui/budget/child_process.h"

namespace trainscope::gui {
namespace {

constexpr std::size_t kMostOutputBytes = std::size_t{64} << 20;

// Of an answer that is an error: {"error": {"message": ..., "hint": ...}}.
std::string text_at(const Json& error, std::string_view key) {
  const Json* text = error.is_object() ? error.find(key) : nullptr;
  return text != nullptr && text->is_string() ? text->as_string() : std::string();
}

}  // namespace

JsonProcess::JsonProcess(const std::filesystem::path& program, std::vector<std::string> words) {
  start(program, std::move(words));
}

void JsonProcess::start(const std::filesystem::path& program, std::vector<std::string> words) {
  std::optional<DescriptorPair> output = pipe_pair();
  if (!output) return fail(fmt::format("no process can be started: {}", std::strerror(errno)), "");
  words.emplace_back("--json");
  pid_t process = 0;
  const int error = spawn_child(program, words, {.out = output->child.get()}, process);
  if (error != 0) {
    return fail(fmt::format("'{}' cannot be started: {}", printable(program.string()),
                            std::strerror(error)),
                "the program trainscope has to be beside trainscope-window");
  }
  // Nobody has to wait for it: what the user does comes first.
  constexpr int kBackground = 10;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(process), kBackground);
  process_ = process;
  output_ = std::move(output->ours);
}

JsonProcess::~JsonProcess() {
  if (process_ == 0) return;
  ::kill(process_, SIGTERM);
  forget_child(process_);
}

void JsonProcess::poll() {
  if (phase_ != Phase::kRunning || read_output()) return;
  int status = 0;
  const pid_t ended = ::waitpid(process_, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return;
  process_ = 0;
  end(status);
}

// Whether there may be more.
bool JsonProcess::read_output() {
  std::array<char, 65536> bytes = {};
  while (output_.is_open()) {
    const ssize_t size = ::read(output_.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return true;
    if (size <= 0 || text_.size() > kMostOutputBytes) {
      output_.close();
      break;
    }
    text_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  return false;
}

void JsonProcess::end(int status) {
  const bool is_clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  try {
    json_ = Json::parse(text_);
  } catch (const Error& error) {
    const std::string how = "trainscope " + end_text(status);
    return fail(is_clean ? "its answer cannot be read: " + error.message() : how, "");
  }
  const Json* error = json_.is_object() ? json_.find("error") : nullptr;
  if (error != nullptr) return fail(text_at(*error, "message"), text_at(*error, "hint"));
  if (!is_clean) return fail("trainscope " + end_text(status), "");
  phase_ = Phase::kDone;
}

void JsonProcess::fail(std::string fault, std::string hint) {
  phase_ = Phase::kFailed;
  fault_ = std::move(fault);
  hint_ = std::move(hint);
}

}  // namespace trainscope::gui
