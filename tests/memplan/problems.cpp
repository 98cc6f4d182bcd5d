// Seeded placement problems for the memplan tests.
#include "tests/memplan/problems.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "memplan/solution.h"
#include "tests/memplan/dice.h"

namespace trainscope::memplan::testing {

using std::int64_t;

Problem random_problem(std::uint64_t seed, const RandomShape& shape) {
  Dice dice(seed);
  Problem problem{.alignment_bytes = shape.alignment_bytes};
  for (int i = 0; i < shape.buffers; ++i) {
    const int64_t lower = dice.between(0, shape.times - 1);
    const int64_t longest =
        std::min<int64_t>(shape.times, lower + 1 + dice.between(0, shape.times));
    Buffer buffer{.id = "r" + std::to_string(i),
                  .lower = lower,
                  .upper = dice.between(lower + 1, longest),
                  .size_bytes = dice.between(1, shape.largest_bytes)};
    if (dice.between(0, 30) == 0) buffer.size_bytes = 0;
    if (dice.between(0, 20) == 0) {
      buffer.lower = 0;
      buffer.upper = shape.times;
    }
    problem.buffers.push_back(buffer);
  }
  return problem;
}

Problem random_problem_with_fixed(std::uint64_t seed, const RandomShape& shape) {
  Problem problem = random_problem(seed, shape);
  Dice dice(seed + 1);
  for (Buffer& buffer : problem.buffers) {
    if (dice.between(0, 5) == 0) {
      buffer.alignment_bytes = problem.alignment_bytes << dice.between(1, 3);
    }
  }
  const Result result = solve(problem, {.most_visits = 0});  // any placement will do
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (dice.between(0, 4) == 0) problem.buffers[i].fixed_offset = result.solution.offsets[i];
  }
  return problem;
}

Problem chain_problem(int length, std::uint64_t seed) {
  Dice dice(seed);
  Problem problem;
  for (int64_t i = 0; i < length; ++i) {
    const int64_t backward = 2 * int64_t{length} - i;
    const int64_t size = 64 * dice.between(1, 1000);
    problem.buffers.push_back({.lower = i, .upper = backward + 1, .size_bytes = size});
    problem.buffers.push_back({.lower = backward, .upper = backward + 2, .size_bytes = size});
    if (dice.between(0, 2) == 0) {
      problem.buffers.push_back({.lower = i, .upper = i + 1, .size_bytes = size * 2});
    }
  }
  return problem;
}

Problem training_problem(int layers, std::uint64_t seed) {
  Dice dice(seed);
  Problem problem;
  const int64_t width = 256 * dice.between(1, 8);
  const int64_t tokens = 64 * dice.between(1, 32);
  // Values of one layer, in units of tokens x width x 2 bytes: attention and the wide part of the
  // MLP are several times the width, the statistics of the norms are tiny.
  const std::array<int64_t, 10> saved_sixteenths = {16, 1,  48, 16 * dice.between(1, 8), 16, 16, 1,
                                                    16, 64, 64};
  const std::array<int64_t, 4> weights = {3 * width * width, width * width, 4 * width * width,
                                          4 * width * width};
  const int64_t unit = tokens * width / 8;
  const int64_t ops = static_cast<int64_t>(saved_sixteenths.size());
  const int64_t loss_time = layers * ops;
  const int64_t end_time = 2 * loss_time + 4;
  const auto add = [&](int64_t lower, int64_t upper, int64_t size) {
    problem.buffers.push_back(
        {.lower = lower, .upper = upper, .size_bytes = std::max<int64_t>(size, 4)});
  };
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (int64_t op = 0; op < ops; ++op) {
      const int64_t forward = layer * ops + op;
      const int64_t backward = 2 * loss_time + 1 - forward;
      const int64_t size = unit * saved_sixteenths[static_cast<std::size_t>(op)];
      add(forward, op % 5 == 4 ? forward + 2 : backward + 1, size);  // saved, or a temporary
      if (op % 3 == 0) add(forward, forward + 1, size / 4);          // workspace
      add(backward, backward + 2, size);                             // gradient of the value
      if (op % 4 == 3) add(backward, backward + 1, size / 2);
    }
    for (std::size_t w = 0; w < weights.size(); ++w) {
      const int64_t backward = 2 * loss_time + 1 - (layer * ops + 2 * static_cast<int64_t>(w) + 1);
      add(backward, end_time, 4 * weights[w]);  // weight gradient, kept for the update
      add(0, end_time, 4 * weights[w]);         // parameter
      add(0, end_time, 8 * weights[w]);         // two moments
    }
  }
  return problem;
}

Problem tight_problem(int boxes, std::uint64_t seed) {
  Dice dice(seed);
  constexpr int64_t kSide = 1024;
  constexpr int64_t kLeast = 4;  // to be cut into five
  struct Piece {
    int64_t first = 0;  // time
    int64_t end = 0;
    int64_t low = 0;  // byte
    int64_t high = 0;
  };
  std::vector<Piece> pieces = {{0, kSide, 0, kSide}};
  while (static_cast<int>(pieces.size()) < boxes) {
    // The largest of four, so that no cut is the last one of a whole corner.
    std::size_t chosen = 0;
    for (int i = 0; i < 4; ++i) {
      const auto other =
          static_cast<std::size_t>(dice.between(0, static_cast<int64_t>(pieces.size()) - 1));
      const auto area = [](const Piece& p) { return (p.end - p.first) * (p.high - p.low); };
      if (area(pieces[other]) > area(pieces[chosen])) chosen = other;
    }
    const Piece piece = pieces[chosen];
    if (piece.end - piece.first < kLeast || piece.high - piece.low < kLeast) continue;
    // Two cuts each way: a pinwheel around the middle, which no straight cut goes through, or one.
    const int64_t left = dice.between(piece.first + 1, piece.end - 3);
    const int64_t right = dice.between(left + 1, piece.end - 1);
    const int64_t below = dice.between(piece.low + 1, piece.high - 3);
    const int64_t above = dice.between(below + 1, piece.high - 1);
    const int64_t kind = dice.between(0, 4);
    if (kind < 2) {
      pieces[chosen] = {piece.first, right, piece.low, below};
      pieces.push_back({right, piece.end, piece.low, above});
      pieces.push_back({left, piece.end, above, piece.high});
      pieces.push_back({piece.first, left, below, piece.high});
      pieces.push_back({left, right, below, above});
    } else if (kind == 2) {
      pieces[chosen].high = below;
      pieces.push_back({piece.first, piece.end, below, piece.high});
    } else {
      pieces[chosen].end = left;
      pieces.push_back({left, piece.end, piece.low, piece.high});
    }
  }
  Problem problem{.alignment_bytes = 1, .capacity_bytes = kSide};
  for (const Piece& piece : pieces) {
    if (dice.between(0, 19) == 0) continue;
    problem.buffers.push_back({.id = "p" + std::to_string(problem.buffers.size()),
                               .lower = piece.first,
                               .upper = piece.end,
                               .size_bytes = piece.high - piece.low});
  }
  return problem;
}

Problem reversed(Problem problem) {
  int64_t end = 0;
  for (const Buffer& buffer : problem.buffers) end = std::max(end, buffer.upper);
  for (Buffer& buffer : problem.buffers) {
    buffer.lower = end - std::exchange(buffer.upper, end - buffer.lower);
  }
  return problem;
}

}  // namespace trainscope::memplan::testing
