// Execution: pointers are resolved once, a step is a loop over calls.
#include "engine/exec/executor.h"

#include <algorithm>

#include "engine/core/error.h"
#include "engine/exec/backends.h"
#include "engine/exec/device_work.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {
Executor::Executor(const Program& program, const Executor* parameters)
    : program_(program), memory_(program, parameters == nullptr ? nullptr : &parameters->memory_) {
  start_threads(*program.device, program.threads);
  for (ValueId id : program.graph.live_values()) {
    const bool persistent = memory_.address(id).data != nullptr &&
                            !program.placements[static_cast<std::size_t>(id)].external &&
                            program.graph.value(id).kind != ValueKind::kNode;
    if (persistent) used_bytes_ = std::max(used_bytes_, end_of(id));
  }
  for (const Instruction& instruction : program.instructions) {
    const Node& node = program.graph.node(instruction.node);
    Bound bound;
    bound.whole = call_of(instruction);
    bound.tiles = tile_calls(instruction, bound.whole);
    for (const std::vector<ValueId>* values : {&node.inputs, &node.outputs}) {
      for (ValueId v : *values) {
        bound.end_bytes = std::max(bound.end_bytes, end_of(v));
        bound.host_end_bytes = std::max(bound.host_end_bytes, end_of(v, true));
      }
    }
    auto workspace_bytes = static_cast<std::int64_t>(instruction.prepared.workspace_bytes);
    if (workspace_bytes > 0) {
      std::int64_t unit = program.problem.alignment_bytes;
      std::int64_t end = instruction.workspace_offset + (workspace_bytes + unit - 1) / unit * unit;
      bound.end_bytes = std::max(bound.end_bytes, end);
    }
    calls_.push_back(std::move(bound));
  }
}

// A failure of the device was reported to whoever waited for it before, or is nobody's any more.
Executor::~Executor() {
  (void)memory_.device().synchronize(memory_.device().record(kComputeStream));
}

Executor::Call Executor::call_of(const Instruction& instruction) const {
  const Node& node = program_.graph.node(instruction.node);
  const auto view_of = [this](ValueId v) {
    return v == kNoValue ? TensorView{.type = {}, .data = nullptr, .present = false}
                         : memory_.address(v);
  };
  Call call;
  for (ValueId v : node.inputs) call.inputs.push_back(view_of(v));
  for (ValueId v : node.outputs) call.outputs.push_back(view_of(v));
  if (instruction.prepared.workspace_bytes > 0) {
    call.workspace = memory_.arena(Space::kDevice).data() + instruction.workspace_offset;
  }
  return call;
}

namespace {

// Tile p of a value [N, ...] that is cut along N.
TensorView tile_view(TensorView view, std::size_t p, std::size_t tiles) {
  const std::size_t bytes = view.type.bytes() / tiles;
  view.type.shape[0] /= static_cast<std::int64_t>(tiles);
  view.data = static_cast<std::byte*>(view.data) + p * bytes;
  return view;
}

}  // namespace

std::vector<Executor::Call> Executor::tile_calls(const Instruction& instruction,
                                                 const Call& whole) const {
  const Tiling& tiling = instruction.tiling;
  const std::size_t tiles = tiling.prepared.size();
  auto* partials = static_cast<std::byte*>(whole.workspace) +
                   tiles * static_cast<std::size_t>(tiling.tile_workspace_bytes);
  std::vector<Call> calls(tiles, whole);
  for (std::size_t p = 0; p < tiles; ++p) {
    Call& call = calls[p];
    const std::size_t workspace_bytes = static_cast<std::size_t>(tiling.tile_workspace_bytes);
    if (whole.workspace != nullptr) {
      call.workspace = static_cast<std::byte*>(whole.workspace) + p * workspace_bytes;
    }
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
      if (tiling.inputs[k] != TileSlice::kExamples) continue;
      call.inputs[k] = tile_view(call.inputs[k], p, tiles);
    }
    for (std::size_t k = 0; k < call.outputs.size(); ++k) {
      TensorView& output = call.outputs[k];
      if (tiling.outputs[k] == TileSlice::kExamples) output = tile_view(output, p, tiles);
      if (tiling.outputs[k] != TileSlice::kPartial || p == 0) continue;
      output.data = partials;
      partials += (output.type.bytes() + 63) / 64 * 64;
    }
  }
  return calls;
}

std::int64_t Executor::end_of(ValueId value, bool host) const {
  if (value == kNoValue) return 0;
  const Placement& placement = program_.placements[static_cast<std::size_t>(value)];
  if (placement.buffer < 0 || placement.external || placement.host != host) return 0;
  const memplan::Problem& problem = host ? program_.host.problem : program_.problem;
  const memplan::Solution& solution = host ? program_.host.solution : program_.solution;
  const auto buffer = static_cast<std::size_t>(placement.buffer);
  std::int64_t unit = problem.alignment_bytes;
  return solution.offsets[buffer] + (problem.buffers[buffer].size_bytes + unit - 1) / unit * unit;
}

