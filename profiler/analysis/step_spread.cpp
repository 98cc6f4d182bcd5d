// Each outlier's counters beside those of the median step.
#include "profiler/analysis/step_spread.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "engine/core/numbers.h"
#include "engine/core/text.h"
#include "profiler/analysis/breakdown.h"

namespace trainscope::profiler {
namespace {

using Counters = std::map<std::uint32_t, std::map<EventKind, double>>;  // by step

Counters counters_of(const EventView& events) {
  Counters counters;
  for (const EventChunk& chunk : events.chunks) {
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      if (is_of_step(chunk.kind[i])) {
        counters[chunk.id[i]][chunk.kind[i]] = chunk.event(i).number();
      }
    }
  }
  return counters;
}

std::string microseconds(double ns) {
  const double us = std::round(ns / 100.0) / 10.0;
  std::string text = std::to_string(us);
  return text.substr(0, text.find('.') + 2) + " us";
}

std::string whole(double number) { return std::to_string(std::llround(number)); }

struct CountedCause {
  EventKind kind;
  std::string_view text;
  double least = 1.0;  // more than usual, to be a cause
};
constexpr std::array<CountedCause, 4> kCounted = {{
    {EventKind::kForcedSwitches, "others took the processor from its threads"},
    {EventKind::kMajorFaults, "pages were read from the disk"},
    {EventKind::kMinorFaults, "pages of memory were made", 16.0},
    {EventKind::kVoluntarySwitches, "threads slept for others", 8.0},
}};

class Explainer {
 public:
  Explainer(const EventView& events, const PlanView& plan, const StepTimes& times)
      : counters_(counters_of(events)), plan_(plan), times_(times) {
    for (const CountedCause& each : kCounted) usual_[each.kind] = usual(each.kind);
    for (const EventKind kind : {EventKind::kTaskClock, EventKind::kStolenTime}) {
      usual_[kind] = usual(kind);
    }
    std::vector<double> all;
    for (const StepTime& step : times.steps) all.push_back(static_cast<double>(step.ns()));
    median_ns_ = median(std::move(all));
  }

  std::vector<std::string> causes(std::size_t index) const {
    std::vector<std::string> found;
    const StepTime& step = times_.steps[index];
    const double more = static_cast<double>(step.ns()) - median_ns_;
    for (const CountedCause& each : kCounted) add_counted(step.step, each, found);
    add_stolen(step, more, found);
    add_not_run(step, more, found);
    add_waits(index, more, found);
    add_call(index, more, found);
    if (found.empty()) found.emplace_back("no counter and no call tells why");
    return found;
  }

 private:
  double usual(EventKind kind) const {
    std::vector<double> values;
    for (const StepTime& step : times_.steps) {
      if (const double* value = counter(step.step, kind)) values.push_back(*value);
    }
    return median(std::move(values));
  }

  const double* counter(std::uint32_t step, EventKind kind) const {
    const auto of_step = counters_.find(step);
    if (of_step == counters_.end()) return nullptr;
    const auto found = of_step->second.find(kind);
    return found == of_step->second.end() ? nullptr : &found->second;
  }

  void add_counted(std::uint32_t step, const CountedCause& cause,
                   std::vector<std::string>& found) const {
    const double* value = counter(step, cause.kind);
    const double as_usual = usual_.at(cause.kind);
    const bool is_more =
        value != nullptr && *value - as_usual >= cause.least && *value >= 2.0 * as_usual;
    if (!is_more) return;
    found.push_back(std::string(cause.text) + " " + whole(*value) + " times, usually " +
                    whole(as_usual));
  }

  // The hypervisor's part, where the system counted it: of all processors together.
  void add_stolen(const StepTime& step, double more, std::vector<std::string>& found) const {
    const double* stolen = counter(step.step, EventKind::kStolenTime);
    const double as_usual = usual_.at(EventKind::kStolenTime);
    if (stolen == nullptr || *stolen - as_usual < 0.25 * more) return;
    found.push_back("the hypervisor gave processors to others for " + microseconds(*stolen) +
                    ", usually " + microseconds(as_usual));
  }

  // A step that took longer without more processor time: its threads did not run. Who ran instead
  // the task clock does not tell.
  void add_not_run(const StepTime& step, double more, std::vector<std::string>& found) const {
    const double* clock = counter(step.step, EventKind::kTaskClock);
    if (clock == nullptr) return;
    const double worked_more = *clock - usual_.at(EventKind::kTaskClock);
    if (worked_more >= 0.5 * more) return;
    found.push_back("its threads had only " + microseconds(std::max(0.0, worked_more)) +
                    " more of the processor for " + microseconds(more) +
                    " more of time: they did not run");
  }

  void add_waits(std::size_t index, double more, std::vector<std::string>& found) const {
    for (std::size_t other = 0; other < kOtherTimes; ++other) {
      std::vector<double> all;
      for (const StepTime& step : times_.steps) {
        all.push_back(static_cast<double>(step.other_ns[other]));
      }
      const double by = all[index] - median(all);
      if (by < 0.25 * more) continue;
      found.push_back(std::string(name_of(static_cast<OtherTime>(other))) + " took " +
                      microseconds(by) + " more");
    }
  }

  // The call that takes more than usual by the most.
  void add_call(std::size_t index, double more, std::vector<std::string>& found) const {
    double most = 0.0;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < times_.calls.size(); ++i) {
      if (times_.calls[i].runs == 0) continue;
      const std::vector<double> all = times_.calls[i].ns.doubles();
      const double by = all[index] - median(all);
      if (by > most) longest = i;
      most = std::max(most, by);
    }
    if (most < 0.25 * more) return;
    const PlanCall& call = plan_.calls[longest];
    found.push_back(std::string(plan_.op_of(call)) + " of '" +
                    printable(onnx_node_of(plan_, call)) + "' took " + microseconds(most) +
                    " more");
  }

  const Counters counters_;
  const PlanView& plan_;
  const StepTimes& times_;
  std::map<EventKind, double> usual_;
  double median_ns_ = 0.0;
};

}  // namespace

StepSpread step_spread(const EventView& events, const PlanView& plan, const StepTimes& times) {
  StepSpread result;
  std::vector<double> all;
  for (const StepTime& step : times.steps) all.push_back(static_cast<double>(step.ns()));
  if (all.empty()) return result;
  result.spread = spread_of(all);
  std::vector<double> sorted = all;
  std::ranges::sort(sorted);
  result.least_ns = std::llround(sorted.front());
  result.most_ns = std::llround(sorted.back());
  for (std::size_t tenth = 1; tenth < 10; ++tenth) {
    const std::size_t rank = (tenth * sorted.size() + 9) / 10;
    result.deciles_ns.push_back(std::llround(sorted[std::max<std::size_t>(rank, 1) - 1]));
  }
  const double beyond =
      std::max(kOutlierDeviations * result.spread.deviation, kOutlierShare * result.spread.median);
  const Explainer explainer(events, plan, times);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] - result.spread.median <= beyond) continue;
    result.outliers.push_back(
        {.step = times.steps[i].step, .ns = times.steps[i].ns(), .causes = explainer.causes(i)});
  }
  return result;
}

}  // namespace trainscope::profiler
