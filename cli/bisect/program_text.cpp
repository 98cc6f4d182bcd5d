// A line for what is to blame, one for the command that shows it.
#include "cli/bisect/program_text.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string what_it_does(const CallFault& fault) {
  const std::string value = printable(fault.value);
  switch (fault.kind) {
    case CallFaultKind::kReads:
      return fmt::format("reads other bytes than '{}' was given", value);
    case CallFaultKind::kKeeps:
      return fmt::format("'{}' has other bytes after the step than its update", value);
    case CallFaultKind::kMakes:
      break;
  }
  if (fault.limit <= 0.0) return fmt::format("'{}' is not equal to what its node makes", value);
  if (!std::isfinite(fault.error)) {
    return fmt::format("'{}' has NaN or infinity where its node makes none, or the reverse", value);
  }
  return fmt::format(
      "'{}' is not what its node makes of its inputs: error {:.2e}, {:.3g} times its limit", value,
      fault.error, fault.error / fault.limit);
}

std::string command_for_call(const CallFault& fault, const std::string& run) {
  const std::string node = fault.source.empty() ? "" : " --at " + shell_word(fault.source);
  return fmt::format("trainscope inspect {} --calls{}", shell_word(run), node);
}

Json check_json(const ProgramCheck& check) {
  Json faults = Json::array();
  for (const CallFault& fault : check.faults) faults.push_back(call_fault_json(fault));
  return Json::object({{"calls", check.calls},
                       {"reads", check.reads},
                       {"results", check.results},
                       {"unjudged", check.unjudged},
                       {"most_over_limit", check.most},
                       {"most_of", check.most_of},
                       {"faults", std::move(faults)}});
}

Json culprit_json(const CallFault& fault, const char* blamed_as, const std::string& to_blame,
                  const std::string& run) {
  Json culprit = call_fault_json(fault);
  culprit.set(blamed_as, to_blame);
  culprit.set("command", command_for_call(fault, run));
  return culprit;
}

std::string see_line(const CallFault& fault, const std::string& run) {
  return fmt::format("see: {}\n", printable(command_for_call(fault, run), 400));
}

}  // namespace

Json call_fault_json(const CallFault& fault) {
  return Json::object(
      {{"kind", name_of(fault.kind)},
       {"call", static_cast<std::int64_t>(fault.call)},
       {"tile", fault.tile < 0 ? Json() : Json(static_cast<std::int64_t>(fault.tile))},
       {"phase", name_of(fault.phase)},
       {"value", fault.value},
       {"op", fault.op},
       {"node", fault.node},
       {"computes", fault.definition},
       {"source", fault.source},
       {"kernel", fault.kernel},
       {"error", fault.error},
       {"limit", fault.limit}});
}

std::string call_fault_text(const CallFault& fault) {
  const std::string tile = fault.tile < 0 ? "" : fmt::format(", batch tile {}", fault.tile);
  const std::string kernel = fault.kernel.empty() ? "" : fmt::format(" by {}", fault.kernel);
  return fmt::format("{}, call {}{}, {} '{}'{}: {}", name_of(fault.phase),
                     static_cast<std::int32_t>(fault.call), tile, fault.op, printable(fault.node),
                     kernel, what_it_does(fault));
}

Outcome print(const ProgramBisect& found, const std::string& run) {
  Outcome outcome{.facts = check_json(found.check)};
  outcome.facts.set("parts", Json::list(found.parts));
  const std::string parts = found.parts.empty() ? "no part" : join(found.parts, ", ");
  if (found.check.faults.empty()) {
    outcome.facts.set("culprit", Json());
    outcome.text = fmt::format(
        "no culprit: each of {} calls ({}) reads what it was given and makes of it what its node "
        "does\n",
        found.check.calls, parts);
    return outcome;
  }
  const CallFault& fault = found.check.faults.front();
  const bool of_a_part = !found.to_blame.empty();
  outcome.facts.set("culprit", culprit_json(fault, "stage", found.to_blame, run));
  const std::string blamed =
      of_a_part ? found.to_blame : fmt::format("the call itself, also without each of {}", parts);
  outcome.text = fmt::format(
      "culprit: {}: {}\n{}", blamed, call_fault_text(fault),
      of_a_part
          ? see_line(fault, run)
          : fmt::format("see: trainscope bisect {} --between kernels\n", printable(run, 400)));
  outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  return outcome;
}

Outcome print(const std::vector<DeviceCheck>& devices, const std::string& run) {
  Outcome outcome{.facts = Json::object({{"between", "devices"}, {"culprit", Json()}})};
  Json rows = Json::array();
  for (const DeviceCheck& device : devices) {
    Json row = check_json(device.check);
    row.set("device", device.device);
    rows.push_back(std::move(row));
    if (device.check.faults.empty()) {
      outcome.text += fmt::format(
          "no culprit on {}: each of {} calls makes what the reference kernels of the cpu make; "
          "nearest its limit is '{}', at {:.2g} of it\n",
          printable(device.device), device.check.calls, printable(device.check.most_of),
          device.check.most);
      continue;
    }
    const CallFault& fault = device.check.faults.front();
    outcome.text += fmt::format("culprit on {}: {}\n{}", printable(device.device),
                                call_fault_text(fault), see_line(fault, run));
    if (outcome.exit_code != 0) continue;
    outcome.facts.set("culprit", culprit_json(fault, "device", device.device, run));
    outcome.exit_code = static_cast<int>(ErrorCode::kMismatch);
  }
  outcome.facts.set("devices", std::move(rows));
  return outcome;
}

}  // namespace trainscope
