// Operands are copied into the body's arena before the first trip, slices of them before each one,
// and what trips make is copied out of it.
#include "engine/exec/bound_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/exec/device_work.h"
#include "engine/ir/op_def.h"

namespace trainscope {

namespace {

// Of loops that have more trips than their room: with more they are taken for ones that never end.
constexpr std::int64_t kMostTrips = std::int64_t{1} << 20;

// Whether loops alone read the stack, slice by slice, as gradients do.
bool is_read_by_trips(const Graph& graph, ValueId stack) {
  if (graph.is_output(stack)) return false;
  return std::ranges::all_of(graph.value(stack).uses, [&graph](const Use& use) {
    const Node& node = graph.node(use.node);
    return node.op->body && node.op->body(*NodeArgs(graph, node)).trips.is_sliced(use.input);
  });
}

}  // namespace

BoundBody::BoundBody(const BodyCall& of)
    : around_(of.around),
      call_(of.call),
      body_(of.call.body),
      inputs_(of.inputs),
      outputs_(of.outputs),
      workspace_(of.workspace),
      beyond_(of.beyond),
      calls_({body_, body_->program.get()},
             [this](BufferId id) { return workspace_ + program().buffer(id).offset; }) {}

std::byte* BoundBody::address(ValueId value) const {
  return program().keeps(value) ? workspace_ + program().offset_of(value) : nullptr;
}

void BoundBody::copy(std::byte* to, const void* from, std::size_t bytes) const {
  if (bytes == 0 || to == nullptr || from == nullptr || to == from) return;
  check(device().copy(kComputeStream, to, static_cast<const std::byte*>(from), bytes));
}

std::int64_t BoundBody::wanted_trips() const {
  if (trips().trips_input < 0) return 1;
  std::int64_t count = 0;
  const TensorView& input = inputs_[static_cast<std::size_t>(trips().trips_input)];
  require(input.type.dtype == DType::kI64 && input.elements() == 1, ErrorCode::kBadInput,
          "the number of trips is {}, not one i64", type_text(input.type));
  copy_and_wait(device(), &count, input.data, sizeof(count));
  return std::max<std::int64_t>(0, count);
}

// Whether more trips than there is room for can be: what they leave is read where it lies, and what
// they read is there.
bool BoundBody::may_grow(std::int64_t count) const {
  const bool leaves = std::ranges::all_of(trips().stacked, [this](int i) {
    const ValueId stack = around(call_.outputs, i);
    return stack == kNoValue || is_read_by_trips(around_.graph, stack);
  });
  const bool finds = std::ranges::all_of(trips().sliced, [this, count](int i) {
    return beyond_.count(around(call_.inputs, i)) >= count - trips().most;
  });
  return leaves && finds && count <= kMostTrips;
}

void BoundBody::require_room(std::int64_t count) const {
  if (trips().most >= 0 && count > trips().most && !may_grow(count)) refuse_more(count);
}

void BoundBody::refuse_more(std::int64_t count) const {
  throw Error(
      ErrorCode::kRunFailed,
      fmt::format("the data asks for {} trips, but the plan has room for {}",
                  trips().condition_output < 0 ? std::to_string(count) : "more", trips().most))
      .hint("plan for as many as the data needs: --max-trips N");
}

bool BoundBody::is_carried_to(int input) const {
  return std::ranges::find(trips().carried, input, &Trips::Carried::to) != trips().carried.end();
}

// The workspace held other calls' bytes: constants are written anew each time. Without a trip only
// what is carried is asked for.
void BoundBody::load(std::int64_t count) const {
  const Graph& graph = program().graph;
  for (ValueId v : graph.values_of(ValueKind::kConstant)) {
    if (count > 0 && program().keeps(v)) copy(address(v), graph.value(v).data->data(), bytes_of(v));
  }
  for (int i = 0; i < static_cast<int>(graph.inputs.size()); ++i) {
    const bool is_number = trips().is_numbered && i == trips().trips_input;
    const bool is_needed = is_carried_to(i) || (count > 0 && !trips().is_sliced(i));
    if (is_number || !is_needed) continue;
    copy(address(input(i)), inputs_[static_cast<std::size_t>(i)].data, bytes_of(input(i)));
  }
}

void BoundBody::give_slices(std::int64_t number) const {
  if (trips().is_numbered) {
    std::byte* to = address(input(trips().trips_input));
    if (to != nullptr) copy_and_wait(device(), to, &number, sizeof(number));
  }
  for (const int i : trips().sliced) {
    const std::size_t bytes = bytes_of(input(i));
    const auto* first = static_cast<const std::byte*>(inputs_[static_cast<std::size_t>(i)].data);
    const std::byte* from = is_beyond(number)
                                ? beyond_.at(around(call_.inputs, i), number - trips().most)
                                : first + static_cast<std::size_t>(number) * bytes;
    copy(address(input(i)), from, bytes);
  }
}

void BoundBody::run_calls(CallId within, std::int64_t number, const ExecutionListeners& listeners) {
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CallId id{static_cast<std::int32_t>(i)};
    const CallEvent event{.call = id, .within = within, .trip = number};
    listeners.tell([&](ExecutionEvents& each) { each.call_begin(event); });
    calls_.issue(id, listeners);
    listeners.tell([&](ExecutionEvents& each) { each.call_end(event); });
  }
}

