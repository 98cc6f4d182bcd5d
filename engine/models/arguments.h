// Typed access to a builder's arguments, which models.cpp has completed and checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/core/error.h"
#include "engine/models/models.h"

namespace trainscope {

template <typename T>
const T& argument(const ModelArguments& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  CHECK_INVARIANT(found != arguments.end());
  return std::get<T>(found->second);
}

inline std::int64_t integer(const ModelArguments& arguments, std::string_view name) {
  return argument<std::int64_t>(arguments, name);
}

// Throws kUsage unless `whole` is a multiple of `divisor`; the names are those of the options.
inline void check_multiple(const ModelArguments& arguments, std::string_view whole,
                           std::string_view divisor) {
  if (integer(arguments, whole) % integer(arguments, divisor) == 0) return;
  fail(ErrorCode::kUsage, "--{} {} cannot be shared by --{} {}: it must be a multiple", whole,
       integer(arguments, whole), divisor, integer(arguments, divisor));
}

}  // namespace trainscope
