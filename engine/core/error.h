// The one exception type for bad input, and CHECK for our own mistakes.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

// The process exit code that an error leads to; listed by `trainscope help exit-codes`.
enum class ErrorCode {
  kRunFailed = 1,    // anything without a code of its own
  kUsage = 2,        // command line or configuration
  kBadInput = 3,     // model, data, reference or checkpoint file; unsupported op; missing kernel
  kNoDevice = 4,     // no such device or driver
  kOutOfMemory = 5,  // out of memory, or no plan fits the budget
  kIo = 6,           // disk full, permission, missing file or folder
  kNumeric = 7,      // NaN or infinity where a number must be
  kDistributed = 8,
  kMismatch = 9,  // a comparison outside its tolerance
};

// What went wrong, where (outermost last), and what to do about it.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message);
  Error(const Error& other);
  Error(Error&& other) noexcept;
  Error& operator=(const Error& other);
  Error& operator=(Error&& other) noexcept;
  ~Error() override;

  Error& at(std::string where);
  // The first hint given stays.
  Error& hint(std::string text);
  // The input breaks no rule, this version just cannot do what it asks for.
  Error& mark_unsupported() {
    unsupported_ = true;
    return *this;
  }

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::vector<std::string>& context() const { return context_; }
  const std::string& hint() const { return hint_; }
  bool unsupported() const { return unsupported_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::string hint_;
  std::vector<std::string> context_;
  bool unsupported_ = false;
};

// The code of a throw is out of line: a thousand places have one.
[[noreturn]] void throw_error(ErrorCode code, fmt::string_view format, fmt::format_args arguments);
[[noreturn]] void throw_unsupported(fmt::string_view format, fmt::format_args arguments);

template <typename... Args>
[[noreturn]] void fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  throw_error(code, format, fmt::make_format_args(args...));
}

template <typename... Args>
void require(bool ok, ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw_error(code, format, fmt::make_format_args(args...));
}

// The same for valid input that this version cannot handle: kBadInput, marked as unsupported.
template <typename... Args>
[[noreturn]] void fail_unsupported(fmt::format_string<Args...> format, Args&&... args) {
  throw_unsupported(format, fmt::make_format_args(args...));
}

template <typename... Args>
void require_supported(bool ok, fmt::format_string<Args...> format, Args&&... args) {
  if (!ok) throw_unsupported(format, fmt::make_format_args(args...));
}

[[noreturn]] void check_failed(std::string_view expression, std::string_view file, int line);

}  // namespace trainscope

// An invariant of our own code, checked in every build; never for user input.
#define CHECK_INVARIANT(condition) \
  ((condition) ? void(0) : ::trainscope::check_failed(#condition, __FILE__, __LINE__))
