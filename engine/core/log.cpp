// Writing of log messages to a stream and a file.
#include "engine/core/log.h"

#include "engine/core/json.h"
#include "engine/core/timestamp.h"

namespace trainscope {
namespace {

std::string json_line(LogLevel level, std::string_view message) {
  return Json::object({{"time", utc_timestamp()}, {"level", name_of(level)}, {"message", message}})
      .dump();
}

std::string text_line(LogLevel level, std::string_view message) {
  if (level == LogLevel::kInfo) return std::string(message);
  return fmt::format("{}: {}", name_of(level), message);
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "?";
}

void Logger::open_file(const FolderEntry& entry) {
  const std::lock_guard lock(mutex_);
  file_.emplace(entry);
}

bool Logger::enabled(LogLevel level) const {
  const std::lock_guard lock(mutex_);
  return file_.has_value() || options_.sink ||
         (options_.stream != nullptr && level >= options_.level);
}

void Logger::write(LogLevel level, std::string_view message) {
  if (options_.sink) options_.sink(level, message);
  const std::lock_guard lock(mutex_);
  if (options_.stream != nullptr && level >= options_.level) {
    const bool json = options_.format == LogFormat::kJson;
    const std::string line = (json ? json_line(level, message) : text_line(level, message)) + "\n";
    // A closed stderr must not end a run: what fwrite returns is of no use.
    std::fwrite(line.data(), 1, line.size(), options_.stream);
    std::fflush(options_.stream);
  }
  if (file_) file_->write_line(json_line(level, message));
}

}  // namespace trainscope
