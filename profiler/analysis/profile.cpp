// Opens both files of a profile.
#include "profiler/analysis/profile.h"

#include <memory>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope::profiler {

Profile Profile::open(const RunReader& run, std::int64_t session) {
  const std::string folder = printable(run.folder().path().string());
  std::optional<MappedFile> mapped = run.events(session);
  if (!mapped) {
    throw Error(ErrorCode::kUsage,
                session == kNewestSession
                    ? "the newest session of '" + folder + "' has no profile"
                    : "session " + std::to_string(session) + " of '" + folder + "' has no profile")
        .hint("`trainscope profile` and `train --profile steps=FROM:TO` make one");
  }
  const auto file = std::make_shared<const MappedFile>(std::move(*mapped));
  EventReading reading = read_events(file->bytes(), file);
  require(reading.fault == ReadFault::kNone, ErrorCode::kBadInput, "'{}': {}",
          printable(file->path().string()), reading.message);
  std::optional<StoredPlan> plan = run.plan(session);
  require(plan.has_value(), ErrorCode::kBadInput,
          "'{}' has a profile without the plan that it is of", folder);
  return Profile(std::move(reading.view), std::move(*plan));
}

std::string Profile::note() const {
  std::string text;
  if (events_.dropped > 0) {
    text += std::to_string(events_.dropped) + " events were left out: there was no room for them";
  }
  if (events_.torn_bytes > 0) {
    if (!text.empty()) text += "; ";
    text += "the last " + std::to_string(events_.torn_bytes) +
            " bytes are of events that are not whole, and are skipped";
  }
  return text;
}

}  // namespace trainscope::profiler
