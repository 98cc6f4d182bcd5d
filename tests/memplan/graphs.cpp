// Turns forward graphs into the lifetimes of their training step's buffers.
#include "tests/memplan/graphs.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "tests/memplan/dice.h"

namespace trainscope::memplan::testing {
namespace {

using std::int64_t;
using std::size_t;

// Walks through a step; a buffer lives from its making to its last use.
class StepWriter {
 public:
  explicit StepWriter(const std::vector<ForwardOp>& forward)
      : forward_(forward), value_(forward.size(), kNone), gradient_(forward.size(), kNone) {}

  Problem run() {
    for (size_t op = 0; op < forward_.size(); ++op) compute(op);
    for (size_t op = 0; op < forward_.size(); ++op) {
      if (!forward_[op].saved) value_[op] = kNone;
    }
    gradient_.back() = make(forward_.back().bytes);
    for (size_t op = forward_.size(); op-- > 0;) differentiate(op);
    for (const size_t buffer : kept_) use(buffer);
    return std::move(problem_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t make(int64_t bytes) {
    problem_.buffers.push_back(
        {.lower = time_, .upper = time_ + 1, .size_bytes = std::max<int64_t>(bytes, 4)});
    return problem_.buffers.size() - 1;
  }
  void use(size_t buffer) { problem_.buffers[buffer].upper = time_ + 1; }

  void compute(size_t op) {
    for (const int read : forward_[op].reads) use(value_[static_cast<size_t>(read)]);
    if (forward_[op].workspace_bytes > 0) make(forward_[op].workspace_bytes);
    value_[op] = make(forward_[op].bytes);
    ++time_;
  }

  // Brings back a value, and before it whatever it is made of.
  void recover(size_t wanted) {
    std::vector<size_t> stack = {wanted};
    while (!stack.empty()) {
      const size_t op = stack.back();
      const size_t waiting = stack.size();
      if (value_[op] == kNone) {
        for (const int read : forward_[op].reads) {
          if (value_[static_cast<size_t>(read)] == kNone) {
            stack.push_back(static_cast<size_t>(read));
          }
        }
      }
      if (stack.size() > waiting) continue;
      stack.pop_back();
      if (value_[op] == kNone) compute(op);
    }
  }

  void differentiate(size_t op) {
    const ForwardOp& forward = forward_[op];
    for (const int read : forward.gradient_reads) recover(static_cast<size_t>(read));
    for (const int read : forward.gradient_reads) use(value_[static_cast<size_t>(read)]);
    use(gradient_[op]);
    if (forward.workspace_bytes > 0) make(forward.workspace_bytes);
    if (forward.parameter_bytes > 0) kept_.push_back(make(forward.parameter_bytes));
    std::vector<std::pair<size_t, size_t>> additions;  // to a gradient, from a buffer
    for (const int read : forward.reads) {
      size_t& gradient = gradient_[static_cast<size_t>(read)];
      const size_t made = make(forward_[static_cast<size_t>(read)].bytes);
      if (gradient == kNone) {
        gradient = made;
      } else {
        additions.emplace_back(gradient, made);
      }
    }
    ++time_;
    for (const auto& [gradient, made] : additions) {
      use(gradient);
      use(made);
      ++time_;
    }
  }

  const std::vector<ForwardOp>& forward_;
  Problem problem_;
  std::vector<size_t> value_;     // its buffer now, by operation
  std::vector<size_t> gradient_;  // of the operation's value
  std::vector<size_t> kept_;      // gradients of parameters
  int64_t time_ = 0;
};

// Adds operations one after the other, each on top of the one before unless said otherwise.
class NetworkWriter {
 public:
  int add(ForwardOp op) {
    forward.push_back(std::move(op));
    return last();
  }
  int last() const { return static_cast<int>(forward.size()) - 1; }

  std::vector<ForwardOp> forward = {};
};

// A chain of operations from `input`; returns the last.
int add_branch(NetworkWriter& net, Dice& dice, int input, int64_t width) {
  int from = input;
  const int64_t length = dice.between(1, 6);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t bytes = width * dice.between(1, 4);
    ForwardOp op{.bytes = bytes, .reads = {from}, .gradient_reads = {from}};
    if (dice.between(0, 2) == 0) op.gradient_reads = {net.last() + 1};  // needs what it made
    if (dice.between(0, 3) == 0) op.workspace_bytes = bytes * dice.between(1, 3) / 2;
    if (dice.between(0, 1) == 0) op.parameter_bytes = 64 * dice.between(1, 5000);
    if (dice.between(0, 5) == 0) op.bytes = 4 * dice.between(1, 512);  // statistics
    from = net.add(std::move(op));
  }
  return from;
}

struct GptSizes {
  int64_t tokens = int64_t{8} * 1024;
  int64_t width = 1024;
  int64_t words = 50304;
  int64_t row_bytes = 2 * tokens * width;                    // one number per token and channel
  int64_t matrix_bytes = int64_t{2} * 8 * 16 * 1024 * 1024;  // attention, all heads
  int64_t statistics_bytes = 8 * tokens;                     // mean and deviation
  int64_t square_bytes = 2 * width * width;
};

// One layer on top of `input`: 13 operations, the last of which is its output.
int add_gpt_layer(NetworkWriter& net, const GptSizes& s, int x) {
  const int norm1_stats = net.add({.bytes = s.statistics_bytes, .reads = {x}});
  const int norm1 = net.add({.bytes = s.row_bytes,
                             .reads = {x, norm1_stats},
                             .gradient_reads = {x, norm1_stats},
                             .parameter_bytes = 4 * s.width});
  const int qkv = net.add({.bytes = 3 * s.row_bytes,
                           .reads = {norm1},
                           .gradient_reads = {norm1},
                           .parameter_bytes = 3 * s.square_bytes});
  const int scores = net.add({.bytes = s.matrix_bytes, .reads = {qkv}, .gradient_reads = {qkv}});
  const int chances =
      net.add({.bytes = s.matrix_bytes, .reads = {scores}, .gradient_reads = {net.last() + 1}});
  const int mixed =
      net.add({.bytes = s.row_bytes, .reads = {chances, qkv}, .gradient_reads = {chances, qkv}});
  const int projected = net.add({.bytes = s.row_bytes,
                                 .reads = {mixed},
                                 .gradient_reads = {mixed},
                                 .parameter_bytes = s.square_bytes});
  const int middle = net.add({.bytes = s.row_bytes, .reads = {x, projected}});
  const int norm2_stats = net.add({.bytes = s.statistics_bytes, .reads = {middle}});
  const int norm2 = net.add({.bytes = s.row_bytes,
                             .reads = {middle, norm2_stats},
                             .gradient_reads = {middle, norm2_stats},
                             .parameter_bytes = 4 * s.width});
  const int wide = net.add({.bytes = 4 * s.row_bytes,
                            .reads = {norm2},
                            .gradient_reads = {norm2},
                            .parameter_bytes = 4 * s.square_bytes});
  const int gelu = net.add({.bytes = 4 * s.row_bytes, .reads = {wide}, .gradient_reads = {wide}});
  const int narrow = net.add({.bytes = s.row_bytes,
                              .reads = {gelu},
                              .gradient_reads = {gelu},
                              .parameter_bytes = 4 * s.square_bytes});
  return net.add({.bytes = s.row_bytes, .reads = {middle, narrow}});
}

constexpr int kLayerOps = 14;

// Positions within a layer, from what is cheapest to recompute per byte to what is dearest.
constexpr std::array<int, kLayerOps - 1> kForgetOrder = {3, 4, 11, 1, 9, 5, 10, 12, 6, 2, 7, 0, 8};

}  // namespace

Problem training_step(const std::vector<ForwardOp>& forward) { return StepWriter(forward).run(); }

Problem branching_problem(int buffers, std::uint64_t seed) {
  Dice dice(seed);
  NetworkWriter net;
  int64_t width = 4096 * dice.between(1, 64);
  int trunk = net.add({.bytes = width});
  // An operation makes its value and its gradient, every other one a parameter's gradient too.
  while (static_cast<int>(net.forward.size()) * 11 / 4 < buffers) {
    std::vector<int> ends;
    const int64_t branches = dice.between(1, 4);
    for (int64_t b = 0; b < branches; ++b) ends.push_back(add_branch(net, dice, trunk, width));
    if (dice.between(0, 2) > 0) ends.push_back(trunk);  // a residual connection
    if (dice.between(0, 9) == 0) width = 4096 * dice.between(1, 64);
    trunk = net.add({.bytes = width, .reads = ends});
  }
  return training_step(net.forward);
}

Problem gpt_problem(int layers, int forgotten) {
  const GptSizes sizes;
  NetworkWriter net;
  int x = net.add({.bytes = sizes.row_bytes});
  for (int layer = 0; layer < layers; ++layer) x = add_gpt_layer(net, sizes, x);
  const int norm = net.add({.bytes = sizes.row_bytes, .reads = {x}, .gradient_reads = {x}});
  const int logits = net.add({.bytes = 2 * sizes.tokens * sizes.words,
                              .reads = {norm},
                              .gradient_reads = {norm},
                              .parameter_bytes = 2 * sizes.width * sizes.words});
  net.add({.bytes = 4, .reads = {logits}, .gradient_reads = {logits}});
  const int kinds = static_cast<int>(kForgetOrder.size());
  const int count = kinds * layers * forgotten / kGptPlans;
  for (int i = 0; i < count; ++i) {
    const int position = kForgetOrder[static_cast<size_t>(i / layers)];
    const int op = 1 + (i % layers) * kLayerOps + position;
    net.forward[static_cast<size_t>(op)].saved = false;
  }
  return training_step(net.forward);
}

}  // namespace trainscope::memplan::testing
