// Flattens a recompute problem and derives what every method needs.
#include "memplan/remat/graph.h"

#include <algorithm>
#include <utility>

namespace trainscope::memplan {

using std::int32_t;
using std::int64_t;
using std::size_t;

RematGraph::RematGraph(const RematProblem& problem, std::stop_token stop) : stop_(std::move(stop)) {
  const size_t count = problem.nodes.size();
  // A node reruns at most once in each of the n stages: n * n reruns at most.
  forbidden_time_ = (static_cast<double>(base_time(problem)) + 1) * static_cast<double>(count + 1);
  first_backward_ = static_cast<int32_t>(count);
  input_begin_.push_back(0);
  for (size_t i = 0; i < count; ++i) {
    const RematNode& node = problem.nodes[i];
    inputs_.insert(inputs_.end(), node.inputs.begin(), node.inputs.end());
    input_begin_.push_back(inputs_.size());
    bytes_.push_back(node.bytes);
    workspace_bytes_.push_back(node.workspace_bytes);
    time_.push_back(static_cast<double>(node.time));
    rerun_time_.push_back(node.may_rerun ? time_.back() : forbidden_time_);
    if (node.backward) first_backward_ = std::min(first_backward_, static_cast<int32_t>(i));
  }
  fill_consumers();
  fill_horizons();
  fill_least_bytes();
}

void RematGraph::fill_consumers() {
  consumer_begin_.assign(bytes_.size() + 1, 0);
  for (const int32_t input : inputs_) ++consumer_begin_[static_cast<size_t>(input) + 1];
  for (size_t i = 1; i < consumer_begin_.size(); ++i) consumer_begin_[i] += consumer_begin_[i - 1];
  consumers_.resize(inputs_.size());
  std::vector<size_t> next(consumer_begin_.begin(), consumer_begin_.end() - 1);
  for (int32_t node = 0; node < size(); ++node) {
    for (const int32_t input : inputs(node)) consumers_[next[static_cast<size_t>(input)]++] = node;
  }
}

void RematGraph::fill_horizons() {
  horizon_.resize(bytes_.size());
  for (int32_t node = size() - 1; node >= 0; --node) {
    int32_t last = node;
    for (const int32_t reader : consumers(node)) {
      // A reader that runs only once needs the value only then.
      last = std::max(last, may_rerun(reader) ? horizon(reader) : reader);
    }
    horizon_[static_cast<size_t>(node)] = last;
  }
}

void RematGraph::fill_least_bytes() {
  std::vector<int64_t> leaving(bytes_.size() + 1, 0);  // by the stage in which they may go
  int64_t held = 0;  // values that cannot be recomputed, made earlier, still read later
  for (int32_t node = 0; node < size(); ++node) {
    int64_t need = held + bytes(node) + workspace_bytes(node);
    for (const int32_t input : inputs(node)) {
      if (may_rerun(input)) need += bytes(input);
    }
    least_bytes_.push_back(need);
    if (!may_rerun(node) && last_use(node) > node) {
      held += bytes(node);
      leaving[static_cast<size_t>(last_use(node))] += bytes(node);
    }
    held -= leaving[static_cast<size_t>(node)];
  }
}

}  // namespace trainscope::memplan
