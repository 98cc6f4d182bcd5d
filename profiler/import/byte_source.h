// The bytes of a trace file, piece by piece, compressed with gzip or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/core/shared_bytes.h"

namespace trainscope::profiler {

// Gives the next piece; empty: there is no more. A piece lives until the next is asked for.
using ByteSource = std::function<std::string_view()>;

// Of a file's bytes; gzip is told by its first bytes. Throws kBadInput for a stream that is
// damaged, cut short, or expands far beyond what traces do.
ByteSource byte_source(SharedBytes file);

// JSON of traces expands some 20-fold, the same line again and again 500-fold at most.
inline constexpr std::uint64_t kMostExpansion = 500;
inline constexpr std::uint64_t kAlwaysExpands = std::uint64_t{64}
                                                << 20;  // bytes without a question

}  // namespace trainscope::profiler
