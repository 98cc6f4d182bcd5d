// Lowering: kernel choice, prepare, placement.
#include "engine/plan/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/core/error.h"
#include "engine/core/saturating.h"
#include "engine/core/text.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_call.h"
#include "engine/plan/lifetimes.h"
#include "memplan/validate.h"

namespace trainscope {
namespace {

TensorView shape_only(const Graph& graph, ValueId v) {
  if (v == kNoValue) return {.type = {}, .data = nullptr, .present = false};
  const Value& value = graph.value(v);
  TensorView view{.type = value.type, .data = nullptr};
  bool fixed = value.kind == ValueKind::kConstant || value.kind == ValueKind::kNode;
  if (fixed && value.data) view = value.data->view();
  return view;
}

std::vector<TensorView> shapes_only(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<TensorView> views;
  for (ValueId v : values) views.push_back(shape_only(graph, v));
  return views;
}

DType dtype_of(const Graph& graph, const Node& node) {
  auto types = [&graph](const std::vector<ValueId>& values) {
    std::vector<TensorType> list;
    for (ValueId v : values) {
      if (v != kNoValue) list.push_back(graph.value(v).type);
    }
    return list;
  };
  return kernel_dtype(types(node.inputs), types(node.outputs));
}

class Lowering {
 public:
  Lowering(Graph graph, DeviceHandle device, const LowerOptions& options)
      : kernels_(device->kernels()), options_(options) {
    program_.device = std::move(device);
    program_.graph = std::move(graph);
    program_.threads = options.threads;
    order_ = phase_order(program_.graph);
  }

  Program run() {
    choose_kernels();
    std::vector<std::int64_t> workspaces;
    for (const Instruction& instruction : program_.instructions) {
      workspaces.push_back(static_cast<std::int64_t>(instruction.prepared.workspace_bytes));
    }
    lifetimes_ = find_lifetimes(program_.graph, order_, options_, workspaces);
    program_.copies = lifetimes_.copies;
    state_problem(workspaces);
    place();
    return std::move(program_);
  }

 private:
  void choose_kernels() {
    std::map<std::string, std::vector<std::string>> missing;
    for (NodeId id : order_) {
      const Node& node = program_.graph.node(id);
      if (node.op->is_view) continue;
      if (node.phase != Phase::kUpdate) program_.update_begin = program_.instructions.size() + 1;
      Instruction instruction;
      instruction.node = id;
      if (!at_node(node, [&] { return prepare(node, instruction); })) {
        std::string dtype(name_of(dtype_of(program_.graph, node)));
        missing[fmt::format("{} for {}", node.op->name, dtype)].push_back(node.name);
      }
      program_.instructions.push_back(std::move(instruction));
    }
    if (missing.empty()) return;
    Error error(ErrorCode::kBadInput, "the model needs kernels that do not exist");
    error.mark_unsupported();
    for (const auto& [kernel, nodes] : missing) {
      error.at(fmt::format("{}: {} node{}: {}", kernel, nodes.size(), nodes.size() == 1 ? "" : "s",
                           printable(join(nodes, ", "), 400)));
    }
    throw error.hint("`trainscope inspect MODEL` lists the model's ops and types");
  }

  bool prepare(const Node& node, Instruction& instruction) {
    NodeArgs args(program_.graph, node);
    if (node.op->params) instruction.params = node.op->params(*args);
    std::vector<TensorView> inputs = shapes_only(program_.graph, node.inputs);
    std::vector<TensorView> outputs = shapes_only(program_.graph, node.outputs);
    for (TensorView& view : outputs) view.data = nullptr;
    PrepareArgs prepare_args{.params = instruction.params,
                             .inputs = inputs,
                             .outputs = outputs,
                             .threads = options_.threads};
    const bool strict = options_.same_bits == SameBits::kAnyThreads;
    for (const Kernel* kernel :
         kernels_for(kernels_, node.op->name, dtype_of(program_.graph, node), options_.kernels)) {
      if (strict && !kernel->same_for_any_threads) continue;
      if (!supports(*kernel, prepare_args)) continue;
      instruction.kernel = kernel;
      instruction.prepared = prepared_for(*kernel, prepare_args);
      return true;
    }
    return false;
  }

