// Positions of 32 bits, which problems have, as those of containers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainscope::memplan {

inline std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace trainscope::memplan
