// Checks of what the caller hands in; circles and readers are judged by the clocks.
#include "memplan/streams/problem.h"

#include <algorithm>
#include <limits>

#include "memplan/streams/clocks.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::optional;
using std::size_t;
using std::string;

bool is_operation(const StreamProblem& problem, int32_t index) {
  return index >= 0 && static_cast<size_t>(index) < problem.operations.size();
}

string not_there(int32_t index) { return "#" + std::to_string(index) + ", which does not exist"; }

optional<string> find_operation_error(const StreamProblem& problem, size_t index) {
  const Operation& operation = problem.operations[index];
  if (operation.stream < 0 || operation.stream >= kMostStreams) {
    return "its stream is number " + std::to_string(operation.stream) + ", expected 0 to " +
           std::to_string(kMostStreams - 1);
  }
  for (const int32_t other : operation.after) {
    if (!is_operation(problem, other)) return "it waits for operation " + not_there(other);
    if (static_cast<size_t>(other) == index) return "it waits for itself";
  }
  return {};
}

optional<string> find_buffer_error(const StreamProblem& problem, const StreamBuffer& buffer) {
  if (buffer.size_bytes < 0) {
    return "size " + std::to_string(buffer.size_bytes) + " is negative";
  }
  const bool produced = buffer.producer != kNoOperation;
  if (produced && !is_operation(problem, buffer.producer)) {
    return "its producer is operation " + not_there(buffer.producer);
  }
  for (const int32_t reader : buffer.readers) {
    if (!is_operation(problem, reader)) return "it is read by operation " + not_there(reader);
  }
  if (!produced && buffer.readers.empty() && !buffer.kept) {
    return "nothing writes, reads or keeps it: when is it alive?";
  }
  return {};
}

bool sizes_fit_int64(const StreamProblem& problem) {
  // Rounding adds less than an alignment to each.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;
  int64_t total = 0;
  for (const StreamBuffer& buffer : problem.buffers) {
    if (problem.alignment_bytes > kMost || buffer.size_bytes > kMost) return false;
    total += buffer.size_bytes + problem.alignment_bytes;
    if (total > kMost) return false;
  }
  return true;
}

// The operations that were left over all wait for one that was left over: going back from any of
// them leads into a circle.
string describe_circle(const StreamProblem& problem, const Clocks& clocks) {
  const size_t count = problem.operations.size();
  std::vector<char> done(count, 0);
  for (const int32_t operation : clocks.order) done[static_cast<size_t>(operation)] = 1;
  std::vector<int32_t> before_in_stream(count, kNoOperation);
  std::vector<int32_t> latest(static_cast<size_t>(clocks.streams), kNoOperation);
  for (size_t i = 0; i < count; ++i) {
    int32_t& last = latest[static_cast<size_t>(problem.operations[i].stream)];
    before_in_stream[i] = last;
    last = static_cast<int32_t>(i);
  }
  const auto waits_for = [&](size_t index) {
    const auto open = [&](int32_t other) {
      return other != kNoOperation && done[static_cast<size_t>(other)] == 0;
    };
    if (open(before_in_stream[index])) return static_cast<size_t>(before_in_stream[index]);
    const std::vector<int32_t>& after = problem.operations[index].after;
    return static_cast<size_t>(*std::find_if(after.begin(), after.end(), open));
  };
  auto at = static_cast<size_t>(std::find(done.begin(), done.end(), 0) - done.begin());
  std::vector<char> seen(count, 0);
  for (; seen[at] == 0; at = waits_for(at)) seen[at] = 1;
  constexpr int kMostNamed = 6;
  string text = describe_operation(problem, at);
  size_t next = waits_for(at);
  for (int named = 1; named < kMostNamed && next != at; ++named, next = waits_for(next)) {
    text += " after " + describe_operation(problem, next);
  }
  return text + (next == at ? " after " + describe_operation(problem, at) : " after ...");
}

optional<string> find_order_error(const StreamProblem& problem) {
  const Clocks clocks = find_clocks(problem);
  if (clocks.order.size() < problem.operations.size()) {
    return "operations wait for each other in a circle: " + describe_circle(problem, clocks) +
           " (operations of one stream run in the order of the list)";
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const StreamBuffer& buffer = problem.buffers[i];
    if (buffer.producer == kNoOperation) continue;
    for (const int32_t reader : buffer.readers) {
      if (reader == buffer.producer || clocks.happens_before(problem, buffer.producer, reader)) {
        continue;
      }
      return describe_buffer(problem, i) + ": " +
             describe_operation(problem, static_cast<size_t>(reader)) +
             " reads it but does not wait for its producer, " +
             describe_operation(problem, static_cast<size_t>(buffer.producer)) +
             ": add a dependency";
    }
  }
  return {};
}

string describe(const char* kind, const string& id, size_t index) {
  return string(kind) + (id.empty() ? " #" + std::to_string(index) : " '" + id + "'");
}

}  // namespace

int64_t occupied_bytes(const StreamProblem& problem, const StreamBuffer& buffer) {
  const int64_t past_grid = buffer.size_bytes % problem.alignment_bytes;
  return past_grid == 0 ? buffer.size_bytes
                        : buffer.size_bytes + (problem.alignment_bytes - past_grid);
}

string describe_operation(const StreamProblem& problem, size_t index) {
  return describe("operation", problem.operations[index].id, index);
}

string describe_buffer(const StreamProblem& problem, size_t index) {
  return describe("buffer", problem.buffers[index].id, index);
}

optional<string> find_problem_error(const StreamProblem& problem) {
  if (problem.alignment_bytes <= 0) {
    return "alignment is " + std::to_string(problem.alignment_bytes) + " bytes, expected 1 or more";
  }
  if (problem.capacity_bytes && *problem.capacity_bytes < 0) {
    return "capacity is " + std::to_string(*problem.capacity_bytes) + " bytes, expected 0 or more";
  }
  for (size_t i = 0; i < problem.operations.size(); ++i) {
    if (const optional<string> error = find_operation_error(problem, i)) {
      return describe_operation(problem, i) + ": " + *error;
    }
  }
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    if (const optional<string> error = find_buffer_error(problem, problem.buffers[i])) {
      return describe_buffer(problem, i) + ": " + *error;
    }
  }
  if (!sizes_fit_int64(problem)) {
    return "the buffers' sizes add up to more than a signed 64-bit integer holds";
  }
  return find_order_error(problem);
}

}  // namespace trainscope::memplan
