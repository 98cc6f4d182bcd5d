// Each reader of another profiler's events: it sees every event, and makes a profile of them.
#pragma once

#include <memory>

#include "engine/core/json.h"
#include "profiler/import/imported_profile.h"
#include "profiler/import/trace_reader.h"

namespace trainscope::profiler {

class TraceImporter {
 public:
  virtual ~TraceImporter() = default;
  // Whether the event is one that only this profiler writes.
  virtual bool take(const Json& event) = 0;
  virtual ImportedProfile finish(const TraceFrame& frame, const ImportOptions& options) = 0;
};

std::unique_ptr<TraceImporter> kineto_importer();
std::unique_ptr<TraceImporter> ort_importer();

}  // namespace trainscope::profiler
