// Seeded recompute problems for the tests.
#include "tests/memplan/remat/problems.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memplan/remat/random.h"

namespace trainscope::memplan::testing {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;

class Builder {
 public:
  int32_t add(RematNode node) {
    node.id = static_cast<int64_t>(problem.nodes.size());
    problem.nodes.push_back(std::move(node));
    return static_cast<int32_t>(problem.nodes.size()) - 1;
  }

  RematProblem problem = {};
};

}  // namespace

RematProblem chain_step(int length, std::uint64_t seed) {
  Random random(seed);
  Builder builder;
  std::vector<int32_t> forward;
  for (int i = 0; i < length; ++i) {
    RematNode node{.name = "f" + std::to_string(i),
                   .bytes = random.between(1, 20),
                   .time = random.between(0, 30)};
    if (i > 0) node.inputs = {forward.back()};
    forward.push_back(builder.add(std::move(node)));
  }
  int32_t gradient = builder.add({.name = "loss",
                                  .bytes = 1,
                                  .time = random.between(0, 5),
                                  .backward = true,
                                  .inputs = {forward.back()}});
  for (int i = length - 1; i >= 0; --i) {
    RematNode node{.name = "b" + std::to_string(i),
                   .bytes = builder.problem.nodes[static_cast<size_t>(i)].bytes,
                   .time = random.between(0, 60),
                   .backward = true};
    if (i > 0) node.inputs.push_back(forward[static_cast<size_t>(i) - 1]);
    node.inputs.push_back(forward[static_cast<size_t>(i)]);
    node.inputs.push_back(gradient);
    gradient = builder.add(std::move(node));
  }
  return builder.problem;
}

RematProblem random_graph(std::uint64_t seed, const RandomGraphShape& shape) {
  Random random(seed);
  Builder builder;
  for (int32_t i = 0; i < shape.nodes; ++i) {
    RematNode node{.name = "n" + std::to_string(i),
                   .bytes = random.between(0, 20),
                   .time = random.between(0, 30),
                   .may_rerun = !shape.banned || random.between(0, 4) > 0,
                   .workspace_bytes = shape.workspace ? random.between(0, 10) : 0};
    const int32_t wanted = std::min(i, random.between(1, shape.most_inputs));
    for (int32_t k = 0; k < wanted; ++k) {
      const bool far = random.between(0, 3) == 0;
      const int32_t input = random.between(far ? 0 : std::max(0, i - shape.reach), i - 1);
      if (std::find(node.inputs.begin(), node.inputs.end(), input) == node.inputs.end()) {
        node.inputs.push_back(input);
      }
    }
    builder.add(std::move(node));
  }
  return builder.problem;
}

RematProblem training_step(std::uint64_t seed, const RandomGraphShape& shape) {
  Builder builder;
  builder.problem = random_graph(seed, shape);
  Random random(seed + 1);
  const std::vector<RematNode> forward = builder.problem.nodes;
  std::vector<std::vector<int32_t>> gradients(forward.size());  // by node: those of its readers
  for (size_t i = forward.size(); i-- > 0;) {
    RematNode node{.name = "d" + std::to_string(i),
                   .bytes = forward[i].bytes,
                   .time = random.between(0, 60),
                   .backward = true,
                   .inputs = forward[i].inputs};
    node.inputs.push_back(static_cast<int32_t>(i));
    node.inputs.insert(node.inputs.end(), gradients[i].begin(), gradients[i].end());
    std::sort(node.inputs.begin(), node.inputs.end());
    const int32_t gradient = builder.add(std::move(node));
    for (const int32_t input : forward[i].inputs) {
      gradients[static_cast<size_t>(input)].push_back(gradient);
    }
  }
  return builder.problem;
}

namespace {

// A transformer's step, node by node. Every gradient reads what its op's rule needs.
class TransformerBuilder : public Builder {
 public:
  explicit TransformerBuilder(const TransformerShape& shape) : shape_(shape) {}