  void state_problem(std::span<const std::int64_t> workspaces) {
    for (std::size_t i = 0; i < workspaces.size(); ++i) {
      program_.workspace_bytes = std::max(program_.workspace_bytes, workspaces[i]);
      if (workspaces[i] > 0) workspace_of_.push_back(i);
    }
    for (const Lifetimes::Buffer& b : lifetimes_.buffers) {
      if (b.persistent && !b.external) {
        add_saturating(program_.persistent_bytes, static_cast<std::int64_t>(b.bytes));
      }
    }
    program_.problem = placement_problem(lifetimes_, workspaces);
    program_.host.problem = host_problem(lifetimes_, program_.instructions.size());
    const std::size_t in_arena = lifetimes_.in_arena;
    for (std::size_t i = 0; i < lifetimes_.buffers.size(); ++i) {
      memplan::Buffer& buffer =
          i < in_arena ? program_.problem.buffers[i] : program_.host.problem.buffers[i - in_arena];
      buffer.id = program_.graph.value(lifetimes_.buffers[i].value).name;
    }
    for (std::size_t k = 0; k < workspace_of_.size(); ++k) {
      program_.problem.buffers[in_arena + k].id =
          "workspace of " + program_.graph.node(program_.instructions[workspace_of_[k]].node).name;
    }
  }

  memplan::Solution solve(const memplan::Problem& problem) const {
    memplan::Result result =
        memplan::solve(problem, {.seconds = options_.seconds, .threads = options_.threads});
    require(result.status == memplan::Status::kPlaced, ErrorCode::kOutOfMemory,
            "the memory plan failed: {}", printable(result.message, 400));
    CHECK_INVARIANT(memplan::validate(problem, result.solution).empty());
    return std::move(result.solution);
  }

  void place() {
    program_.solution = solve(program_.problem);
    program_.arena_bytes = program_.solution.height_bytes;
    if (!program_.host.problem.buffers.empty()) {
      program_.host.solution = solve(program_.host.problem);
      program_.host.bytes = program_.host.solution.height_bytes;
    }
    program_.placements.resize(program_.graph.value_capacity());
    for (std::size_t v = 0; v < lifetimes_.buffer_of.size(); ++v) {
      if (lifetimes_.buffer_of[v] >= 0) {
        program_.placements[v] = placement(v);
      }
    }
    for (std::size_t k = 0; k < workspace_of_.size(); ++k) {
      program_.instructions[workspace_of_[k]].workspace_offset =
          program_.solution.offsets[lifetimes_.in_arena + k];
    }
  }

  Placement placement(std::size_t value) const {
    const auto buffer = static_cast<std::size_t>(lifetimes_.buffer_of[value]);
    const Lifetimes::Buffer& lifetime = lifetimes_.buffers[buffer];
    const std::size_t index = lifetime.host ? buffer - lifetimes_.in_arena : buffer;
    const memplan::Solution& solution = lifetime.host ? program_.host.solution : program_.solution;
    const std::int64_t offset = solution.offsets[index] + lifetimes_.offset_of[value];
    return {.offset = lifetime.external ? -1 : offset,
            .buffer = static_cast<std::int32_t>(index),
            .external = lifetime.external,
            .host = lifetime.host};
  }

  const KernelTable& kernels_;
  const LowerOptions& options_;
  Program program_;
  std::vector<NodeId> order_;
  Lifetimes lifetimes_;
  std::vector<std::size_t> workspace_of_;  // instruction of each workspace buffer
};

}  // namespace

std::vector<const Kernel*> kernels_for(const KernelTable& kernels, std::string_view op, DType dtype,
                                       KernelChoice choice) {
  std::vector<const Kernel*> found = kernels.find(op, dtype);
  if (choice == KernelChoice::kReference) std::ranges::reverse(found);
  if (choice == KernelChoice::kDirect) {
    std::erase_if(found, [](const Kernel* kernel) { return kernel->transforms; });
  }
  return found;
}

std::vector<NodeId> phase_order(const Graph& graph) {
  std::vector<NodeId> order = graph.order();
  std::ranges::stable_sort(order, {}, [&graph](NodeId id) { return graph.node(id).phase; });
  return order;
}

Program lower(Graph graph, DeviceHandle device, const LowerOptions& options) {
  return Lowering(std::move(graph), std::move(device), options).run();
}

}  // namespace trainscope
