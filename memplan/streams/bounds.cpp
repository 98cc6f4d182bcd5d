// Cuts by differences along each stream; antichains by a flow from what dies to what is born later.
#include "memplan/streams/bounds.h"

#include <algorithm>
#include <vector>

#include "memplan/at.h"
#include "memplan/remat/max_flow.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

// The weight of the heaviest antichain is that of all buffers less the most that chains can save:
// bytes flow from a buffer to one that is born when it is free. What is born behind a position of a
// stream is reached over a tree over the stream's births, as a handful of its nodes.
class ChainNetwork {
 public:
  ChainNetwork(const StreamProblem& problem, const Clocks& clocks, const StreamLifetimes& lifetimes)
      : problem_(problem), clocks_(clocks), lifetimes_(lifetimes), trees_(at(clocks.streams)) {
    births_at_.resize(problem.operations.size(), 0);
    for (const StreamBuffer& buffer : problem.buffers) {
      if (buffer.producer == kNoOperation) continue;
      births_at_[at(buffer.producer)] += occupied_bytes(problem, buffer);
    }
    int32_t nodes = 2 + static_cast<int32_t>(problem.buffers.size());
    for (int32_t s = 0; s < clocks.streams; ++s) nodes = number_tree(s, nodes);
    flow_ = MaxFlow(nodes);
  }

  std::optional<int64_t> antichain_bytes() {
    for (const Tree& tree : trees_) add_tree(tree);
    int64_t all_bytes = 0;
    for (size_t i = 0; i < problem_.buffers.size(); ++i) {
      const int64_t bytes = occupied_bytes(problem_, problem_.buffers[i]);
      all_bytes += bytes;
      const auto node = static_cast<int32_t>(2 + i);
      add_arc(kSource, node, bytes);
      for (int32_t s = 0; s < clocks_.streams; ++s) connect(node, trees_[at(s)], s, i);
      if (arcs_ > kMostArcs) return {};
    }
    return all_bytes - flow_.solve(kSource, kSink);
  }

 private:
  static constexpr int32_t kSource = 0;
  static constexpr int32_t kSink = 1;
  static constexpr size_t kMostArcs = 400'000;

  // Over the positions of a stream at which something is born; node 1 is the root.
  struct Tree {
    std::vector<int32_t> positions = {};
    std::vector<int64_t> bytes = {};
    int32_t leaves = 1;  // a power of two
    int32_t first_node = 0;
  };

  int32_t number_tree(int32_t stream, int32_t first_node) {
    Tree& tree = trees_[at(stream)];
    const std::vector<int32_t>& operations = clocks_.in_stream[at(stream)];
    for (size_t position = 0; position < operations.size(); ++position) {
      const int64_t bytes = births_at_[at(operations[position])];
      if (bytes == 0) continue;
      tree.positions.push_back(static_cast<int32_t>(position));
      tree.bytes.push_back(bytes);
    }
    while (at(tree.leaves) < tree.positions.size()) tree.leaves *= 2;
    tree.first_node = first_node;
    return first_node + 2 * tree.leaves;
  }

  void add_arc(int32_t from, int32_t to, int64_t capacity) {
    flow_.set_capacity(flow_.add_arc(from, to), capacity);
    ++arcs_;
  }

  void add_tree(const Tree& tree) {
    for (int32_t node = 2; node < 2 * tree.leaves; ++node) {
      add_arc(tree.first_node + node / 2, tree.first_node + node, MaxFlow::kUncuttable);
    }
    for (size_t i = 0; i < tree.bytes.size(); ++i) {
      add_arc(tree.first_node + tree.leaves + static_cast<int32_t>(i), kSink, tree.bytes[i]);
    }
  }

  // To the nodes that make up the births from where the buffer is free to the end.
  void connect(int32_t node, const Tree& tree, int32_t stream, size_t buffer) {
    const int32_t free = lifetimes_.free[lifetimes_.at(buffer, stream)];
    const auto first =
        static_cast<int32_t>(std::lower_bound(tree.positions.begin(), tree.positions.end(), free) -
                             tree.positions.begin());
    if (at(first) == tree.positions.size()) return;
    int32_t left = tree.leaves + first;
    for (int32_t right = 2 * tree.leaves; left < right; left /= 2, right /= 2) {
      if (left % 2 == 1) add_arc(node, tree.first_node + left++, MaxFlow::kUncuttable);
    }
  }

  const StreamProblem& problem_;
  const Clocks& clocks_;
  const StreamLifetimes& lifetimes_;
  std::vector<Tree> trees_;
  std::vector<int64_t> births_at_;  // bytes, by operation
  MaxFlow flow_;
  size_t arcs_ = 0;
};

}  // namespace

int64_t heaviest_cut_bytes(const StreamProblem& problem, const Clocks& clocks,
                           const StreamLifetimes& lifetimes) {
  int64_t most_bytes = 0;
  for (int32_t s = 0; s < clocks.streams; ++s) {
    std::vector<int64_t> change(clocks.in_stream[at(s)].size() + 1, 0);
    for (size_t i = 0; i < problem.buffers.size(); ++i) {
      const int64_t bytes = occupied_bytes(problem, problem.buffers[i]);
      const size_t row = lifetimes.at(i, s);
      change[at(lifetimes.born[row])] += bytes;
      change[at(lifetimes.free[row])] -= bytes;
    }
    int64_t live_bytes = 0;
    change.pop_back();  // behind the last operation
    for (const int64_t bytes : change) {
      live_bytes += bytes;
      most_bytes = std::max(most_bytes, live_bytes);
    }
  }
  return most_bytes;
}

std::optional<int64_t> heaviest_antichain_bytes(const StreamProblem& problem, const Clocks& clocks,
                                                const StreamLifetimes& lifetimes) {
  return ChainNetwork(problem, clocks, lifetimes).antichain_bytes();
}

}  // namespace trainscope::memplan
