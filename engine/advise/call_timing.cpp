// Operands in an arena of their own, and the clock around launches.
#include "engine/advise/call_timing.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/core/numbers.h"
#include "engine/core/tensor.h"
#include "engine/exec/arena.h"
#include "engine/exec/device_work.h"
#include "engine/ir/op_def.h"
#include "engine/plan/call_costs.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {
namespace {

using Clock = std::chrono::steady_clock;

Tensor plain_numbers(const TensorType& type, std::int64_t integer_scalar) {
  const bool is_integer_scalar = type.dtype == DType::kI64 && type.shape.rank == 0;
  if (is_integer_scalar) return Tensor::scalar<std::int64_t>(integer_scalar);
  if (!is_float(type.dtype)) return Tensor(type);
  Tensor tensor({.dtype = DType::kF32, .shape = type.shape});
  std::int64_t i = 0;
  for (float& element : tensor.values<float>()) {
    element = static_cast<float>(i++ * 2654435761 % 1024) / 512.0F - 1.0F;
  }
  // A scalar is a scale, or the number of a step.
  if (type.elements() == 1) tensor.values<float>()[0] = 1.0F;
  return type.dtype == DType::kF32 ? std::move(tensor) : convert(tensor, type.dtype);
}

constexpr std::int64_t kAlignment = 4096;
std::int64_t whole_units(std::size_t bytes) {
  return (static_cast<std::int64_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

// How many rows count is an integer scalar of ops that look at no others; of other ops the first
// row stands for all.
std::int64_t integer_scalar_of(const Program& program, const Call& call,
                               std::int64_t compacted_rows) {
  if (!is_compacted(program, call)) return 0;
  return compacted_rows >= 0 ? compacted_rows : call.inputs.front().type.shape[0];
}

PrepareArgs prepare_args(const Program& program, const Call& call,
                         std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  return {.params = call.params,
          .inputs = inputs,
          .outputs = outputs,
          .threads = call.tile < 0 ? program.threads : 1};
}

// A call of one kernel, ready to be launched again and again. All spaces of the program are taken
// for the device's own.
class CallAlone {
 public:
  CallAlone(const Program& program, const Call& call, const Kernel& kernel,
            std::int64_t compacted_rows)
      : program_(program),
        call_(call),
        kernel_(kernel),
        inputs_(operand_views(program.graph, call.inputs)),
        outputs_(operand_views(program.graph, call.outputs)),
        prepared_(prepared_for(kernel, prepare_args(program, call, inputs_, outputs_))) {
    std::int64_t bytes = whole_units(prepared_.workspace_bytes);
    for (const auto* views : {&inputs_, &outputs_}) {
      for (const TensorView& view : *views)
        bytes += view.present ? whole_units(view.type.bytes()) : 0;
    }
    arena_.emplace(program.device, Space::kDevice, std::max(bytes, kAlignment));
    place(integer_scalar_of(program, call, compacted_rows));
  }

  double run() {
    const RunArgs args{.params = call_.params,
                       .inputs = inputs_,
                       .outputs = outputs_,
                       .workspace = arena_->data(),
                       .state = prepared_.state.get(),
                       .threads = call_.tile < 0 ? program_.threads : 1,
                       .call = {.stream = call_.stream}};
    Device& device = *program_.device;
    const Clock::time_point start = Clock::now();
    launch(device, call_.stream, kernel_, args);
    check(device.synchronize(device.record(call_.stream)));
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  void place(std::int64_t integer_scalar) {
    std::byte* next = arena_->data() + whole_units(prepared_.workspace_bytes);
    for (TensorView& input : inputs_) {
      if (!input.present) continue;
      const std::byte* given = static_cast<const std::byte*>(input.data);
      const Tensor numbers =
          given == nullptr ? plain_numbers(input.type, integer_scalar) : Tensor();
      copy_and_wait(*program_.device, next, given == nullptr ? numbers.data() : given,
                    input.type.bytes());
      input.data = std::exchange(next, next + whole_units(input.type.bytes()));
    }
    for (TensorView& output : outputs_) {
      if (!output.present) continue;
      output.data = std::exchange(next, next + whole_units(output.type.bytes()));
    }
  }

  const Program& program_;
  const Call& call_;
  const Kernel& kernel_;
  std::vector<TensorView> inputs_;
  std::vector<TensorView> outputs_;
  Prepared prepared_;
  std::optional<Arena> arena_;
};

}  // namespace

bool is_compacted(const Program& program, const Call& call) {
  if (call.node == kNoNode) return false;
  const OpDef& op = *program.graph.node(call.node).op;
  return op.counts_rows || op.count_input >= 0;
}

Support supports_call(const Program& program, const Call& call, const Kernel& kernel) {
  const std::vector<TensorView> inputs = operand_views(program.graph, call.inputs);
  const std::vector<TensorView> outputs = operand_views(program.graph, call.outputs);
  return supports(kernel, prepare_args(program, call, inputs, outputs));
}

CallTiming time_alone(const Program& program, const Call& call, const Kernel& kernel,
                      const TimingEffort& effort) {
  return at_node(program.graph.node(call.node), [&] {
    CallAlone alone(program, call, kernel, effort.compacted_rows);
    alone.run();
    std::vector<double> times;
    double sum = 0.0;
    const auto is_enough = [&] {
      const auto rounds = std::ssize(times);
      return rounds >= effort.rounds && (sum >= effort.seconds || rounds >= effort.many_rounds);
    };
    while (times.empty() || (!is_enough() && sum < effort.most_seconds)) {
      times.push_back(alone.run());
      sum += times.back();
    }
    return CallTiming{.median_seconds = median(times),
                      .least_seconds = std::ranges::min(times),
                      .rounds = static_cast<int>(times.size())};
  });
}

}  // namespace trainscope
