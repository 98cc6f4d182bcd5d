// Vector clocks (Fidge 1988, Mattern 1989): what has ended in every stream before an operation
// begins, and from that when buffers are alive (as SOMAS in MindSpore does it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "memplan/streams/problem.h"

namespace trainscope::memplan {

struct Clocks {
  std::int32_t streams = 1;
  // Each operation after all that it waits for, otherwise as in the list; shorter than the list
  // where operations wait for each other in a circle.
  std::vector<std::int32_t> order = {};
  std::vector<std::vector<std::int32_t>> in_stream = {};  // the operations of each stream
  std::vector<std::int32_t> position = {};                // of each operation in its stream
  // [operation * streams + stream]: how many of the stream's operations have ended before it.
  std::vector<std::int32_t> seen = {};

  [[nodiscard]] std::int32_t seen_by(std::int32_t operation, std::int32_t stream) const {
    return seen[static_cast<std::size_t>(operation) * static_cast<std::size_t>(streams) +
                static_cast<std::size_t>(stream)];
  }
  [[nodiscard]] bool happens_before(const StreamProblem& problem, std::int32_t first,
                                    std::int32_t second) const {
    const std::int32_t stream = problem.operations[static_cast<std::size_t>(first)].stream;
    return seen_by(second, stream) > position[static_cast<std::size_t>(first)];
  }
};

// Needs streams and indices in range.
[[nodiscard]] Clocks find_clocks(const StreamProblem& problem);

// When the buffers are alive, in positions of each stream: [buffer * streams + stream].
struct StreamLifetimes {
  static constexpr std::int32_t kNever = std::numeric_limits<std::int32_t>::max();

  std::int32_t streams = 1;
  std::vector<std::int32_t> seen_at_birth = {};  // operations that have ended before it is written
  std::vector<std::int32_t> used_until = {};     // behind its last use there; 0 without one
  // The stream's operations from `born` on come with or after the producer; those from `free` on
  // come after every use. Each is the length of the stream where there are none.
  std::vector<std::int32_t> born = {};
  std::vector<std::int32_t> free = {};

  [[nodiscard]] std::size_t at(std::size_t buffer, std::int32_t stream) const {
    return buffer * static_cast<std::size_t>(streams) + static_cast<std::size_t>(stream);
  }
  // Every use of `first` happens before the birth of `second`.
  [[nodiscard]] bool before(std::size_t first, std::size_t second) const {
    const std::size_t a = at(first, 0);
    const std::size_t b = at(second, 0);
    for (std::size_t s = 0; s < static_cast<std::size_t>(streams); ++s) {
      if (used_until[a + s] > seen_at_birth[b + s]) return false;
    }
    return true;
  }
  [[nodiscard]] bool meet(std::size_t a, std::size_t b) const {
    return !before(a, b) && !before(b, a);
  }
};

// Needs a clean problem.
[[nodiscard]] StreamLifetimes find_lifetimes(const StreamProblem& problem, const Clocks& clocks);

}  // namespace trainscope::memplan
