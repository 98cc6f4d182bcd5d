// Sums by call first, then by what calls belong to: names are looked up once a call.
#include "gui/views/range_statistics.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace trainscope::gui {
namespace {

using profiler::Event;
using profiler::EventKind;
using profiler::GroupBy;

struct Sum {
  std::int64_t ns = 0;
  std::int64_t spans = 0;
};

void add(RangeStatistics& statistics, std::unordered_map<std::string, std::size_t>& row_of,
         std::string name, bool is_call, const Sum& sum) {
  const auto [entry, is_new] =
      row_of.try_emplace((is_call ? "c" : "o") + name, statistics.rows.size());
  if (is_new) statistics.rows.push_back({.name = std::move(name), .is_call = is_call});
  RangeRow& row = statistics.rows[entry->second];
  row.ns += sum.ns;
  row.spans += sum.spans;
  statistics.spans_ns += sum.ns;
}

}  // namespace

RangeStatistics range_statistics(const TimelineData& data, const PlanView& plan,
                                 const TimeRange& range, GroupBy by) {
  RangeStatistics statistics{.range_ns = std::max<std::int64_t>(0, range.end_ns - range.begin_ns)};
  std::vector<Sum> calls(plan.calls.size());
  std::unordered_map<std::string_view, Sum> others;
  for (const TimelineRow& row : data.rows) {
    if (row.thread != 0 || row.level != SpanLevel::kCall) continue;
    for (std::size_t i = data.first_ending_after(row, range.begin_ns); i < row.events.size(); ++i) {
      const Event event = data.index.event(row.events[i]);
      if (event.begin_ns >= range.end_ns) break;
      const std::int64_t ns =
          std::min(event.end_ns(), range.end_ns) - std::max(event.begin_ns, range.begin_ns);
      const bool is_call = event.kind == EventKind::kCall && event.id < calls.size();
      Sum& sum = is_call ? calls[event.id] : others[profiler::name_of(event.kind)];
      sum.ns += ns;
      ++sum.spans;
    }
  }
  std::unordered_map<std::string, std::size_t> row_of;
  for (std::uint32_t id = 0; id < calls.size(); ++id) {
    if (calls[id].spans > 0) {
      add(statistics, row_of, profiler::group_name(plan, id, by), true, calls[id]);
    }
  }
  for (const auto& [name, sum] : others) {
    add(statistics, row_of, std::string(name), false, sum);
  }
  std::ranges::sort(statistics.rows, [](const RangeRow& a, const RangeRow& b) {
    return a.ns != b.ns ? a.ns > b.ns : a.name < b.name;
  });
  return statistics;
}

}  // namespace trainscope::gui
