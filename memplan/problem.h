// A placement problem: buffers with a lifetime and a size in bytes, to be placed in one arena.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainscope::memplan {

// One buffer, alive at the times [lower, upper): what is made at `upper` may already reuse its
// bytes. A time is any whole number from 0 on, for a program the index of a call.
struct Buffer {
  std::string id = {};  // only for messages and files; may be empty
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t size_bytes = 0;
  std::int64_t alignment_bytes = 0;  // 0: the problem's; else a multiple of the problem's
  std::optional<std::int64_t> fixed_offset = {};  // bytes; the solver must leave it there
};

// Every size is rounded up to `alignment_bytes` and every offset is a multiple of it.
struct Problem {
  std::vector<Buffer> buffers = {};
  std::int64_t alignment_bytes = 64;
  std::optional<std::int64_t> capacity_bytes = {};  // set: any placement this high is good enough
};

// What makes `problem` meaningless (a lifetime that ends before it begins, a negative size, two
// fixed buffers on the same bytes, sums beyond int64, ...), or nothing. Everything below needs it
// clean.
[[nodiscard]] std::optional<std::string> find_problem_error(const Problem& problem);

// The bytes a buffer occupies: its size rounded up to the problem's alignment.
[[nodiscard]] std::int64_t occupied_bytes(const Problem& problem, const Buffer& buffer);

// The multiple its offset must have: its own alignment, or the problem's.
[[nodiscard]] std::int64_t offset_alignment_bytes(const Problem& problem, const Buffer& buffer);

// "buffer 'id'" or "buffer #index", for messages.
[[nodiscard]] std::string describe_buffer(const Problem& problem, std::size_t index);

}  // namespace trainscope::memplan