void Executor::run_tile(std::size_t i, int tile) {
  const Instruction& instruction = program_.instructions[i];
  const auto p = static_cast<std::size_t>(tile);
  const Call& call = calls_[i].tiles[p];
  at_node(program_.graph.node(instruction.node), [&] {
    launch(memory_.device(), kComputeStream, *instruction.kernel,
           {.params = instruction.params,
            .inputs = call.inputs,
            .outputs = call.outputs,
            .workspace = call.workspace,
            .state = instruction.tiling.prepared[p].state.get(),
            .threads = 1});
  });
}

// Adds up the partials that the tiles of these instructions made, for a slice of each result's
// elements.
void Executor::add_partials(std::size_t begin, std::size_t end, int tile) {
  for (std::size_t i = begin; i < end; ++i) {
    const Tiling& tiling = program_.instructions[i].tiling;
    for (std::size_t k = 0; k < tiling.outputs.size(); ++k) {
      if (tiling.outputs[k] != TileSlice::kPartial) continue;
      const std::vector<Call>& calls = calls_[i].tiles;
      const std::int64_t elements = calls[0].outputs[k].elements();
      const std::int64_t from = elements * tile / program_.threads;
      const std::int64_t to = elements * (tile + 1) / program_.threads;
      auto* sum = calls[0].outputs[k].as<float>();
      for (std::size_t p = 1; p < calls.size(); ++p) {
        const auto* partial = calls[p].outputs[k].as<const float>();
        for (std::int64_t e = from; e < to; ++e) sum[e] += partial[e];
      }
    }
  }
}

void Executor::run_instruction(std::size_t i) {
  const Instruction& instruction = program_.instructions[i];
  if (!calls_[i].tiles.empty()) {
    for (int p = 0; p < program_.threads; ++p) run_tile(i, p);
    for (int p = 0; p < program_.threads; ++p) add_partials(i, i + 1, p);
    return;
  }
  const Call& call = calls_[i].whole;
  at_node(program_.graph.node(instruction.node), [&] {
    launch(memory_.device(), kComputeStream, *instruction.kernel,
           {.params = instruction.params,
            .inputs = call.inputs,
            .outputs = call.outputs,
            .workspace = call.workspace,
            .state = instruction.prepared.state.get(),
            .threads = program_.threads});
  });
}

void Executor::run_section(const TiledSection& section) {
  const Fork fork = program_.device->fork();
  struct Context {
    Executor& self;
    const TiledSection& section;
  } context{*this, section};
  fork(program_.threads, &context, [](void* given, int tile) {
    const auto& [self, run] = *static_cast<const Context*>(given);
    Observer* observer = tile == 0 ? self.observer_ : nullptr;
    for (std::size_t i = run.begin; i < run.end; ++i) {
      if (observer != nullptr) observer->before(i);
      self.run_tile(i, tile);
      if (observer != nullptr) observer->after(i);
    }
  });
  fork(program_.threads, &context, [](void* given, int tile) {
    const auto& [self, run] = *static_cast<const Context*>(given);
    self.add_partials(run.begin, run.end, tile);
  });
}

void Executor::run(std::size_t begin, std::size_t end) {
  const bool alone = observer_ != nullptr && observer_->alone();
  auto section = std::ranges::lower_bound(program_.sections, begin, {}, &TiledSection::begin);
  for (std::size_t i = begin; i < end; ++i) {
    used_bytes_ = std::max(used_bytes_, calls_[i].end_bytes);
    used_host_bytes_ = std::max(used_host_bytes_, calls_[i].host_end_bytes);
    if (!alone && section != program_.sections.end() && section->begin == i &&
        section->end <= end) {
      run_section(*section);
      for (; i + 1 < section->end; ++i) {
        used_bytes_ = std::max(used_bytes_, calls_[i + 1].end_bytes);
      }
      ++section;
      continue;
    }
    if (observer_ != nullptr) observer_->before(i);
    run_instruction(i);
    if (observer_ != nullptr) observer_->after(i);
  }
}

void Executor::copy_states(Phase first, Phase last) {
  for (const StateCopy& copy : program_.copies) {
    if (copy.phase < first || copy.phase > last) continue;
    const TensorView& from = memory_.address(copy.from);
    const TensorView& to = memory_.address(copy.to);
    check(memory_.device().copy(kComputeStream, static_cast<std::byte*>(to.data),
                                static_cast<const std::byte*>(from.data), from.type.bytes()));
  }
}

void Executor::run_micro_step() {
  run(0, program_.update_begin);
  copy_states(Phase::kForward, Phase::kBackward);
}

void Executor::run_update() {
  run(program_.update_begin, program_.instructions.size());
  copy_states(Phase::kUpdate, Phase::kUpdate);
}

}  // namespace trainscope
