// report: a run as one page of HTML that needs nothing else: no network, no script.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/bundle/format.h"
#include "engine/bundle/plan_record.h"
#include "engine/machine/machine.h"
#include "profiler/analysis/step_spread.h"
#include "profiler/analysis/step_times.h"
#include "profiler/analysis/thread_times.h"
#include "profiler/numerics/loss_comparison.h"
#include "profiler/numerics/tensor_comparison.h"

namespace trainscope::profiler {

// A panel of the window, as an SVG document.
struct ReportPicture {
  std::string name;  // the panel's
  std::string svg;
};

// Another run, or another engine's, that this one is held against.
struct ReportPeer {
  std::string name;
  LossCurve losses = {};
  std::optional<TensorComparison> tensors = {};  // of this run's trace with its
  std::string no_tensors = {};                   // why there are none
};

// What a run has of it; what is absent is said where its section would be.
struct ReportInput {
  std::string name = {};  // the run folder's
  RunManifest manifest = {};
  std::int64_t session = 0;  // whose plan, stages and profile these are: its place in the manifest
  Metrics metrics = {};
  std::vector<StageRecord> stages = {};
  std::optional<PlanView> plan = {};
  std::optional<StepTimes> times = {};  // of the profiled steps, as the next two
  std::optional<ThreadTimes> threads = {};
  std::optional<StepSpread> spread = {};
  std::optional<Trace> trace = {};  // of its numbers
  std::vector<ReportPeer> peers = {};
  std::optional<Machine> machine = {};  // with the rates of the machine that trained
  std::vector<ReportPicture> pictures = {};
  std::string no_pictures = {};  // why there are none
};

// UTF-8, light and dark as the reader's system is, legible at 400 and at 1600 pixels.
std::string html_report(const ReportInput& input);

}  // namespace trainscope::profiler
