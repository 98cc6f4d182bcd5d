// One pass over the runs by their begins, with those that have not ended.
#include "profiler/analysis/buffer_overlaps.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace trainscope::profiler {
namespace {

// A buffer that a call uses.
struct Use {
  std::uint32_t buffer = 0;
  bool is_written = false;
};

std::vector<Use> uses_of(const PlanView& plan, const PlanCall& call) {
  std::vector<Use> uses;
  const auto add = [&](std::uint32_t buffer, bool is_written) {
    if (buffer == kNoRow || plan.buffers[buffer].external != 0) return;
    const auto known = std::ranges::find(uses, buffer, &Use::buffer);
    if (known == uses.end()) {
      uses.push_back({.buffer = buffer, .is_written = is_written});
    } else {
      known->is_written = known->is_written || is_written;
    }
  };
  const auto add_operands = [&](RowRange rows, bool are_written) {
    for (const PlanOperand& operand : rows_of(plan.operands, rows)) {
      add(operand.buffer, are_written);
    }
  };
  add_operands(call.inputs, false);
  add_operands(call.outputs, true);
  add(call.workspace, true);
  return uses;
}

bool share_bytes(const PlanBuffer& a, const PlanBuffer& b) {
  return a.space == b.space && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

// None where the driving thread computes calls.
std::vector<Event> runs_of(const EventView& events, const PlanView& plan) {
  std::vector<Event> runs;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.kind[i] != EventKind::kCall || chunk.id[i] >= plan.calls.size()) continue;
      if (chunk.thread[i] == 0) return {};
      runs.push_back(chunk.event(i));
    }
  }
  std::ranges::stable_sort(runs, {}, &Event::begin_ns);
  return runs;
}

class Overlaps {
 public:
  explicit Overlaps(const PlanView& plan) : plan_(plan) {
    for (const PlanCall& call : plan.calls) uses_.push_back(uses_of(plan, call));
  }

  void add(const Event& first, const Event& second) {
    for (const Use& a : uses_[first.id]) {
      for (const Use& b : uses_[second.id]) {
        const bool meet = a.buffer != b.buffer && (a.is_written || b.is_written) &&
                          share_bytes(plan_.buffers[a.buffer], plan_.buffers[b.buffer]);
        if (meet) note(first, second, a.buffer, b.buffer);
      }
    }
  }
  std::vector<BufferOverlap> take() { return std::move(found_); }

 private:
  void note(const Event& first, const Event& second, std::uint32_t a, std::uint32_t b) {
    const auto [known, is_new] = known_.try_emplace({first.id, second.id, a, b}, found_.size());
    if (is_new) {
      found_.push_back({.first_call = first.id,
                        .call = second.id,
                        .first_buffer = a,
                        .buffer = b,
                        .begin_ns = second.begin_ns,
                        .end_ns = std::min(first.end_ns(), second.end_ns())});
    }
    ++found_[known->second].runs;
  }

  const PlanView& plan_;
  std::vector<std::vector<Use>> uses_;  // by call
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t>
      known_;
  std::vector<BufferOverlap> found_;
};

}  // namespace

std::vector<BufferOverlap> buffer_overlaps(const EventView& events, const PlanView& plan) {
  Overlaps overlaps(plan);
  std::vector<Event> open;
  for (const Event& run : runs_of(events, plan)) {
    std::erase_if(open, [&](const Event& each) { return each.end_ns() <= run.begin_ns; });
    if (run.value == 0) continue;
    for (const Event& each : open) {
      if (each.id != run.id) overlaps.add(each, run);
    }
    open.push_back(run);
  }
  return overlaps.take();
}

std::string text_of(const BufferOverlap& overlap, const PlanView& plan) {
  const auto call = [&](std::uint32_t id) {
    return "call " + std::to_string(id) + " " + std::string(plan.name_of(plan.calls[id]));
  };
  const auto buffer = [&](std::uint32_t id) {
    return "'" + std::string(plan.text(plan.buffers[id].label)) + "'";
  };
  return call(overlap.call) + " used " + buffer(overlap.buffer) + " while " +
         call(overlap.first_call) + " used " + buffer(overlap.first_buffer) +
         ", which has the same bytes: in " + std::to_string(overlap.runs) + " runs, first from " +
         std::to_string(overlap.begin_ns) + " to " + std::to_string(overlap.end_ns) + " ns";
}

}  // namespace trainscope::profiler
