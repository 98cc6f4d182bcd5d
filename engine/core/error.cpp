// What happens when one of our own invariants does not hold.
#include "engine/core/error.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace trainscope {

Error::Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
Error::Error(const Error& other) = default;
Error::Error(Error&& other) noexcept = default;
Error& Error::operator=(const Error& other) = default;
Error& Error::operator=(Error&& other) noexcept = default;
Error::~Error() = default;

Error& Error::at(std::string where) {
  context_.push_back(std::move(where));
  return *this;
}

Error& Error::hint(std::string text) {
  if (hint_.empty()) hint_ = std::move(text);
  return *this;
}

void throw_error(ErrorCode code, fmt::string_view format, fmt::format_args arguments) {
  throw Error(code, fmt::vformat(format, arguments));
}

void throw_unsupported(fmt::string_view format, fmt::format_args arguments) {
  throw Error(ErrorCode::kBadInput, fmt::vformat(format, arguments)).mark_unsupported();
}

// Where a debugger or a sanitizer looks on (debug and sanitizer builds), the process stops at the
// place. Elsewhere it is an exception like any other that is no Error, so that what is open is
// closed: a run's session ends as failed, the program exits with 1.
void check_failed(std::string_view expression, std::string_view file, int line) {
  const std::string text =
      fmt::format("{}:{}: check failed: {}; this is a bug in trainscope, please report it", file,
                  line, expression);
#ifdef TRAINSCOPE_CHECKS_ABORT
  std::fprintf(stderr, "%s\n", text.c_str());
  std::fflush(stderr);
  std::abort();
#else
  throw std::logic_error(text);
#endif
}

}  // namespace trainscope
