// Checks a recompute problem before anything computes with it.
#include "memplan/remat/problem.h"

#include <algorithm>
#include <unordered_set>

#include "memplan/csv_text.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::optional;
using std::size_t;
using std::string;

// Times are multiplied by numbers of recomputes, and prices by bytes: room for both in a double.
constexpr int64_t kLargestSum = int64_t{1} << 53;
constexpr size_t kMostNodes = 10'000'000;

optional<string> find_size_error(const RematNode& node) {
  if (node.bytes < 0) return "bytes is " + std::to_string(node.bytes) + ", expected 0 or more";
  if (node.time < 0) return "time is " + std::to_string(node.time) + ", expected 0 or more";
  if (node.workspace_bytes < 0) {
    return "workspace is " + std::to_string(node.workspace_bytes) + " bytes, expected 0 or more";
  }
  return {};
}

optional<string> find_input_error(const RematProblem& problem, size_t index) {
  std::vector<std::int32_t> inputs = problem.nodes[index].inputs;
  std::sort(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] < 0 || static_cast<size_t>(inputs[i]) >= index) {
      return "input #" + std::to_string(inputs[i]) + " is not an earlier node";
    }
    if (i > 0 && inputs[i] == inputs[i - 1]) {
      return "input " + std::to_string(problem.nodes[static_cast<size_t>(inputs[i])].id) +
             " is named twice";
    }
  }
  return {};
}

}  // namespace

string describe_node(const RematProblem& problem, std::int32_t node) {
  const RematNode& described = problem.nodes[static_cast<size_t>(node)];
  const string number = "node " + std::to_string(described.id);
  return described.name.empty() ? number : number + " (" + in_quotes(described.name) + ")";
}

int64_t base_time(const RematProblem& problem) {
  int64_t time = 0;
  for (const RematNode& node : problem.nodes) time += node.time;
  return time;
}

optional<string> find_remat_error(const RematProblem& problem) {
  if (problem.nodes.size() > kMostNodes) return "more than 10,000,000 nodes";
  int64_t bytes = 0;
  int64_t time = 0;
  std::unordered_set<int64_t> ids;
  for (size_t i = 0; i < problem.nodes.size(); ++i) {
    const RematNode& node = problem.nodes[i];
    const string who = describe_node(problem, static_cast<std::int32_t>(i));
    if (!ids.insert(node.id).second) return who + ": its id is another node's too";
    optional<string> error = find_size_error(node);
    if (!error) error = find_input_error(problem, i);
    if (error) return who + ": " + *error;
    for (const int64_t amount : {node.bytes, node.workspace_bytes}) {
      if (__builtin_add_overflow(bytes, amount, &bytes) || bytes > kLargestSum) {
        return "the bytes of all nodes add up to more than 2^53";
      }
    }
    if (__builtin_add_overflow(time, node.time, &time) || time > kLargestSum) {
      return "the times of all nodes add up to more than 2^53: use a larger unit";
    }
  }
  return {};
}

}  // namespace trainscope::memplan
