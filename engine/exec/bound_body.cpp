// Operands are copied into the body's arena before the first trip, and out of it after the last.
#include "engine/exec/bound_body.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/device_work.h"

namespace trainscope {

BoundBody::BoundBody(std::shared_ptr<const CallBody> body, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, std::byte* workspace)
    : body_(std::move(body)),
      inputs_(inputs),
      outputs_(outputs),
      workspace_(workspace),
      calls_({body_, body_->program.get()},
             [this](BufferId id) { return workspace_ + program().buffer(id).offset; }) {}

std::byte* BoundBody::address(ValueId value) const {
  return program().keeps(value) ? workspace_ + program().offset_of(value) : nullptr;
}

void BoundBody::copy(std::byte* to, const void* from, std::size_t bytes) const {
  if (bytes == 0 || to == nullptr) return;
  check(device().copy(kComputeStream, to, static_cast<const std::byte*>(from), bytes));
}

std::int64_t BoundBody::trips() const {
  if (body_->trips_input < 0) return 1;
  std::int64_t count = 0;
  const TensorView& input = inputs_[static_cast<std::size_t>(body_->trips_input)];
  require(input.type.dtype == DType::kI64 && input.elements() == 1, ErrorCode::kBadInput,
          "the number of trips is {}, not one i64", type_text(input.type));
  copy_and_wait(device(), &count, input.data, sizeof(count));
  return count;
}

// The workspace held other calls' bytes: constants are written anew each time.
void BoundBody::load() const {
  const Graph& graph = program().graph;
  for (ValueId v : graph.values_of(ValueKind::kConstant)) {
    if (program().keeps(v))
      copy(address(v), graph.value(v).data->data(), graph.value(v).type.bytes());
  }
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    copy(address(graph.inputs[i]), inputs_[i].data, inputs_[i].type.bytes());
  }
}

void BoundBody::trip(CallId within, std::int64_t number, const ExecutionListeners& listeners) {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CallId id{static_cast<std::int32_t>(i)};
    const CallEvent event{.call = id, .within = within, .trip = number};
    listeners.tell([&](ExecutionEvents& each) { each.call_begin(event); });
    calls_.issue(id, listeners);
    listeners.tell([&](ExecutionEvents& each) { each.call_end(event); });
  }
  const Graph& graph = program().graph;
  for (const OpBody::Carried& carried : body_->carried) {
    const ValueId from = graph.outputs[static_cast<std::size_t>(carried.from)];
    copy(address(graph.inputs[static_cast<std::size_t>(carried.to)]), address(from),
         graph.value(from).type.bytes());
  }
}

int BoundBody::carried_to(int output) const {
  const auto carried = std::ranges::find(body_->carried, output, &OpBody::Carried::from);
  return carried == body_->carried.end() ? -1 : carried->to;
}

void BoundBody::store(bool any_trip) const {
  const Graph& graph = program().graph;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const TensorView& to = outputs_[i];
    if (!to.present || to.type.bytes() == 0) continue;
    auto* bytes = static_cast<std::byte*>(to.data);
    const int given = carried_to(static_cast<int>(i));
    if (any_trip) {
      copy(bytes, address(graph.outputs[i]), to.type.bytes());
    } else if (given >= 0) {
      copy(bytes, inputs_[static_cast<std::size_t>(given)].data, to.type.bytes());
    } else {
      check(device().fill(kComputeStream, bytes, std::byte{0}, to.type.bytes()));
    }
  }
}

void BoundBody::run(CallId within, const ExecutionListeners& listeners) {
  const std::int64_t count = trips();
  if (count > 0) load();
  for (std::int64_t i = 0; i < count; ++i) trip(within, i, listeners);
  store(count > 0);
}

}  // namespace trainscope
