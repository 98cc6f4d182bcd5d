// Placement without kernels, and the peak without placement.
#include "engine/world/place.h"

#include <algorithm>

#include "engine/ir/op_def.h"
#include "engine/plan/lifetimes.h"
#include "engine/plan/program_builder.h"
#include "engine/world/zero.h"
#include "memplan/bounds.h"

namespace trainscope {
namespace {

constexpr std::int64_t kTorchBlockBytes = 512;

// The step as PyTorch runs it: a buffer for each result.
class EagerStep {
 public:
  explicit EagerStep(const Graph& graph) : graph_(graph), call_of_(graph.node_capacity(), 0) {
    const std::vector<NodeId> order = phase_order(graph);
    for (NodeId id : order) {
      call_of_[static_cast<std::size_t>(id)] = calls_;
      if (!graph.node(id).op->is_view) ++calls_;
    }
    lifetimes_ = find_lifetimes(graph, order, {.in_place = false});
    problem_.alignment_bytes = kTorchBlockBytes;
    for (const Lifetimes::Buffer& buffer : lifetimes_.buffers) {
      add({.id = {},
           .lower = buffer.persistent ? 0 : buffer.first,
           .upper = buffer.persistent ? calls_ + 1 : std::min(buffer.last, calls_) + 1,
           .size_bytes = static_cast<std::int64_t>(buffer.bytes)});
    }
  }

  std::int64_t peak_bytes() {
    for (const OptimizerNode& optimizer : optimizer_nodes(graph_)) {
      for (ValueId gradient : optimizer.gradients) hold_to_end(gradient);
      add_updates(optimizer);
    }
    add_updated(last_update_, updated_at_once_);
    if (graph_.loss != kNoValue && graph_.value(graph_.loss).producer != kNoNode) {
      add_logarithms(graph_.value(graph_.loss).producer);
    }
    return memplan::lower_bound_bytes(problem_);
  }

 private:
  void add(memplan::Buffer buffer) { problem_.buffers.push_back(std::move(buffer)); }
  std::int64_t call(NodeId id) const { return call_of_[static_cast<std::size_t>(id)]; }

  void hold_to_end(ValueId v) {
    const std::int32_t buffer = lifetimes_.buffer_of[static_cast<std::size_t>(v)];
    if (buffer >= 0) problem_.buffers[static_cast<std::size_t>(buffer)].upper = calls_ + 1;
  }

  // What `foreach` makes of all parameters before it writes them: at once, in however many nodes,
  // unless these run in backward.
  void add_updates(const OptimizerNode& optimizer) {
    std::int64_t updated = 0;
    for (std::size_t i = 0; i < optimizer.parameters.size() && !optimizer.states.empty(); ++i) {
      updated += bytes_of(graph_, optimizer.states[i]);
    }
    const std::int64_t at = call(optimizer.node);
    if (graph_.node(optimizer.node).phase != Phase::kUpdate) return add_updated(at, updated);
    last_update_ = std::max(last_update_, at);
    updated_at_once_ += updated;
  }
  void add_updated(std::int64_t at, std::int64_t bytes) {
    if (bytes > 0) add({.id = {}, .lower = at, .upper = at + 1, .size_bytes = bytes});
  }

  // An eager framework keeps softmax's logarithms beside the scores until backward has read them.
  void add_logarithms(NodeId loss) {
    const Node& node = graph_.node(loss);
    if (!node.op->of_scores) return;
    std::int64_t last = -1;
    for (ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      for (const Use& use : graph_.value(output).uses) last = std::max(last, call(use.node));
    }
    if (last < 0) return;
    add({.id = {},
         .lower = call(loss),
         .upper = last + 1,
         .size_bytes = bytes_of(graph_, node.inputs[0])});
  }

  const Graph& graph_;
  std::vector<std::int64_t> call_of_;  // by NodeId
  std::int64_t calls_ = 0;
  std::int64_t last_update_ = 0;
  std::int64_t updated_at_once_ = 0;
  Lifetimes lifetimes_;
  memplan::Problem problem_;
};

}  // namespace

std::int64_t bytes_of(const Graph& graph, ValueId v) {
  return static_cast<std::int64_t>(graph.value(v).type.bytes());
}

Program place_graph(Graph graph, std::span<const std::int64_t> workspaces,
                    const LowerOptions& options, std::int64_t held_bytes) {
  ProgramBuilder builder(std::move(graph), nullptr, options);
  builder.leave_out_kernels(workspaces);
  builder.hold("micro-batches in flight", held_bytes);
  return builder.build();
}

std::int64_t eager_peak_bytes(const Graph& graph) { return EagerStep(graph).peak_bytes(); }

}  // namespace trainscope