  RematProblem build() {
    int32_t x = activation("embed", stream(), 0, {});
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
      layer_ = static_cast<int32_t>(layer);
      layers_.push_back(forward_layer(x));
      x = layers_.back().out;
    }
    layer_ = -1;
    int32_t gradient = activation("loss", stream(), 2 * stream() * 50'000, {x});
    backward_ = true;
    gradient = activation("loss_backward", stream(), 4 * stream() * 50'000, {x, gradient});
    for (size_t i = layers_.size(); i-- > 0;) {
      layer_ = static_cast<int32_t>(i);
      gradient = backward_layer(layers_[i], gradient);
    }
    layer_ = -1;
    add({.name = "update", .bytes = 0, .time = 1, .backward = true, .inputs = weight_gradients_});
    return std::move(problem);
  }

 private:
  struct Layer {
    int32_t in, norm1, query, key, value, scores, weights, mixed, attended, middle;
    int32_t norm2, wide, gelu, narrow, out;
  };

  int64_t stream() const { return shape_.batch * shape_.sequence * shape_.width; }
  int64_t scores() const { return shape_.batch * shape_.heads * shape_.sequence * shape_.sequence; }

  // 100 TFLOP/s and 1 TB/s: nanoseconds.
  int32_t activation(const char* name, int64_t elements, int64_t flops,
                     std::vector<int32_t> inputs) {
    int64_t moved = 2 * elements;
    for (const int32_t input : inputs) moved += problem.nodes[static_cast<size_t>(input)].bytes;
    return add({.name = name,
                .bytes = 2 * elements,
                .time = std::max(flops / 100'000, moved / 1000) + 1,
                .backward = backward_,
                .layer = layer_,
                .inputs = std::move(inputs)});
  }
  int32_t matmul(const char* name, int64_t in_width, int64_t out_width,
                 std::vector<int32_t> inputs) {
    const int64_t rows = shape_.batch * shape_.sequence;
    return activation(name, rows * out_width, 2 * rows * in_width * out_width, std::move(inputs));
  }
  int32_t attention_matmul(const char* name, int64_t elements, std::vector<int32_t> inputs) {
    return activation(name, elements, 2 * scores() * shape_.width / shape_.heads,
                      std::move(inputs));
  }
  void weight_gradient(const char* name, int64_t in_width, int64_t out_width, int32_t input,
                       int32_t gradient) {
    const int64_t flops = 2 * shape_.batch * shape_.sequence * in_width * out_width;
    weight_gradients_.push_back(activation(name, in_width * out_width, flops, {input, gradient}));
  }

  Layer forward_layer(int32_t in) {
    const int64_t c = shape_.width;
    Layer l{};
    l.in = in;
    l.norm1 = activation("norm1", stream(), 0, {in});
    l.query = matmul("query", c, c, {l.norm1});
    l.key = matmul("key", c, c, {l.norm1});
    l.value = matmul("value", c, c, {l.norm1});
    l.scores = attention_matmul("scores", scores(), {l.query, l.key});
    l.weights = activation("softmax", scores(), 0, {l.scores});
    l.mixed = attention_matmul("mixed", stream(), {l.weights, l.value});
    l.attended = matmul("attended", c, c, {l.mixed});
    l.middle = activation("middle", stream(), 0, {in, l.attended});
    l.norm2 = activation("norm2", stream(), 0, {l.middle});
    l.wide = matmul("wide", c, 4 * c, {l.norm2});
    l.gelu = activation("gelu", 4 * stream(), 0, {l.wide});
    l.narrow = matmul("narrow", 4 * c, c, {l.gelu});
    l.out = activation("out", stream(), 0, {l.middle, l.narrow});
    return l;
  }

  int32_t backward_layer(const Layer& l, int32_t dout) {
    const int64_t c = shape_.width;
    const int32_t dgelu = matmul("d_gelu", c, 4 * c, {dout});
    weight_gradient("w_narrow", 4 * c, c, l.gelu, dout);
    const int32_t dwide = activation("d_wide", 4 * stream(), 0, {l.wide, dgelu});
    const int32_t dnorm2 = matmul("d_norm2", 4 * c, c, {dwide});
    weight_gradient("w_wide", c, 4 * c, l.norm2, dwide);
    const int32_t dmlp = activation("d_mlp", stream(), 0, {l.middle, dnorm2});
    const int32_t dmiddle = activation("d_middle", stream(), 0, {dout, dmlp});
    const int32_t dmixed = matmul("d_mixed", c, c, {dmiddle});
    weight_gradient("w_attended", c, c, l.mixed, dmiddle);
    const int32_t dweights = attention_matmul("d_weights", scores(), {l.value, dmixed});
    const int32_t dvalue = attention_matmul("d_value", stream(), {l.weights, dmixed});
    const int32_t dscores = activation("d_scores", scores(), 0, {l.weights, dweights});
    const int32_t dquery = attention_matmul("d_query", stream(), {l.key, dscores});
    const int32_t dkey = attention_matmul("d_key", stream(), {l.query, dscores});
    weight_gradient("w_query", c, c, l.norm1, dquery);
    weight_gradient("w_key", c, c, l.norm1, dkey);
    weight_gradient("w_value", c, c, l.norm1, dvalue);
    const int32_t dnorm1 = matmul("d_norm1", 3 * c, c, {dquery, dkey, dvalue});
    const int32_t dattention = activation("d_attention", stream(), 0, {l.in, dnorm1});
    return activation("d_in", stream(), 0, {dmiddle, dattention});
  }

  TransformerShape shape_;
  std::vector<Layer> layers_;
  std::vector<int32_t> weight_gradients_;
  int32_t layer_ = -1;
  bool backward_ = false;
};

// States of a step: how many nodes have had their first execution, and what is in memory.
struct State {
  std::uint32_t live = 0;
  int32_t next = 0;

  std::uint64_t key() const {
    return (std::uint64_t{live} << 32) | static_cast<std::uint32_t>(next);
  }
};

// Dijkstra over states; freeing takes no time.
class StateSearch {
 public:
  StateSearch(const RematProblem& problem, int64_t budget_bytes)
      : problem_(problem), budget_bytes_(budget_bytes) {}

  std::optional<int64_t> least_time() {
    reach({}, 0);
    while (!queue_.empty()) {
      const auto [time, key] = queue_.top();
      queue_.pop();
      if (time > best_[key]) continue;
      const State state{.live = static_cast<std::uint32_t>(key >> 32),
                        .next = static_cast<int32_t>(key & 0xffffffffu)};
      if (state.next == static_cast<int32_t>(problem_.nodes.size())) return time;
      expand(state, time);
    }
    return {};
  }

 private:
  void reach(State state, int64_t time) {
    const auto [known, inserted] = best_.emplace(state.key(), time);
    if (!inserted && known->second <= time) return;
    known->second = time;
    queue_.emplace(time, state.key());
  }

  int64_t live_bytes(std::uint32_t live) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < problem_.nodes.size(); ++i) {
      if ((live >> i & 1u) != 0) bytes += problem_.nodes[i].bytes;
    }
    return bytes;
  }

