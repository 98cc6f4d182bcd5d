// The same step with one part less, until the fault is gone.
#include "engine/bisect/program/program_bisect.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr const char* kThreads = "threads";

ProgramCheck check_compiled(std::unique_ptr<Compiled> step,
                            const std::map<std::string, Tensor>& inputs) {
  const std::shared_ptr<const Compiled> held = std::move(step);
  return check_program({held, &held->program}, graph_before_program_stages(held->stages), inputs);
}

std::vector<std::string> parts_of(const Compiled& step) {
  std::vector<std::string> parts;
  for (const Stage& stage : step.stages) {
    const bool of_program = std::ranges::find(kProgramStages, stage.name) != kProgramStages.end();
    const bool does_anything = stage.changed || !stage.counters.empty();
    if (of_program && does_anything) parts.emplace_back(stage.name);
  }
  if (step.program.threads > 1) parts.emplace_back(kThreads);
  return parts;
}

CompileOptions without(const std::string& part, CompileOptions options) {
  if (part == kThreads) {
    options.lower.threads = 1;
    return options;
  }
  options.passes.disabled.push_back(part);
  if (part == kRematerializedBy) options.recompute = {};  // no budget without it
  return options;
}

}  // namespace

const Graph& graph_before_program_stages(const Stages& stages) {
  const auto is_pass = [](const Stage& stage) {
    return std::ranges::find(kProgramStages, stage.name) == kProgramStages.end();
  };
  const auto last = std::find_if(stages.rbegin(), stages.rend(), is_pass);
  CHECK_INVARIANT(last != stages.rend());
  return last->graph;
}

ProgramBisect bisect_program(const CompileStep& compile, const CompileOptions& options,
                             const std::map<std::string, Tensor>& inputs) {
  std::unique_ptr<Compiled> step = compile(options);
  ProgramBisect found{.check = {}, .parts = parts_of(*step)};
  found.check = check_compiled(std::move(step), inputs);
  if (found.check.faults.empty()) return found;
  for (const std::string& part : found.parts) {
    const ProgramCheck other = check_compiled(compile(without(part, options)), inputs);
    if (!other.faults.empty()) continue;
    found.to_blame = part;
    break;
  }
  return found;
}

std::vector<DeviceCheck> check_devices(const CompileStep& compile, const CompileOptions& options,
                                       const std::vector<DeviceHandle>& devices,
                                       const std::map<std::string, Tensor>& inputs) {
  std::vector<DeviceCheck> checks;
  for (const DeviceHandle& device : devices) {
    CompileOptions on_device = options;
    on_device.device = device;
    const std::string name(device->facts().name);
    try {
      checks.push_back({.device = name, .check = check_compiled(compile(on_device), inputs)});
    } catch (Error& error) {
      error.at(fmt::format("on the device {}", printable(name)));
      throw;
    }
  }
  return checks;
}

}  // namespace trainscope
