// Mistakes drawn at random: a step, a phase, a node of it, and what is wrong there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tests/engine/bisect/planted_faults.h"

namespace trainscope::test {

// Numbers of a seed, one after the other.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t bound);
  bool chance(double share);

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

struct GeneratedFault {
  Phase phase = Phase::kForward;
  std::string what;   // "scaled by 1.01"
  Expected expected;  // of updates the kind, else the node
};

// Plants one in the graph; none where what was drawn does not fit there: draw again, in a fresh
// graph.
std::optional<GeneratedFault> plant_any(Planter& planter, const Subject& subject, Draw& draw);

}  // namespace trainscope::test
