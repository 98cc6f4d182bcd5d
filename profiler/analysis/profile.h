// The profile of a session of a run: its events, and the plan whose calls they name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/bundle/reader.h"
#include "profiler/store/event_file.h"

namespace trainscope::profiler {

class Profile {
 public:
  // Throws kUsage where the session was not profiled, kBadInput for damaged files.
  static Profile open(const RunReader& run, std::int64_t session = kNewestSession);

  const EventView& events() const { return events_; }
  PlanView plan() const { return plan_.view(); }
  // What a reader should know: of events that were left out or are not whole; empty: nothing.
  std::string note() const;

 private:
  Profile(EventView events, StoredPlan plan) : plan_(std::move(plan)), events_(std::move(events)) {}

  StoredPlan plan_;
  EventView events_;
};

}  // namespace trainscope::profiler
