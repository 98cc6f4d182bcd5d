// Overlaps in time by one pass over the runs by their begins, with those that have not ended. The
// order by the plan: who has bytes when is swept once, buffer by buffer, as a map of the arena.
#include "profiler/analysis/buffer_overlaps.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include "profiler/analysis/device_time.h"

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

using UsesOfCalls = std::vector<std::vector<Use>>;

bool share_bytes(const PlanBuffer& a, const PlanBuffer& b) {
  return a.space == b.space && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

std::vector<Event> runs_of(const EventView& events, const PlanView& plan) {
  std::vector<Event> runs;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const bool is_known = chunk.kind[i] == EventKind::kCall && chunk.id[i] < plan.calls.size();
      if (is_known) runs.push_back(chunk.event(i));
    }
  }
  std::ranges::stable_sort(runs, {}, &Event::begin_ns);
  return runs;
}

// Two calls with a buffer each that share bytes.
struct Conflict {
  std::uint32_t first_call = 0;
  std::uint32_t call = 0;
  std::uint32_t first_buffer = 0;
  std::uint32_t buffer = 0;

  auto operator<=>(const Conflict&) const = default;
};

class Found {
 public:
  void note(const Conflict& conflict, bool is_early, std::int64_t begin_ns, std::int64_t end_ns) {
    const auto [known, is_new] = known_.try_emplace({conflict, is_early}, found_.size());
    if (is_new) {
      found_.push_back({.first_call = conflict.first_call,
                        .call = conflict.call,
                        .first_buffer = conflict.first_buffer,
                        .buffer = conflict.buffer,
                        .is_early = is_early,
                        .begin_ns = begin_ns,
                        .end_ns = end_ns});
    }
    ++found_[known->second].runs;
  }
  std::vector<BufferOverlap> take() {
    std::ranges::stable_sort(found_, {}, &BufferOverlap::begin_ns);
    return std::move(found_);
  }

 private:
  std::map<std::pair<Conflict, bool>, std::size_t> known_;
  std::vector<BufferOverlap> found_;
};

// `first` began first and has not ended.
void note_overlap(const PlanView& plan, const UsesOfCalls& uses, const Event& first,
                  const Event& second, Found& found) {
  for (const Use& a : uses[first.id]) {
    for (const Use& b : uses[second.id]) {
      const bool meet = a.buffer != b.buffer && (a.is_written || b.is_written) &&
                        share_bytes(plan.buffers[a.buffer], plan.buffers[b.buffer]);
      if (!meet) continue;
      found.note({first.id, second.id, a.buffer, b.buffer}, false, second.begin_ns,
                 std::min(first.end_ns(), second.end_ns()));
    }
  }
}

void find_overlaps(const PlanView& plan, const UsesOfCalls& uses, const std::vector<Event>& runs,
                   Found& found) {
  std::vector<Event> open;
  for (const Event& run : runs) {
    std::erase_if(open, [&](const Event& each) { return each.end_ns() <= run.begin_ns; });
    if (run.value == 0) continue;
    for (const Event& each : open) {
      if (each.id != run.id) note_overlap(plan, uses, each, run, found);
    }
    open.push_back(run);
  }
}

bool is_of_update(const PlanView& plan, std::uint32_t call) {
  return call >= plan.facts().update_call;
}

// A buffer within a micro-step, or within the update, and the calls there that use it.
struct Tenant {
  struct Call {
    std::uint32_t id = 0;
    bool writes = false;
  };
  std::uint32_t buffer = 0;
  std::vector<Call> calls = {};
};

// Of micro-steps and of the update: by the first call that uses each, which is the order in which
// they have their bytes.
std::array<std::vector<Tenant>, 2> tenants_of(const PlanView& plan, const UsesOfCalls& uses) {
  std::array<std::vector<Tenant>, 2> tenants;
  std::array<std::vector<std::uint32_t>, 2> place_of;  // by buffer
  place_of.fill(std::vector<std::uint32_t>(plan.buffers.size(), kNoRow));
  for (std::uint32_t call = 0; call < uses.size(); ++call) {
    const std::size_t part = is_of_update(plan, call) ? 1 : 0;
    for (const Use& use : uses[call]) {
      std::uint32_t& place = place_of[part][use.buffer];
      if (place == kNoRow) {
        place = static_cast<std::uint32_t>(tenants[part].size());
        tenants[part].push_back({.buffer = use.buffer});
      }
      tenants[part][place].calls.push_back({.id = call, .writes = use.is_written});
    }
  }
  return tenants;
}

