// Seeded placement problems for the memplan tests.
#pragma once

#include <cstdint>

#include "memplan/problem.h"

namespace trainscope::memplan::testing {

struct RandomShape {
  int buffers = 20;
  int times = 30;
  std::int64_t largest_bytes = 1000;
  std::int64_t alignment_bytes = 1;
};

// Lives and sizes drawn uniformly; a few buffers are empty and a few live throughout.
Problem random_problem(std::uint64_t seed, const RandomShape& shape);

// The same with some offsets fixed (never in conflict) and some stricter alignments.
Problem random_problem_with_fixed(std::uint64_t seed, const RandomShape& shape);

// One training step of a plain chain: activations of random sizes die in reverse order, each op of
// the backward pass has a gradient that lives until the next one has been made.
Problem chain_problem(int length, std::uint64_t seed);

// One training step of a transformer-like chain: parameters and optimizer state live throughout,
// saved activations die in reverse order, temporaries die at once, weight gradients stay.
Problem training_problem(int layers, std::uint64_t seed);

// Boxes cut out of a rectangle of 1024 times x 1024 bytes, which they fill but for one in twenty
// that is left out: the capacity is 1024, and hard to keep.
Problem tight_problem(int boxes, std::uint64_t seed);

// The same with time running backwards, which changes nothing but the order of births.
Problem reversed(Problem problem);

}  // namespace trainscope::memplan::testing