  void expand(State state, int64_t time) {
    for (int32_t i = 0; i < static_cast<int32_t>(problem_.nodes.size()); ++i) {
      const std::uint32_t bit = std::uint32_t{1} << i;
      if ((state.live & bit) != 0) {
        reach({.live = state.live & ~bit, .next = state.next}, time);
      } else if (i <= state.next && can_run(state, i)) {
        reach({.live = state.live | bit, .next = std::max(state.next, i + 1)},
              time + problem_.nodes[static_cast<size_t>(i)].time);
      }
    }
  }

  bool can_run(State state, int32_t index) const {
    const RematNode& node = problem_.nodes[static_cast<size_t>(index)];
    if (index < state.next && !node.may_rerun) return false;
    for (const int32_t input : node.inputs) {
      if ((state.live >> input & 1u) == 0) return false;
    }
    return live_bytes(state.live) + node.bytes + node.workspace_bytes <= budget_bytes_;
  }

  using Entry = std::pair<int64_t, std::uint64_t>;

  const RematProblem& problem_;
  int64_t budget_bytes_;
  std::unordered_map<std::uint64_t, int64_t> best_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

}  // namespace

RematProblem transformer_step(const TransformerShape& shape) {
  return TransformerBuilder(shape).build();
}

std::optional<int64_t> optimal_time(const RematProblem& problem, int64_t budget_bytes) {
  return StateSearch(problem, budget_bytes).least_time();
}

}  // namespace trainscope::memplan::testing