// Who had each byte of each space last.
class LastTenants {
 public:
  // Its bytes are the tenant's from here on. Calls f with each that had some of them, perhaps more
  // than once.
  template <class F>
  void take(const PlanBuffer& bytes, const Tenant& tenant, F f) {
    const std::int64_t begin = bytes.offset;
    const std::int64_t end = bytes.offset + bytes.bytes;
    if (begin >= end) return;
    std::map<std::int64_t, Piece>& pieces = pieces_[bytes.space];
    auto at = pieces.lower_bound(begin);
    if (at != pieces.begin() && std::prev(at)->second.end > begin) --at;
    while (at != pieces.end() && at->first < end) {
      const auto [from, piece] = *at;
      f(*piece.tenant);
      at = pieces.erase(at);
      if (from < begin) pieces.emplace(from, Piece{.end = begin, .tenant = piece.tenant});
      if (piece.end > end) pieces.emplace(end, piece);
    }
    pieces.emplace(begin, Piece{.end = end, .tenant = &tenant});
  }

 private:
  struct Piece {
    std::int64_t end = 0;
    const Tenant* tenant = nullptr;
  };
  std::map<PlanSpaceKind, std::map<std::int64_t, Piece>> pieces_;  // by begin
};

// Two micro-steps, the update, and the next step: whatever may follow each other.
constexpr std::array<std::size_t, 5> kPartsInARow = {0, 0, 1, 0, 1};

// Pairs of which the plan has every run of `first_call` before the next one of `call`: of each
// buffer, the one that had some of its bytes before it, and those of their calls of which one
// writes. What is further back is behind these.
std::vector<Conflict> conflicts_of(const PlanView& plan, const UsesOfCalls& uses) {
  const std::array<std::vector<Tenant>, 2> tenants = tenants_of(plan, uses);
  std::vector<Conflict> conflicts;
  LastTenants last;
  const auto add = [&](const Tenant& before, const Tenant& tenant) {
    if (before.buffer == tenant.buffer) return;
    for (const Tenant::Call& a : before.calls) {
      for (const Tenant::Call& b : tenant.calls) {
        if (a.id == b.id || !(a.writes || b.writes)) continue;
        conflicts.push_back({a.id, b.id, before.buffer, tenant.buffer});
      }
    }
  };
  for (const std::size_t part : kPartsInARow) {
    for (const Tenant& tenant : tenants[part]) {
      last.take(plan.buffers[tenant.buffer], tenant,
                [&](const Tenant& before) { add(before, tenant); });
    }
  }
  std::ranges::sort(conflicts);
  const auto repeated = std::ranges::unique(conflicts);
  conflicts.erase(repeated.begin(), repeated.end());
  return conflicts;
}

// Steps one behind the other, of which the device had done all when the last one ended. Before
// that the host may have been ahead of it: a run is known by its number, and not by the step in
// whose time it was.
struct Window {
  std::int64_t begin_ns = 0;
  // Places in the order of all: one of each micro-step, then one of the update, step by step.
  std::array<std::vector<std::int64_t>, 2> places = {};
};

std::vector<Event> of_driver(const EventView& events, EventKind kind) {
  std::vector<Event> found;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (chunk.thread[i] == 0 && chunk.kind[i] == kind) found.push_back(chunk.event(i));
    }
  }
  std::ranges::sort(found, {}, &Event::begin_ns);
  return found;
}

// The first one is of what is before all steps, as of one.
std::vector<Window> windows_of(const EventView& events) {
  const std::vector<Event> steps = of_driver(events, EventKind::kStep);
  std::vector<Event> parts = of_driver(events, EventKind::kStepPart);
  std::erase_if(parts, [](const Event& part) { return part.id != 0; });
  std::vector<Window> windows(1);
  windows[0].begin_ns = std::numeric_limits<std::int64_t>::min();
  windows[0].places[0].push_back(0);
  windows[0].places[1].push_back(1);
  std::int64_t place = 2;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool follows = i > 0 && steps[i - 1].id + std::uint64_t{1} == steps[i].id;
    if (!follows) windows.push_back({.begin_ns = steps[i].begin_ns});
    const auto first = std::ranges::lower_bound(parts, steps[i].begin_ns, {}, &Event::begin_ns);
    const auto behind = std::ranges::lower_bound(parts, steps[i].end_ns(), {}, &Event::begin_ns);
    const std::ptrdiff_t micro_steps = std::max<std::ptrdiff_t>(1, behind - first);
    auto& [of_micro_steps, of_updates] = windows.back().places;
    for (std::ptrdiff_t k = 0; k < micro_steps; ++k) of_micro_steps.push_back(place++);
    of_updates.push_back(place++);
  }
  return windows;
}

