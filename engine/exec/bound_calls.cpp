// Calls given to a device.
#include "engine/exec/bound_calls.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/exec/bound_body.h"
#include "engine/exec/device_work.h"
#include "engine/ir/op_def.h"
#include "engine/plan/kernel_call.h"

namespace trainscope {

BoundCalls::BoundCalls(std::shared_ptr<const Program> of, const AddressOf& address_of)
    : program_(std::move(of)) {
  std::size_t operands = 0;
  for (const Call& call : program().calls) operands += call.inputs.size() + call.outputs.size();
  views_.reserve(operands);
  calls_.reserve(program().calls.size());
  for (const Call& call : program().calls) bind(call, address_of);
  for (const Call& call : program().calls) {
    for (CallId awaited : call.waits) at(awaited).is_awaited = true;
    has_waits_ = has_waits_ || !call.waits.empty();
  }
}

BoundCalls::~BoundCalls() = default;

BeyondPlan BoundCalls::beyond_plan() const {
  BeyondPlan all;
  if (beyond_ != nullptr) all += beyond_->needed();
  for (const Bound& bound : calls_) {
    if (bound.body != nullptr) all += bound.body->beyond_plan();
  }
  return all;
}

void BoundCalls::bind(const Call& call, const AddressOf& address_of) {
  Bound bound;
  const auto views_of = [&](const std::vector<Operand>& operands) {
    const std::size_t first = views_.size();
    for (const Operand& operand : operands) {
      TensorView view{.type = operand.type, .data = nullptr, .present = operand.value != kNoValue};
      if (operand.buffer != kNoBuffer) {
        view.data = address_of(operand.buffer) + operand.offset;
        note_end(operand.buffer, bound);
      }
      views_.push_back(view);
    }
    return std::span<const TensorView>(views_).subspan(first);
  };
  bound.inputs = views_of(call.inputs);
  bound.outputs = views_of(call.outputs);
  if (call.workspace != kNoBuffer) {
    bound.workspace = address_of(call.workspace) + call.workspace_offset;
    note_end(call.workspace, bound);
  }
  if (call.body) {
    if (beyond_ == nullptr) beyond_ = std::make_unique<TripStore>(program_->device);
    bound.body =
        std::make_unique<BoundBody>(BodyCall{.around = program(),
                                             .call = call,
                                             .inputs = bound.inputs,
                                             .outputs = bound.outputs,
                                             .workspace = static_cast<std::byte*>(bound.workspace),
                                             .beyond = *beyond_});
  }
  calls_.push_back(std::move(bound));
}

void BoundCalls::note_end(BufferId id, Bound& bound) const {
  const PlannedBuffer& buffer = program_->buffer(id);
  if (buffer.external) return;
  const std::int64_t unit = program_->space(buffer.space).alignment_bytes;
  std::int64_t& end = buffer.space == Space::kHost ? bound.host_end_bytes : bound.end_bytes;
  end = std::max(end, buffer.offset + (buffer.bytes + unit - 1) / unit * unit);
}

RunArgs BoundCalls::arguments(const Call& call, const Bound& bound) const {
  return {.params = call.params,
          .inputs = bound.inputs,
          .outputs = bound.outputs,
          .workspace = bound.workspace,
          .state = call.prepared.state.get(),
          .threads = call.tile < 0 ? program_->threads : 1,
          .call = {.stream = call.stream}};
}

void BoundCalls::launch_kernel(const Call& call, const Bound& bound, const ThreadWatch* watch) {
  RunArgs args = arguments(call, bound);
  args.call.watch = watch;
  at_node(program_->graph.node(call.node),
          [&] { launch(*program_->device, call.stream, *call.kernel, args); });
}

// A kernel that works in place would have its own results as inputs the second time.
double BoundCalls::seconds_alone(CallId id) const {
  const Call& call = program_->call(id);
  if (call.kernel == nullptr) return 0.0;
  const Bound& bound = at(id);
  Device& device = *program_->device;
  std::vector<std::vector<std::byte>> kept;
  for (const TensorView& input : bound.inputs) {
    kept.emplace_back(input.data == nullptr ? 0 : input.type.bytes());
    copy_and_wait(device, kept.back().data(), input.data, kept.back().size());
  }
  double seconds = 0.0;
  at_node(program_->graph.node(call.node), [&] {
    check_done(*call.kernel, device.time(*call.kernel, arguments(call, bound), &seconds));
  });
  for (std::size_t i = 0; i < kept.size(); ++i) {
    copy_and_wait(device, bound.inputs[i].data, kept[i].data(), kept[i].size());
  }
  return seconds;
}

void BoundCalls::issue_tile(CallId id, const ExecutionListeners& listeners) {
  launch_kernel(program_->call(id), at(id), listeners.thread_watch());
}

void BoundCalls::note_done(CallId begin, CallId end) {
  if (!has_waits_) return;
  for (auto i = static_cast<std::int32_t>(begin); i < static_cast<std::int32_t>(end); ++i) {
    Bound& bound = at(CallId(i));
    if (bound.is_awaited) bound.done = program_->device->record(program_->call(CallId(i)).stream);
  }
}

void BoundCalls::wait_for_all(CallId begin, CallId end) {
  if (!has_waits_) return;
  for (auto i = static_cast<std::int32_t>(begin); i < static_cast<std::int32_t>(end); ++i) {
    const Call& call = program_->call(CallId(i));
    for (CallId awaited : call.waits) {
      check(program_->device->wait(call.stream, at(awaited).done));
    }
  }
}

void BoundCalls::issue(CallId id, const ExecutionListeners& listeners) {
  const Call& call = program_->call(id);
  Bound& bound = at(id);
  for (CallId awaited : call.waits) check(program_->device->wait(call.stream, at(awaited).done));
  if (call.kind == CallKind::kStateCopy) {
    check(program_->device->copy(call.stream, static_cast<std::byte*>(bound.outputs[0].data),
                                 static_cast<const std::byte*>(bound.inputs[0].data),
                                 bound.inputs[0].type.bytes()));
  } else if (call.kind == CallKind::kProgram) {
    at_node(program_->graph.node(call.node), [&] { bound.body->run(id, listeners); });
  } else {
    launch_kernel(call, bound, listeners.thread_watch());
  }
  if (bound.is_awaited) bound.done = program_->device->record(call.stream);
}

}  // namespace trainscope
