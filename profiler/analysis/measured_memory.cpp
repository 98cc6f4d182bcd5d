// The last number that was counted for a time holds until the next one.
#include "profiler/analysis/measured_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace trainscope::profiler {
namespace {

constexpr std::int64_t kNotCounted = -1;

std::optional<std::int64_t> bytes_of(const Event& event) {
  const double number = event.number();
  constexpr auto kMost = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 2);
  if (!(number >= 0.0 && number < kMost)) return std::nullopt;
  return std::llround(number);
}

void fill_forward(std::vector<std::int64_t>& bound) {
  std::int64_t last = 0;
  for (std::int64_t& bytes : bound) {
    if (bytes == kNotCounted) bytes = last;
    last = bytes;
  }
}

}  // namespace

std::int64_t MeasuredMemory::most_bound() const {
  const auto most = std::ranges::max_element(bound);
  return most == bound.end() ? 0 : *most;
}

MeasuredMemory measured_memory(const EventView& events, const PlanView& plan) {
  MeasuredMemory measured;
  const std::uint32_t times = plan.facts().times;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const EventKind kind = chunk.kind[i];
      const bool is_resident = kind == EventKind::kResidentBytes;
      if (!is_resident && kind != EventKind::kBoundBytes) continue;
      const Event event = chunk.event(i);
      const std::optional<std::int64_t> bytes = bytes_of(event);
      if (!bytes) continue;
      if (is_resident) {
        measured.resident.push_back({.step = event.id, .bytes = *bytes});
      } else if (event.id < times) {
        if (measured.bound.empty()) measured.bound.resize(times, kNotCounted);
        measured.bound[event.id] = *bytes;
      }
    }
  }
  fill_forward(measured.bound);
  std::ranges::stable_sort(measured.resident, {}, &ResidentBytes::step);
  for (std::size_t i = 1; i < measured.resident.size(); ++i) {
    measured.resident[i].more_bytes = measured.resident[i].bytes - measured.resident[i - 1].bytes;
  }
  return measured;
}

}  // namespace trainscope::profiler
