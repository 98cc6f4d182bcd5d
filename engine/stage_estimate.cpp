// Lives of values as differences along the order of the nodes, then their running sum.
#include "engine/stage_estimate.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/core/saturating.h"
#include "engine/ir/op_def.h"
#include "engine/recompute/costs.h"

namespace trainscope {
namespace {

class Lives {
 public:
  explicit Lives(const Graph& graph)
      : graph_(graph),
        order_(graph.order()),
        root_(graph.value_capacity()),
        born_(graph.value_capacity(), 0),
        last_(graph.value_capacity(), 0) {
    std::iota(root_.begin(), root_.end(), std::size_t{0});
  }

  std::int64_t most_bytes() {
    for (std::size_t at = 0; at < order_.size(); ++at) visit(at, graph_.node(order_[at]));
    std::vector<std::int64_t> change(order_.size() + 2, 0);
    for (const ValueId id : graph_.live_values()) {
      const Value& value = graph_.value(id);
      const auto v = static_cast<std::size_t>(id);
      if (root_[v] != v) continue;
      const auto bytes = static_cast<std::int64_t>(
          std::min<std::size_t>(value.type.bytes(), std::numeric_limits<std::int64_t>::max()));
      const bool always = value.producer == kNoNode || is_kept_[v];
      add_saturating(change[value.producer == kNoNode ? 0 : born_[v]], bytes);
      if (!always) add_saturating(change[last_[v] + 1], -bytes);
    }
    std::int64_t live = 0;
    std::int64_t most = 0;
    for (const std::int64_t bytes : change) {
      live = saturating_add(live, bytes);
      most = std::max(most, live);
    }
    return most;
  }

 private:
  void visit(std::size_t at, const Node& node) {
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      std::size_t& last = last_[root_[static_cast<std::size_t>(input)]];
      last = std::max(last, at);
    }
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      const auto v = static_cast<std::size_t>(output);
      if (node.op->is_view) root_[v] = root_[static_cast<std::size_t>(node.inputs.front())];
      born_[v] = at;
      last_[root_[v]] = std::max(last_[root_[v]], at);
      if (graph_.is_output(output)) is_kept_[root_[v]] = true;
    }
  }

  const Graph& graph_;
  std::vector<NodeId> order_;
  std::vector<std::size_t> root_;  // by value: the one whose bytes it has
  std::vector<std::size_t> born_;  // positions in the order
  std::vector<std::size_t> last_;  // of the last reader
  std::vector<bool> is_kept_ = std::vector<bool>(graph_.value_capacity(), false);
};

}  // namespace

StageEstimate estimate_stage(const Graph& graph, const Machine& machine) {
  const std::vector<double> seconds = modelled_seconds(graph, machine);
  return {.seconds = std::accumulate(seconds.begin(), seconds.end(), 0.0),
          .live_bytes = Lives(graph).most_bytes()};
}

}  // namespace trainscope
