// A logger that is passed along: text lines for people, JSON lines for programs.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/core/file.h"

namespace trainscope {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError, kOff };

// "debug", "info", "warning", "error", "off".
std::string_view name_of(LogLevel level);

enum class LogFormat : std::uint8_t { kText, kJson };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;  // of the stream
  LogFormat format = LogFormat::kText;
  std::FILE* stream = stderr;  // null: none
  // Gets every message of every level too; null: nobody. Called by whoever logs.
  std::function<void(LogLevel, std::string_view)> sink = nullptr;
};

// May be used by several threads at once. Text: "warning: message"; info without its level.
// JSON: {"time":"2026-11-21T09:30:00.125Z","level":"info","message":"..."}.
// Messages hold text from files only after printable().
class Logger {
 public:
  explicit Logger(const LogOptions& options = {}) : options_(options) {}

  // From now on every message of level kDebug and above also goes to this file as a JSON line.
  void open_file(const FolderEntry& entry);
  bool enabled(LogLevel level) const;

  template <typename... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(LogLevel::kDebug)) {
      write(LogLevel::kDebug, fmt::format(format, std::forward<Args>(args)...));
    }
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::kInfo, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void warning(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::kWarning, fmt::format(format, std::forward<Args>(args)...));
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args&&... args) {
    write(LogLevel::kError, fmt::format(format, std::forward<Args>(args)...));
  }
  void write(LogLevel level, std::string_view message);

 private:
  LogOptions options_;
  mutable std::mutex mutex_;
  std::optional<AppendFile> file_;
};

}  // namespace trainscope
