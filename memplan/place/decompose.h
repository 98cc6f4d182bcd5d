// Splits a problem into buffers that live throughout and sections of time that do not interact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memplan/place/placer.h"
#include "memplan/problem.h"

namespace trainscope::memplan {

// Buffers that share no time with the movable buffers of another section: placed on its own.
struct Section {
  Task task = {};
  std::vector<std::size_t> buffers = {};  // of the problem, one per box of the task
};

struct Decomposition {
  // Offsets of fixed, empty and persistent buffers; the others are 0 until their section is placed.
  std::vector<std::int64_t> offsets = {};
  std::vector<Section> sections = {};
  // The persistent buffers can lie at the bottom of a lowest placement: always so unless an
  // obstacle or a stricter alignment may make another place better.
  bool stacking_is_free = true;
};

[[nodiscard]] Decomposition decompose(const Problem& problem, std::int64_t bound_bytes);

}  // namespace trainscope::memplan
