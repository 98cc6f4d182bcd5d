// Heights below which no placement for several streams can be.
#pragma once

#include <cstdint>
#include <optional>

#include "memplan/streams/clocks.h"
#include "memplan/streams/problem.h"

namespace trainscope::memplan {

// The most bytes alive at one operation, whatever the streams do meanwhile: buffers written with or
// before it and not known by it to be free. With one stream, the live bytes. O((n + operations) k).
[[nodiscard]] std::int64_t heaviest_cut_bytes(const StreamProblem& problem, const Clocks& clocks,
                                              const StreamLifetimes& lifetimes);

// The heaviest set of buffers of which no two may share bytes: as "every use before the birth of"
// is a partial order, an antichain, found by a maximum flow (Dilworth 1950, weighted). At least the
// heaviest cut, and more where the streams are loosely coupled. Nothing where the network would
// have too many arcs to wait for.
[[nodiscard]] std::optional<std::int64_t> heaviest_antichain_bytes(
    const StreamProblem& problem, const Clocks& clocks, const StreamLifetimes& lifetimes);

}  // namespace trainscope::memplan
