// What is asked of the memory planner, of lifetimes.
#include <algorithm>

#include "engine/core/saturating.h"
#include "engine/plan/lifetimes.h"

namespace trainscope {

memplan::Buffer placeable_buffer(const Lifetimes::Buffer& b, std::int64_t times) {
  const bool whole = b.persistent || b.external;
  return {.lower = whole ? 0 : std::min(b.first, times - 1),
          .upper = whole ? times : std::min(b.last + 1, times),
          .size_bytes = b.external ? 0 : static_cast<std::int64_t>(b.bytes)};
}

namespace {

void add_workspaces(std::span<const std::int64_t> workspaces, memplan::Problem& problem) {
  for (std::size_t i = 0; i < workspaces.size(); ++i) {
    if (workspaces[i] == 0) continue;
    const auto time = static_cast<std::int64_t>(i);
    problem.buffers.push_back({.lower = time, .upper = time + 1, .size_bytes = workspaces[i]});
  }
}

}  // namespace

memplan::Problem placement_problem(const Lifetimes& lifetimes,
                                   std::span<const std::int64_t> workspaces,
                                   std::int64_t alignment_bytes) {
  const auto times = std::max<std::int64_t>(1, static_cast<std::int64_t>(workspaces.size()));
  memplan::Problem problem{.alignment_bytes = alignment_bytes};
  problem.buffers.reserve(lifetimes.buffers.size() + workspaces.size());
  for (std::size_t i = 0; i < lifetimes.in_arena; ++i) {
    problem.buffers.push_back(placeable_buffer(lifetimes.buffers[i], times));
  }
  add_workspaces(workspaces, problem);
  return problem;
}

memplan::Problem height_problem(const Lifetimes& lifetimes,
                                std::span<const std::int64_t> workspaces,
                                std::int64_t alignment_bytes) {
  const auto times = std::max<std::int64_t>(1, static_cast<std::int64_t>(workspaces.size()));
  memplan::Problem problem{.alignment_bytes = alignment_bytes};
  problem.buffers.reserve(1 + lifetimes.buffers.size() + workspaces.size());
  problem.buffers.push_back({.lower = 0, .upper = times});
  for (std::size_t i = 0; i < lifetimes.in_arena; ++i) {
    memplan::Buffer buffer = placeable_buffer(lifetimes.buffers[i], times);
    if (buffer.lower == 0 && buffer.upper == times) {
      add_saturating(problem.buffers.front().size_bytes, memplan::occupied_bytes(problem, buffer));
    } else {
      problem.buffers.push_back(std::move(buffer));
    }
  }
  add_workspaces(workspaces, problem);
  return problem;
}

}  // namespace trainscope
