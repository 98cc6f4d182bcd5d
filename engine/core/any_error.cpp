// How exceptions get their codes.
#include "engine/core/any_error.h"

#include <new>

#include "engine/core/text.h"

namespace trainscope {

Error error_of(const std::exception& exception) {
  if (const auto* error = dynamic_cast<const Error*>(&exception)) return *error;
  if (dynamic_cast<const std::bad_alloc*>(&exception) != nullptr) {
    return Error(ErrorCode::kOutOfMemory, "out of memory")
        .hint("a smaller --batch or --seq needs less");
  }
  return Error(ErrorCode::kRunFailed, printable(exception.what()));
}

}  // namespace trainscope
