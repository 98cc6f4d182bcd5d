// Whatever was thrown, as the one error type.
#pragma once

#include <exception>

#include "engine/core/error.h"

namespace trainscope {

// What any exception says to a user: an Error as it is, the others with the nearest code.
Error error_of(const std::exception& exception);

}  // namespace trainscope
