// The process: environment, standard streams, and the one place where errors end.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "cli/exit_codes.h"
#include "cli/program.h"
#include "cli/stop_signals.h"
#include "engine/core/text.h"

namespace {

using trainscope::Error;
using trainscope::ErrorCode;
using trainscope::ErrorStyle;

// A file that is opened takes the lowest free number: without this, that of a standard stream which
// the caller closed, and what is meant for the stream would be written into the file.
bool open_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool closed = fcntl(stream, F_GETFD) < 0 && errno == EBADF;
    if (closed && open("/dev/null", O_RDWR) != stream) return false;
  }
  return true;
}

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

// A reader that has seen enough (`trainscope inspect ... | head`) is no failure; a full disk is.
void write_output(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) return;
  trainscope::fail(ErrorCode::kIo, "cannot write to standard output: {}", std::strerror(errno));
}

int report(const Error& error, const ErrorStyle& style) {
  write_error(style.log_json ? trainscope::error_log_line(error)
                             : trainscope::error_text(error, style.color));
  if (style.json) {
    const std::string json = trainscope::error_json(error);
    std::fwrite(json.data(), 1, json.size(), stdout);
    std::fflush(stdout);
  }
  return static_cast<int>(error.code());
}

}  // namespace

int main(int argc, char** argv) {
  if (!open_closed_streams()) return static_cast<int>(ErrorCode::kIo);
  trainscope::end_at_stop_signals();
  // Writing to a closed pipe gives an error code instead of ending the process.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the same for a file beyond `ulimit -f`
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const ErrorStyle style = trainscope::error_style(words, environment, isatty(STDERR_FILENO) != 0);
  try {
    const trainscope::ProgramResult result = trainscope::run_program(words, environment);
    write_output(result.text);
    return result.exit_code;
  } catch (const std::exception& error) {
    return report(trainscope::error_of(error), style);
  }
}