struct PlacedRun {
  std::int64_t place = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// By call; those of a window in which it has not as many as it should are left out.
std::vector<std::vector<PlacedRun>> placed_runs(const EventView& events, const PlanView& plan,
                                                const std::vector<Event>& runs) {
  const std::vector<Window> windows = windows_of(events);
  std::vector<std::vector<PlacedRun>> placed(plan.calls.size());
  std::vector<std::vector<PlacedRun>> waiting(plan.calls.size());  // of the window under way
  const auto end_window = [&](const Window& window) {
    for (std::uint32_t call = 0; call < waiting.size(); ++call) {
      const std::vector<std::int64_t>& places = window.places[is_of_update(plan, call) ? 1 : 0];
      if (waiting[call].size() == places.size()) {
        for (std::size_t i = 0; i < places.size(); ++i) {
          waiting[call][i].place = places[i];
          placed[call].push_back(waiting[call][i]);
        }
      }
      waiting[call].clear();
    }
  };
  auto run = runs.begin();
  for (auto window = windows.begin(); window != windows.end(); ++window) {
    const auto next = std::next(window);
    for (; run != runs.end() && (next == windows.end() || run->begin_ns < next->begin_ns); ++run) {
      waiting[run->id].push_back({.begin_ns = run->begin_ns, .end_ns = run->end_ns()});
    }
    end_window(*window);
  }
  return placed;
}

// Runs that ended before the one began that the plan has before them. Those that overlap in time
// are found anyway.
void find_early_runs(const Conflict& conflict, const std::vector<PlacedRun>& first_runs,
                     const std::vector<PlacedRun>& runs, Found& found) {
  // A call that is behind the other in the plan comes before its next run.
  const std::int64_t behind = conflict.first_call < conflict.call ? 0 : 1;
  std::size_t next = 0;
  for (const PlacedRun& run : runs) {
    while (next < first_runs.size() && first_runs[next].place + behind <= run.place) ++next;
    if (next == 0) continue;
    const PlacedRun& first = first_runs[next - 1];
    if (run.begin_ns < first.begin_ns && run.end_ns <= first.begin_ns) {
      found.note(conflict, true, run.begin_ns, first.end_ns);
    }
  }
}

}  // namespace

std::vector<BufferOverlap> buffer_overlaps(const EventView& events, const PlanView& plan) {
  if (!are_calls_of_device(events)) return {};
  UsesOfCalls uses;
  for (const PlanCall& call : plan.calls) uses.push_back(uses_of(plan, call));
  const std::vector<Event> runs = runs_of(events, plan);
  Found found;
  find_overlaps(plan, uses, runs, found);
  const std::vector<std::vector<PlacedRun>> placed = placed_runs(events, plan, runs);
  for (const Conflict& conflict : conflicts_of(plan, uses)) {
    find_early_runs(conflict, placed[conflict.first_call], placed[conflict.call], found);
  }
  return found.take();
}

std::string text_of(const BufferOverlap& overlap, const PlanView& plan) {
  const auto call = [&](std::uint32_t id) {
    return "call " + std::to_string(id) + " " + std::string(plan.name_of(plan.calls[id]));
  };
  const auto buffer = [&](std::uint32_t id) {
    return "'" + std::string(plan.text(plan.buffers[id].label)) + "'";
  };
  return call(overlap.call) + " used " + buffer(overlap.buffer) +
         (overlap.is_early ? " before " : " while ") + call(overlap.first_call) + " used " +
         buffer(overlap.first_buffer) + ", which has the same bytes: in " +
         std::to_string(overlap.runs) + " runs, first from " + std::to_string(overlap.begin_ns) +
         " to " + std::to_string(overlap.end_ns) + " ns";
}

}  // namespace trainscope::profiler
