// Seeded problems of several streams, and the relation between their operations by brute force.
#pragma once

#include <cstdint>
#include <vector>

#include "memplan/streams/problem.h"

namespace trainscope::memplan::testing {

struct StreamShape {
  int streams = 2;
  int operations = 12;
  int buffers = 7;
  int waits_percent = 40;  // operations that wait for one of another stream
  std::int64_t largest_bytes = 9;
};

// A random order of operations on random streams, each sometimes waiting for earlier ones; the list
// is shuffled so that operations may come before what they wait for. Buffers are read by random
// operations that come after their producer; some are there from the beginning, some are kept.
StreamProblem random_stream_problem(std::uint64_t seed, const StreamShape& shape);

// A training step of a chain that parks its activations on the host: one stream computes, one
// copies out, one copies back, two layers ahead of the backward pass.
StreamProblem offload_step(int layers, std::uint64_t seed);

// [first][second]: the first ends before the second begins, by closing the arcs transitively.
using Relation = std::vector<std::vector<char>>;
Relation reachability(const StreamProblem& problem);

// Every use of buffer `a` is over before buffer `b` is written.
bool over_before(const StreamProblem& problem, const Relation& reach, std::size_t a, std::size_t b);

}  // namespace trainscope::memplan::testing
