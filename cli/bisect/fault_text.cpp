// One line for what is to blame, one for the command that shows it.
#include "cli/bisect/fault_text.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Empty where there is no error to tell: numbers of NaN or of elements are not the same.
std::string numbers_text(double error, double limit) {
  if (error <= 0.0) return "";
  if (limit <= 0.0) return "it is not equal";
  if (!std::isfinite(error)) return "NaN or infinity on one side alone";
  return fmt::format("local error {:.2e}, {:.3g} times its limit", error, error / limit);
}

}  // namespace

Json fault_json(const LocalFault& fault) {
  return Json::object({{"kind", name_of(fault.kind)},
                       {"step", fault.step},
                       {"micro_batch", fault.micro_batch},
                       {"phase", profiler::name_of(fault.phase)},
                       {"value", fault.key},
                       {"op", fault.op},
                       {"node", fault.node},
                       {"local", true},
                       {"error", fault.error},
                       {"limit", fault.limit},
                       {"over_limit", fault.over_limit() ? Json(*fault.over_limit()) : Json()},
                       {"by_elements", fault.by_elements},
                       {"among", Json::list(fault.among)},
                       {"cause", fault.cause}});
}

std::string fault_text(const LocalFault& fault) {
  const std::string of =
      fault.op.empty() ? "" : fmt::format(" of {} '{}'", fault.op, printable(fault.node));
  const std::string micro =
      fault.micro_batch > 0 ? fmt::format(", micro-batch {}", fault.micro_batch) : "";
  const std::string numbers = numbers_text(fault.error, fault.limit);
  std::string text =
      fmt::format("step {}, {}{}, {}{}: {}{} fault: {}", fault.step, profiler::name_of(fault.phase),
                  micro, printable(fault.key), of, numbers.empty() ? "" : numbers + "; ",
                  name_of(fault.kind), printable(fault.cause, 400));
  if (fault.among.size() > 1) {
    text += fmt::format(" (one of {} nodes since the last recorded values: {})", fault.among.size(),
                        printable(join(fault.among, ", "), 400));
  }
  return text;
}

Outcome print(const StageBisect& found, const std::string& run) {
  Outcome outcome{.facts = Json::object(
                      {{"between", "stages"}, {"stages", found.stages}, {"compared", found.ends}})};
  if (!found.fault) {
    outcome.facts.set("culprit", Json());
    outcome.text = fmt::format("no culprit: {} stages give the same, {} results compared\n",
                               found.stages, found.ends);
    return outcome;
  }
  const StageFault& fault = *found.fault;
  const std::string command =
      fmt::format("trainscope diff {}:{} {}:{}", run, fault.before, run, fault.label);
  outcome.facts.set("culprit", Json::object({{"stage", fault.stage},
                                             {"label", fault.label},
                                             {"before", fault.before},
                                             {"end", fault.end},
                                             {"value", fault.value},
                                             {"op", fault.op},
                                             {"node", fault.node},
                                             {"error", fault.error},
                                             {"limit", fault.limit},
                                             {"over_limit", fault.error / fault.limit},
                                             {"command", command}}));
  const std::string first = fault.value.empty()
                                ? ""
                                : fmt::format("; first at '{}' of {} '{}'", printable(fault.value),
                                              fault.op, printable(fault.node));
  outcome.text = fmt::format(
      "culprit: the pass {}: {} differs from stage {} by {:.2e}, {:.3g} times its limit{}\nsee: "
      "{}\n",
      fault.stage, printable(fault.end), fault.before, fault.error, fault.error / fault.limit,
      first, printable(command, 400));
  outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return outcome;
}

Outcome print(const KernelBisect& found, const std::string& run) {
  Json faults = Json::array();
  for (const KernelFault& fault : found.faults) {
    faults.push_back(Json::object({{"phase", name_of(fault.phase)},
                                   {"value", fault.value},
                                   {"op", fault.op},
                                   {"node", fault.node},
                                   {"source", fault.source},
                                   {"kernel", fault.kernel},
                                   {"error", fault.error},
                                   {"limit", fault.limit}}));
  }
  Outcome outcome{.facts = Json::object({{"between", "kernels"},
                                         {"calls", found.calls},
                                         {"without_f64", found.inexact},
                                         {"most_over_limit", found.most},
                                         {"most_of", found.most_of}})};
  outcome.facts.set("culprit", found.faults.empty() ? Json() : faults.as_array().front());
  outcome.facts.set("faults", std::move(faults));
  if (found.faults.empty()) {
    outcome.text = fmt::format(
        "no culprit: {} calls by their kernels and by the reference kernels agree; nearest its "
        "limit "
        "is '{}', at {:.2g} of it\n",
        found.calls, printable(found.most_of), found.most);
    return outcome;
  }
  const KernelFault& fault = found.faults.front();
  outcome.text =
      fmt::format("culprit: {}, '{}' of {} '{}' by {}: {}\nsee: trainscope inspect {} --calls\n",
                  name_of(fault.phase), printable(fault.value), fault.op, printable(fault.node),
                  fault.kernel.empty() ? "its decomposition" : fault.kernel,
                  numbers_text(fault.error, fault.limit), printable(run, 400));
  outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return outcome;
}

}  // namespace trainscope
