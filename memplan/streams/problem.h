// Placement for several streams (CUDA streams, a copy stream): operations, what each waits for, and
// the buffers that they write and read. Two buffers may share bytes only if every use of one
// happens before the birth of the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainscope::memplan {

// Runs after the operation before it in its stream, and after those it waits for.
struct Operation {
  std::string id = {};                   // only for messages and files; may be empty
  std::int32_t stream = 0;               // 0, 1, ...
  std::vector<std::int32_t> after = {};  // operations, of any stream, anywhere in the list
};

inline constexpr std::int32_t kNoOperation = -1;

struct StreamBuffer {
  std::string id = {};
  std::int64_t size_bytes = 0;
  std::int32_t producer = kNoOperation;    // kNoOperation: it is there from the beginning
  std::vector<std::int32_t> readers = {};  // operations that come after the producer
  bool kept = false;                       // until the end: nothing may ever reuse its bytes
};

// Every size is rounded up to `alignment_bytes` and every offset is a multiple of it.
struct StreamProblem {
  std::vector<Operation> operations = {};  // those of one stream in the order in which they run
  std::vector<StreamBuffer> buffers = {};
  std::int64_t alignment_bytes = 64;
  std::optional<std::int64_t> capacity_bytes = {};  // set: any placement this high is good enough
};

inline constexpr std::int32_t kMostStreams = 64;

// What makes `problem` meaningless (operations that wait for each other in a circle, a reader that
// does not come after the producer, a negative size, ...), or nothing. Everything else needs it
// clean.
[[nodiscard]] std::optional<std::string> find_problem_error(const StreamProblem& problem);

// The bytes a buffer occupies: its size rounded up to the problem's alignment.
[[nodiscard]] std::int64_t occupied_bytes(const StreamProblem& problem, const StreamBuffer& buffer);

// "operation 'id'" or "operation #index", and the same of buffers, for messages.
[[nodiscard]] std::string describe_operation(const StreamProblem& problem, std::size_t index);
[[nodiscard]] std::string describe_buffer(const StreamProblem& problem, std::size_t index);

}  // namespace trainscope::memplan
