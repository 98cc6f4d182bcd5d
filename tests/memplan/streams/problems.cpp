// Seeded problems of several streams.
#include "tests/memplan/streams/problems.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "tests/memplan/dice.h"

namespace trainscope::memplan::testing {
namespace {

using std::int32_t;
using std::size_t;

size_t at(int32_t index) { return static_cast<size_t>(index); }

// Deals the operations of a list out anew; each stream keeps its order.
std::vector<int32_t> shuffled_numbers(const std::vector<Operation>& operations, Dice& dice) {
  std::vector<int32_t> streams;
  for (const Operation& operation : operations) streams.push_back(operation.stream);
  for (size_t i = streams.size(); i > 1; --i) {
    std::swap(streams[i - 1],
              streams[static_cast<size_t>(dice.between(0, static_cast<std::int64_t>(i) - 1))]);
  }
  std::vector<int32_t> numbers(operations.size());
  std::vector<char> used(operations.size(), 0);
  for (size_t i = 0; i < operations.size(); ++i) {
    size_t slot = 0;
    while (used[slot] != 0 || streams[slot] != operations[i].stream) ++slot;
    used[slot] = 1;
    numbers[i] = static_cast<int32_t>(slot);
  }
  return numbers;
}

enum Lane : int32_t { kCompute, kCopyOut, kCopyIn };

class OffloadWriter {
 public:
  StreamProblem run(int layers, Dice& dice) {
    std::vector<int32_t> forward;
    std::vector<int32_t> out;
    std::vector<std::int64_t> bytes;
    for (int layer = 0; layer < layers; ++layer) {
      bytes.push_back(64 * dice.between(1, 1000));
      forward.push_back(add(kCompute, {}));
      out.push_back(add(kCopyOut, {forward.back()}));
      if (layer > 0) made_.buffers[activation_].readers.push_back(forward.back());
      activation_ = make(bytes.back(), forward.back(), {out.back()});
      make(bytes.back() / 2, forward.back(), {});  // workspace
    }
    std::vector<int32_t> backward;  // the last layer first
    for (int layer = layers; layer-- > 0;) {
      std::vector<int32_t> waits = {out[at(layer)]};
      if (backward.size() > 1) waits.push_back(backward[backward.size() - 2]);
      const int32_t in = add(kCopyIn, waits);
      backward.push_back(add(kCompute, {in}));
      make(bytes[at(layer)], in, {backward.back()});
      if (backward.size() > 1) made_.buffers[gradient_].readers.push_back(backward.back());
      gradient_ = make(bytes[at(layer)], backward.back(), {});
    }
    made_.buffers[gradient_].kept = true;
    return std::move(made_);
  }

 private:
  int32_t add(Lane lane, std::vector<int32_t> after) {
    made_.operations.push_back({.stream = lane, .after = std::move(after)});
    return static_cast<int32_t>(made_.operations.size()) - 1;
  }
  size_t make(std::int64_t bytes, int32_t producer, std::vector<int32_t> readers) {
    made_.buffers.push_back(
        {.size_bytes = bytes, .producer = producer, .readers = std::move(readers)});
    return made_.buffers.size() - 1;
  }

  StreamProblem made_;
  size_t activation_ = 0;
  size_t gradient_ = 0;
};

}  // namespace

StreamProblem offload_step(int layers, std::uint64_t seed) {
  Dice dice(seed);
  return OffloadWriter().run(layers, dice);
}

Relation reachability(const StreamProblem& problem) {
  const size_t count = problem.operations.size();
  Relation reach(count, std::vector<char>(count, 0));
  for (size_t i = 0; i < count; ++i) {
    for (const int32_t other : problem.operations[i].after) reach[at(other)][i] = 1;
    for (size_t j = 0; j < i; ++j) {
      if (problem.operations[j].stream == problem.operations[i].stream) reach[j][i] = 1;
    }
  }
  for (size_t k = 0; k < count; ++k) {
    for (size_t i = 0; i < count; ++i) {
      if (reach[i][k] == 0) continue;
      for (size_t j = 0; j < count; ++j) reach[i][j] |= reach[k][j];
    }
  }
  return reach;
}

bool over_before(const StreamProblem& problem, const Relation& reach, size_t a, size_t b) {
  const StreamBuffer& used = problem.buffers[a];
  const int32_t birth = problem.buffers[b].producer;
  if (used.kept || birth == kNoOperation) return false;
  const auto over = [&](int32_t use) { return reach[at(use)][at(birth)] != 0; };
  return (used.producer == kNoOperation || over(used.producer)) &&
         std::all_of(used.readers.begin(), used.readers.end(), over);
}

StreamProblem random_stream_problem(std::uint64_t seed, const StreamShape& shape) {
  Dice dice(seed);
  std::vector<Operation> in_order;
  for (int32_t i = 0; i < shape.operations; ++i) {
    Operation operation{.stream = static_cast<int32_t>(dice.between(0, shape.streams - 1))};
    while (i > 0 && dice.between(1, 100) <= shape.waits_percent) {
      operation.after.push_back(static_cast<int32_t>(dice.between(std::max(0, i - 8), i - 1)));
    }
    in_order.push_back(std::move(operation));
  }
  const std::vector<int32_t> numbers = shuffled_numbers(in_order, dice);
  StreamProblem problem{.operations = std::vector<Operation>(in_order.size()),
                        .alignment_bytes = 1};
  for (size_t i = 0; i < in_order.size(); ++i) {
    for (int32_t& other : in_order[i].after) other = numbers[at(other)];
    problem.operations[at(numbers[i])] = std::move(in_order[i]);
    problem.operations[at(numbers[i])].id = "op" + std::to_string(i);
  }
  const Relation reach = reachability(problem);
  for (int i = 0; i < shape.buffers; ++i) {
    StreamBuffer buffer{
        .id = "b" + std::to_string(i),
        .size_bytes = dice.between(0, 9) == 0 ? 0 : dice.between(1, shape.largest_bytes)};
    if (dice.between(0, 9) > 0) {
      buffer.producer = static_cast<int32_t>(dice.between(0, shape.operations - 1));
    }
    for (std::int64_t reads = dice.between(0, 3); reads > 0; --reads) {
      const auto reader = static_cast<int32_t>(dice.between(0, shape.operations - 1));
      const bool after = buffer.producer == kNoOperation || reach[at(buffer.producer)][at(reader)];
      if (after) buffer.readers.push_back(reader);
    }
    const bool unused = buffer.producer == kNoOperation && buffer.readers.empty();
    buffer.kept = unused || dice.between(0, 14) == 0;
    problem.buffers.push_back(std::move(buffer));
  }
  return problem;
}

}  // namespace trainscope::memplan::testing
