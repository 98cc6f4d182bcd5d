// Checks a placement problem before anything computes with it.
#include "memplan/problem.h"

#include <algorithm>

#include "memplan/validate.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::optional;
using std::string;

optional<string> find_lifetime_or_size_error(const Buffer& buffer) {
  if (buffer.lower < 0) {
    return "lower is " + std::to_string(buffer.lower) + ", expected 0 or more";
  }
  if (buffer.upper <= buffer.lower) {
    return "upper " + std::to_string(buffer.upper) + " is not after lower " +
           std::to_string(buffer.lower) + " (the lifetime is [lower, upper))";
  }
  if (buffer.size_bytes < 0) {
    return "size is " + std::to_string(buffer.size_bytes) + " bytes, expected 0 or more";
  }
  return {};
}

optional<string> find_offset_error(const Problem& problem, const Buffer& buffer) {
  if (buffer.alignment_bytes < 0 || buffer.alignment_bytes % problem.alignment_bytes != 0) {
    return "alignment " + std::to_string(buffer.alignment_bytes) +
           " is not a multiple of the problem's alignment " +
           std::to_string(problem.alignment_bytes);
  }
  if (!buffer.fixed_offset) return {};
  const int64_t alignment_bytes = offset_alignment_bytes(problem, buffer);
  if (*buffer.fixed_offset < 0 || *buffer.fixed_offset % alignment_bytes != 0) {
    return "fixed offset " + std::to_string(*buffer.fixed_offset) +
           " is not a non-negative multiple of " + std::to_string(alignment_bytes);
  }
  return {};
}

// The highest address any placer can reach is below: highest fixed end + all sizes with padding.
bool addresses_fit_int64(const Problem& problem) {
  int64_t total_bytes = 0;
  int64_t highest_fixed = 0;
  for (const Buffer& buffer : problem.buffers) {
    const int64_t padding = offset_alignment_bytes(problem, buffer);
    int64_t padded = 0;
    if (__builtin_add_overflow(buffer.size_bytes, padding, &padded)) return false;
    if (__builtin_add_overflow(padded, padding, &padded)) return false;
    if (__builtin_add_overflow(total_bytes, padded, &total_bytes)) return false;
    highest_fixed = std::max(highest_fixed, buffer.fixed_offset.value_or(0));
  }
  int64_t highest = 0;
  return !__builtin_add_overflow(total_bytes, highest_fixed, &highest);
}

// The checker of solutions also tells whether the fixed buffers leave each other in peace.
optional<string> find_fixed_clash(const Problem& problem) {
  Problem fixed{.alignment_bytes = problem.alignment_bytes};
  Solution placement;
  for (const Buffer& buffer : problem.buffers) {
    if (!buffer.fixed_offset) continue;
    fixed.buffers.push_back(buffer);
    fixed.buffers.back().size_bytes = occupied_bytes(problem, buffer);
    placement.offsets.push_back(*buffer.fixed_offset);
    placement.height_bytes =
        std::max(placement.height_bytes, *buffer.fixed_offset + fixed.buffers.back().size_bytes);
  }
  for (const Violation& violation : validate(fixed, placement)) {
    if (violation.kind == ViolationKind::kOverlap) return "fixed offsets: " + violation.message;
  }
  return {};
}

}  // namespace

int64_t offset_alignment_bytes(const Problem& problem, const Buffer& buffer) {
  return std::max(buffer.alignment_bytes, problem.alignment_bytes);
}

int64_t occupied_bytes(const Problem& problem, const Buffer& buffer) {
  const int64_t past_grid = buffer.size_bytes % problem.alignment_bytes;
  return past_grid == 0 ? buffer.size_bytes
                        : buffer.size_bytes + (problem.alignment_bytes - past_grid);
}

string describe_buffer(const Problem& problem, std::size_t index) {
  const string& id = problem.buffers[index].id;
  return id.empty() ? "buffer #" + std::to_string(index) : "buffer '" + id + "'";
}

optional<string> find_problem_error(const Problem& problem) {
  if (problem.alignment_bytes <= 0) {
    return "alignment is " + std::to_string(problem.alignment_bytes) + " bytes, expected 1 or more";
  }
  if (problem.capacity_bytes && *problem.capacity_bytes < 0) {
    return "capacity is " + std::to_string(*problem.capacity_bytes) + " bytes, expected 0 or more";
  }
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    optional<string> error = find_lifetime_or_size_error(buffer);
    if (!error) error = find_offset_error(problem, buffer);
    if (error) return describe_buffer(problem, i) + ": " + *error;
  }
  if (!addresses_fit_int64(problem)) {
    return "the buffers' sizes add up to more than a signed 64-bit integer holds";
  }
  return find_fixed_clash(problem);
}

}  // namespace trainscope::memplan
