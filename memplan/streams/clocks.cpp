// One walk over the operations, each after what it waits for.
#include "memplan/streams/clocks.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "memplan/at.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::size_t;

class ClockMaker {
 public:
  explicit ClockMaker(const StreamProblem& problem)
      : problem_(problem),
        followers_(problem.operations.size()),
        waits_(problem.operations.size()) {
    for (const Operation& operation : problem.operations) {
      clocks_.streams = std::max(clocks_.streams, operation.stream + 1);
    }
    clocks_.in_stream.resize(at(clocks_.streams));
    clocks_.seen.assign(problem.operations.size() * at(clocks_.streams), 0);
    for (size_t i = 0; i < problem.operations.size(); ++i) {
      std::vector<int32_t>& stream = clocks_.in_stream[at(problem.operations[i].stream)];
      clocks_.position.push_back(static_cast<int32_t>(stream.size()));
      if (!stream.empty()) wait(i, stream.back());
      for (const int32_t other : problem.operations[i].after) wait(i, other);
      stream.push_back(static_cast<int32_t>(i));
    }
  }

  Clocks run() {
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    for (size_t i = 0; i < waits_.size(); ++i) {
      if (waits_[i] == 0) ready.push(static_cast<int32_t>(i));
    }
    while (!ready.empty()) {
      const int32_t operation = ready.top();
      ready.pop();
      clocks_.order.push_back(operation);
      for (const int32_t follower : followers_[at(operation)]) {
        learn(follower, operation);
        if (--waits_[at(follower)] == 0) ready.push(follower);
      }
    }
    return std::move(clocks_);
  }

 private:
  void wait(size_t operation, int32_t other) {
    followers_[at(other)].push_back(static_cast<int32_t>(operation));
    ++waits_[operation];
  }

  // What has ended before the earlier one, and that one.
  void learn(int32_t operation, int32_t earlier) {
    int32_t* const own = clocks_.seen.data() + at(operation) * at(clocks_.streams);
    const int32_t* const known = clocks_.seen.data() + at(earlier) * at(clocks_.streams);
    for (size_t s = 0; s < at(clocks_.streams); ++s) own[s] = std::max(own[s], known[s]);
    int32_t& stream = own[at(problem_.operations[at(earlier)].stream)];
    stream = std::max(stream, clocks_.position[at(earlier)] + 1);
  }

  const StreamProblem& problem_;
  Clocks clocks_;
  std::vector<std::vector<int32_t>> followers_;
  std::vector<int32_t> waits_;  // for how many
};

// The first position in the stream whose operation has seen at least `wanted`, by stream.
int32_t first_that_saw(const Clocks& clocks, int32_t stream, const int32_t* wanted) {
  const std::vector<int32_t>& operations = clocks.in_stream[at(stream)];
  const auto has_not = [&](int32_t operation) {
    for (int32_t s = 0; s < clocks.streams; ++s) {
      if (clocks.seen_by(operation, s) < wanted[s]) return true;
    }
    return false;
  };
  return static_cast<int32_t>(std::partition_point(operations.begin(), operations.end(), has_not) -
                              operations.begin());
}

}  // namespace

Clocks find_clocks(const StreamProblem& problem) { return ClockMaker(problem).run(); }

StreamLifetimes find_lifetimes(const StreamProblem& problem, const Clocks& clocks) {
  const size_t entries = problem.buffers.size() * at(clocks.streams);
  StreamLifetimes lifetimes{.streams = clocks.streams,
                            .seen_at_birth = std::vector<int32_t>(entries, 0),
                            .used_until = std::vector<int32_t>(entries, 0),
                            .born = std::vector<int32_t>(entries, 0),
                            .free = std::vector<int32_t>(entries, 0)};
  std::vector<int32_t> written(at(clocks.streams));
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const StreamBuffer& buffer = problem.buffers[i];
    const size_t row = lifetimes.at(i, 0);
    std::fill(written.begin(), written.end(), 0);
    const auto use = [&](int32_t operation, int32_t* until) {
      int32_t& latest = until[at(problem.operations[at(operation)].stream)];
      latest = std::max(latest, clocks.position[at(operation)] + 1);
    };
    if (buffer.producer != kNoOperation) {
      for (int32_t s = 0; s < clocks.streams; ++s) {
        lifetimes.seen_at_birth[row + at(s)] = clocks.seen_by(buffer.producer, s);
      }
      use(buffer.producer, written.data());
      use(buffer.producer, lifetimes.used_until.data() + row);
    }
    for (const int32_t reader : buffer.readers) use(reader, lifetimes.used_until.data() + row);
    if (buffer.kept) {
      std::fill_n(lifetimes.used_until.begin() + static_cast<std::ptrdiff_t>(row), clocks.streams,
                  StreamLifetimes::kNever);
    }
    for (int32_t s = 0; s < clocks.streams; ++s) {
      lifetimes.born[row + at(s)] = first_that_saw(clocks, s, written.data());
      lifetimes.free[row + at(s)] = first_that_saw(clocks, s, lifetimes.used_until.data() + row);
    }
    if (buffer.producer != kNoOperation) {
      const int32_t stream = problem.operations[at(buffer.producer)].stream;
      lifetimes.born[row + at(stream)] = clocks.position[at(buffer.producer)];
    }
  }
  return lifetimes;
}

}  // namespace trainscope::memplan
