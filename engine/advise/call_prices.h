// What calls cost: those of one plan, by what calls like them took in the steps of another.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/advise/call_timing.h"
#include "engine/bundle/plan_record.h"
#include "engine/compile.h"
#include "profiler/analysis/step_times.h"

namespace trainscope {

// Calls of the same op, kernel and operand types are alike, whatever their names.
std::string signature_of(const PlanView& plan, const PlanCall& call);

// A call of a node runs once for each micro-batch, one of the update phase once in a step.
std::int64_t runs_in_step(const PlanCall& call, std::int64_t micro_batches);

// A step as it is predicted.
struct StepForecast {
  double seconds = 0.0;
  double known_seconds = 0.0;  // of calls that the measured steps had as well
  double alone_seconds = 0.0;  // of calls that were measured by themselves
  double modelled_seconds = 0.0;
};

class CallPrices {
 public:
  // `plan` is the record of `base`, `times` are of its steps; both are needed no longer after this.
  CallPrices(std::shared_ptr<const Compiled> base, const PlanView& plan,
             const profiler::StepTimes& times, std::int64_t micro_batches);

  // Calls that the measured steps do not have are measured by themselves now, once each; how much
  // longer calls of their op took in the steps than by themselves is assumed of them too. What can
  // be measured neither way has the time of the costs and the machine that `options` name. Throws
  // Stopped when their watch asks to stop.
  StepForecast forecast(const Compiled& variant, const CompileOptions& options,
                        std::int64_t micro_batches, std::int64_t compacted_rows = -1);

 private:
  struct Known {
    double seconds = 0.0;  // of one call, the mean of all alike
    std::int64_t calls = 0;
    CallId example = kNoCall;
  };
  struct Ratio {
    double in_steps = 0.0;
    double alone = 0.0;
  };
  double ratio_of(const std::string& op);
  std::optional<double> seconds_alone(const Program& program, const Call& call,
                                      const std::string& signature, std::int64_t compacted_rows);

  std::shared_ptr<const Compiled> base_;
  double other_seconds_ = 0.0;                                    // of a step, outside of calls
  std::string longest_op_;                                        // of the base
  std::unordered_map<std::string, Known> known_;                  // by signature
  std::map<std::string, std::vector<std::string>> by_op_;         // signatures of the base
  std::map<std::string, double> ratios_;                          // by op
  Ratio all_;                                                     // of the ops in ratios_
  std::unordered_map<std::string, std::optional<double>> alone_;  // by signature
};

}  // namespace trainscope
