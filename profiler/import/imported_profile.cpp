// Calls by name and turn; events in the order that a file of events has.
#include "profiler/import/imported_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/core/error.h"

namespace trainscope::profiler {
namespace {

// How far outside a span is among those that begin and end together.
int depth_of(EventKind kind) {
  if (kind == EventKind::kStep) return 0;
  return kind == EventKind::kStepPart ? 1 : 2;
}

// Outer spans first.
bool begins_before(const Event& a, const Event& b) {
  if (a.thread != b.thread) return a.thread < b.thread;
  if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
  if (a.value != b.value) return a.value > b.value;
  return depth_of(a.kind) < depth_of(b.kind);
}

// Inner spans first: as they end.
bool ends_before(const Event& a, const Event& b) {
  if (a.thread != b.thread) return a.thread < b.thread;
  if (a.end_ns() != b.end_ns()) return a.end_ns() < b.end_ns();
  if (a.begin_ns != b.begin_ns) return a.begin_ns > b.begin_ns;
  return depth_of(a.kind) > depth_of(b.kind);
}

}  // namespace

std::int64_t ns_of_microseconds(double microseconds, std::string_view key) {
  constexpr double kMost = 3.2e15;
  require(std::isfinite(microseconds) && std::abs(microseconds) < kMost, ErrorCode::kBadInput,
          "{} is {} microseconds: no time of a trace", key, microseconds);
  return std::llround(microseconds * 1000.0);
}

std::uint32_t ProfileBuilder::call(const ImportedCall& call, std::int64_t turn) {
  const auto id = static_cast<std::uint32_t>(plan_.calls.size());
  const auto [found, is_new] = calls_.try_emplace({call.name, call.kernel, call.phase, turn}, id);
  if (!is_new) return found->second;
  plan_.names.push_back(plan_.texts.id(call.node));
  const std::string name = turn == 0 ? call.name : call.name + "." + std::to_string(turn);
  plan_.nodes.push_back({.name = plan_.texts.id(name),
                         .op = plan_.texts.id(call.op),
                         .pass = plan_.texts.id("import"),
                         .sources = {.begin = id, .count = 1},
                         .phase = call.phase});
  plan_.calls.push_back({.phase = call.phase,
                         .node = id,
                         .kernel = plan_.texts.id(call.kernel),
                         .dtype = plan_.texts.id(call.dtype),
                         .flops = std::max<std::int64_t>(0, call.flops),
                         .bytes_read = std::max<std::int64_t>(0, call.bytes_read),
                         .bytes_written = std::max<std::int64_t>(0, call.bytes_written)});
  return id;
}

void ProfileBuilder::add(const Event& event) {
  constexpr std::size_t kMostEvents = 50'000'000;
  require(events_.size() < kMostEvents, ErrorCode::kBadInput, "the trace has more than {} spans",
          kMostEvents);
  events_.push_back(event);
}

void ProfileBuilder::attribute(std::string_view name, std::int64_t ns, bool is_tied) {
  op_ns_ += ns;
  if (is_tied) {
    attributed_ns_ += ns;
  } else {
    rest_[std::string(name)] += ns;
  }
}

void ProfileBuilder::set_flops(std::uint32_t call, std::int64_t flops) {
  plan_.calls[call].flops = std::max(plan_.calls[call].flops, flops);
}

void ProfileBuilder::attribute_work(std::int64_t ns, bool is_tied) {
  work_ns_ += ns;
  if (is_tied) attributed_work_ns_ += ns;
}

void ProfileBuilder::sort_events() {
  std::ranges::sort(events_, begins_before);
  std::vector<Event> open;
  for (Event& event : events_) {
    while (!open.empty() &&
           (open.back().thread != event.thread || open.back().end_ns() <= event.begin_ns)) {
      open.pop_back();
    }
    if (!open.empty() && event.end_ns() > open.back().end_ns()) {
      event.value = static_cast<std::uint64_t>(open.back().end_ns() - event.begin_ns);
    }
    open.push_back(event);
  }
  std::ranges::sort(events_, ends_before);
}

void ProfileBuilder::count_steps(ImportedProfile& profile) const {
  for (const Event& event : events_) {
    if (event.kind != EventKind::kStep) continue;
    profile.steps.push_back(event.id);
    profile.step_ns += static_cast<std::int64_t>(event.value);
  }
}

ImportedProfile ProfileBuilder::finish(std::string tool, std::int64_t start_unix_ns) {
  require(!plan_.calls.empty(), ErrorCode::kBadInput, "the trace of {} has no ops in its steps",
          tool);
  sort_events();
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::uint16_t threads = 0;
  for (const Event& event : events_) {
    first = std::min(first, event.begin_ns);
    threads = std::max(threads, event.thread);
  }
  for (Event& event : events_) event.begin_ns -= first;
  ImportedProfile profile{.tool = std::move(tool)};
  count_steps(profile);
  require(!profile.steps.empty(), ErrorCode::kBadInput, "the trace has no whole step");
  profile.facts = {.start_unix_ns = start_unix_ns + first,
                   .threads = std::uint32_t{threads} + 1,
                   .tick_source = 1};
  plan_.facts.threads = profile.facts.threads;
  if (!names_.empty()) profile.threads.resize(profile.facts.threads);
  for (const auto& [thread, name] : names_) {
    if (thread <= threads) profile.threads[thread] = name;
  }
  profile.plan = std::move(plan_);
  profile.events = std::move(events_);
  profile.op_ns = op_ns_;
  profile.attributed_ns = attributed_ns_;
  profile.work_ns = work_ns_;
  profile.attributed_work_ns = attributed_work_ns_;
  for (const auto& [name, ns] : rest_) profile.rest.push_back({.name = name, .ns = ns});
  std::ranges::stable_sort(profile.rest, std::ranges::greater(), &Unattributed::ns);
  return profile;
}

}  // namespace trainscope::profiler