void BoundBody::take_slices(std::int64_t number) const {
  for (const int i : trips().stacked) {
    const TensorView& to = outputs_[static_cast<std::size_t>(i)];
    if (!to.present) continue;
    const std::size_t bytes = bytes_of(output(i));
    if (is_beyond(number)) {
      copy(beyond_.add(around(call_.outputs, i), number - trips().most, bytes), address(output(i)),
           bytes);
    } else if (to.data != nullptr) {
      copy(static_cast<std::byte*>(to.data) + static_cast<std::size_t>(number) * bytes,
           address(output(i)), bytes);
    }
  }
}

void BoundBody::carry() const {
  const auto each = [this](auto what) {
    for (std::size_t k = 0; k < trips().carried.size(); ++k) {
      const Trips::Carried& carried = trips().carried[k];
      what(output(carried.from), input(carried.to), body_->waiting_at[k]);
    }
  };
  each([this](ValueId from, ValueId, std::int64_t waiting) {
    if (waiting >= 0) copy(workspace_ + waiting, address(from), bytes_of(from));
  });
  each([this](ValueId from, ValueId to, std::int64_t waiting) {
    if (waiting < 0) copy(address(to), address(from), bytes_of(from));
  });
  each([this](ValueId from, ValueId to, std::int64_t waiting) {
    if (waiting >= 0) copy(address(to), workspace_ + waiting, bytes_of(from));
  });
}

bool BoundBody::goes_on() const {
  if (trips().condition_output < 0) return true;
  bool another = false;
  copy_and_wait(device(), &another, address(output(trips().condition_output)), sizeof(another));
  return another;
}

// What is neither carried nor stacked, of the last trip.
void BoundBody::store_plain() const {
  for (int i = 0; i < static_cast<int>(outputs_.size()); ++i) {
    if (i == trips().condition_output || trips().is_stacked(i) || trips().carried_to(i) >= 0) {
      continue;
    }
    const TensorView& to = outputs_[static_cast<std::size_t>(i)];
    if (to.present) copy(static_cast<std::byte*>(to.data), address(output(i)), to.type.bytes());
  }
}

// After `count` trips: what was carried last, zeros behind the slices of trips that there were not.
void BoundBody::store(std::int64_t count) const {
  for (int i = 0; i < static_cast<int>(outputs_.size()); ++i) {
    const TensorView& to = outputs_[static_cast<std::size_t>(i)];
    if (!to.present || to.data == nullptr || to.type.bytes() == 0) continue;
    auto* bytes = static_cast<std::byte*>(to.data);
    std::size_t filled = count > 0 ? to.type.bytes() : 0;
    if (i == trips().condition_output) {
      copy_and_wait(device(), bytes, &count, sizeof(count));
      filled = to.type.bytes();
    } else if (const int carried = trips().carried_to(i); carried >= 0) {
      copy(bytes, address(input(carried)), to.type.bytes());
      filled = to.type.bytes();
    } else if (trips().is_stacked(i)) {
      const std::int64_t inside = trips().most < 0 ? count : std::min(count, trips().most);
      filled = static_cast<std::size_t>(inside) * bytes_of(output(i));
    }
    if (filled == to.type.bytes()) continue;
    check(device().fill(kComputeStream, bytes + filled, std::byte{0}, to.type.bytes() - filled));
  }
}

void BoundBody::run(CallId within, const ExecutionListeners& listeners) {
  const std::int64_t wanted = wanted_trips();
  if (trips().condition_output < 0) require_room(wanted);
  for (const int i : trips().stacked) beyond_.clear(around(call_.outputs, i));
  load(wanted);
  std::int64_t done = 0;
  for (bool another = wanted > 0; another;) {
    if (is_beyond(done) && (done == trips().most || done == kMostTrips)) require_room(done + 1);
    const std::int64_t number = trips().backwards ? wanted - 1 - done : done;
    give_slices(number);
    run_calls(within, number, listeners);
    take_slices(number);
    another = ++done < wanted && goes_on();
    if (!another) store_plain();
    carry();
  }
  if (trips().most >= 0 && done > trips().most) beyond_.note_trips(done);
  store(done);
}

}  // namespace trainscope
