// The flags of `plan --target`, and its rows.
#include "cli/flags/world_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "cli/flags/training_flags.h"
#include "cli/print/world_table.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/plan_folder.h"
#include "engine/record_plan.h"
#include "engine/run/batch/world_batch.h"
#include "engine/world/world_plan.h"

namespace trainscope {
namespace {

constexpr std::int64_t kMostDevices = 1 << 20;

constexpr Flag kFlags[] = {
    {.name = "target",
     .value = "h200|a100-80|a100-40|v100-32|v100-16",
     .help = "Plan for devices that are not here: computed from sizes and a model of them, not "
             "measured"},
    {.name = "world",
     .value = "N,N,..",
     .fallback = "1",
     .help = "Devices, with --target; several numbers: a row each"},
    {.name = "zero",
     .type = FlagType::kChoice,
     .value = "0|1|2|3",
     .fallback = "0",
     .help = "What is sharded over data-parallel devices: 1 optimizer states, 2 also gradients, "
             "3 also parameters"},
    {.name = "tensor-parallel",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "1",
     .help = "Devices that each matrix is sharded over",
     .minimum = 1,
     .maximum = kMostDevices},
    {.name = "pipeline",
     .type = FlagType::kInteger,
     .value = "N",
     .fallback = "1",
     .help = "Stages that the layers are cut into; --accumulate gives the micro-batches",
     .minimum = 1,
     .maximum = kMostDevices},
    {.name = "tf32", .type = FlagType::kSwitch, .help = "Matmuls of f32 in TF32, with --target"},
    {.name = "plans",
     .value = "FOLDER",
     .help = "With --target: the plan of each device goes to FOLDER/world-N/stage-K, as a run has "
             "it (plan.bin, plan.json, stages/)"},
};

std::vector<std::int64_t> parse_worlds(std::string_view text) {
  std::vector<std::int64_t> worlds;
  for (std::string_view each : split(text, ',')) {
    const std::optional<std::int64_t> number = parse_int(trim(each));
    if (!number || *number < 1 || *number > kMostDevices) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--world is '{}': expected numbers of devices from 1 to {}",
                              printable(text), kMostDevices))
          .hint("for example 8 or 1,2,4,8");
    }
    worlds.push_back(*number);
  }
  return worlds;
}

// What the planner of this machine's step has, and that of a world has not.
void refuse_local_flags(const Settings& settings) {
  for (std::string_view flag : {"front", "sweep", "compare", "opportunities", "micro-batches",
                                "pins", "costs", "machine", "max-overhead", "op-times"}) {
    require(!settings.given(flag), ErrorCode::kUsage, "--{} is for this machine, not for --target",
            flag);
  }
  if (!settings.given("recompute")) return;  // that of a run is not the world's
  const std::string& recompute = settings.text("recompute");
  require(recompute == "none" || recompute == "auto", ErrorCode::kUsage,
          "--recompute {} is for this machine: with --target it is auto (what does not fit is "
          "recomputed) or none",
          printable(recompute));
}

// None unless --offload is given with --target: that of a run is this machine's.
std::optional<HostLink> world_link(const Settings& settings) {
  const bool offload = settings.given("offload") && settings.on("offload");
  require(offload || !settings.given("link-rate"), ErrorCode::kUsage,
          "--link-rate needs --offload");
  require(!offload || !settings.given("recompute") || settings.text("recompute") == "auto",
          ErrorCode::kUsage, "--offload is a part of --recompute auto");
  return offload ? std::optional(host_link(settings)) : std::nullopt;
}

MatmulPrecision matmul_precision(const Settings& settings) {
  const StepPrecision step = step_precision(settings.text("precision"));
  require(step != StepPrecision::kTf32, ErrorCode::kUsage,
          "--precision tf32 is for a device of this machine; with --target it is --tf32");
  require(step == StepPrecision::kF32 || !settings.on("tf32"), ErrorCode::kUsage,
          "--tf32 is for matmuls of f32, --precision is {}", name_of(step));
  if (step == StepPrecision::kBF16) return MatmulPrecision::kBf16;
  if (step == StepPrecision::kF16) return MatmulPrecision::kFp16;
  return settings.on("tf32") ? MatmulPrecision::kTf32 : MatmulPrecision::kF32;
}

WorldOptions world_options(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  refuse_local_flags(settings);
  WorldOptions options;
  MachineModel& machine = options.machine;
  machine.device = &find_world_device(settings.text("target"));
  machine.kernels = machine_of(*machine.device, matmul_precision(settings));
  machine.layout = {.tensor = settings.integer("tensor-parallel"),
                    .pipeline = settings.integer("pipeline"),
                    .zero = static_cast<int>(*parse_int(settings.text("zero")))};
  machine.link = world_link(settings);
  options.micro_batches = settings.integer("accumulate");
  options.budget_bytes = settings.given("memory-budget")  // that of a run is this machine's
                             ? parse_bytes("memory-budget", settings.text("memory-budget"))
                             : machine.device->memory_bytes - kReserveBytes;
  options.lower.threads = invocation.threads();
  return options;
}

// Each world's layout is checked before anything is planned. In a list, a world without data
// parallelism has nothing to shard.
std::vector<WorldOptions> all_worlds(const Invocation& invocation) {
  const WorldOptions common = world_options(invocation);
  std::vector<WorldOptions> worlds;
  const std::vector<std::int64_t> sizes = parse_worlds(invocation.settings().text("world"));
  for (std::int64_t world : sizes) {
    worlds.push_back(common);
    Layout& layout = worlds.back().machine.layout;
    layout.world = world;
    if (sizes.size() > 1 && world == layout.tensor * layout.pipeline) layout.zero = 0;
    check_layout(layout);
  }
  return worlds;
}

struct WorldRefusal {
  std::int64_t world = 1;
  Error error;
};

// Of several worlds each is named.
[[noreturn]] void refuse(const std::vector<WorldRefusal>& refusals) {
  if (refusals.size() == 1) throw refusals.front().error;
  std::vector<std::string> messages;
  std::vector<std::string> hints;
  for (const WorldRefusal& refusal : refusals) {
    messages.push_back(fmt::format("--world {}: {}", refusal.world, refusal.error.message()));
    hints.push_back(fmt::format("--world {}: {}", refusal.world, refusal.error.hint()));
  }
  throw Error(ErrorCode::kOutOfMemory, join(messages, "; ")).hint(join(hints, "; "));
}

void write_plan(const std::filesystem::path& plans, const WorldOptions& options,
                const PlacedStage& placed) {
  const std::filesystem::path folder = plans /
                                       fmt::format("world-{}", options.machine.layout.world) /
                                       fmt::format("stage-{}", placed.stage);
  PlanRecord plan = plan_record(placed.program);
  if (options.budget_bytes) plan.recompute.push_back({.budget_bytes = *options.budget_bytes});
  write_plan_folder(folder, plan,
                    {{.name = "sharded", .graph = placed.plain},
                     {.name = "recompute", .graph = placed.program.graph}});
}

WorldPlan plan_and_write(const Program& step, WorldOptions options,
                         const std::filesystem::path& plans) {
  if (!plans.empty()) {
    const WorldOptions& asked = options;
    options.on_placed = [&plans, &asked](const PlacedStage& placed) {
      write_plan(plans, asked, placed);
    };
  }
  return plan_world(step, op_table(), options);
}

struct RowChoices {
  bool recompute = true;
  std::filesystem::path plans;  // where they go; empty: nowhere
};

// Without the budget where no plan is within it.
WorldRow plan_row(const Program& step, WorldOptions options, const RowChoices& choices,
                  std::vector<WorldRefusal>& refusals) {
  WorldRow row;
  const std::optional<std::int64_t> budget = options.budget_bytes;
  if (choices.recompute) {
    try {
      row.plan = plan_and_write(step, options, choices.plans);
      row.fits = true;
      return row;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) throw;
      refusals.push_back({.world = options.machine.layout.world, .error = error});
    }
  }
  options.budget_bytes.reset();
  row.plan = plan_and_write(step, options, choices.recompute ? "" : choices.plans);
  const std::int64_t peak_bytes = row.plan.device().peak_bytes;
  row.fits = !budget || peak_bytes <= *budget;
  if (!row.fits && !choices.recompute) {
    Error error(ErrorCode::kOutOfMemory,
                fmt::format("without recomputation a device needs {} bytes, {} are there",
                            peak_bytes, *budget));
    error.hint("leave --recompute none out, or take more devices or a smaller batch");
    refusals.push_back({.world = options.machine.layout.world, .error = std::move(error)});
  }
  return row;
}

}  // namespace

std::span<const Flag> world_flags() { return kFlags; }

bool asks_for_world(const Settings& settings) {
  if (settings.has("target")) return true;
  for (const Flag& flag : kFlags) {
    require(!settings.given(flag.name), ErrorCode::kUsage, "--{} needs --target", flag.name);
  }
  return false;
}

Outcome plan_worlds(const CompileStep& compile, const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  const std::vector<WorldOptions> worlds = all_worlds(invocation);
  const RowChoices choices{
      .recompute = !(settings.given("recompute") && settings.text("recompute") == "none"),
      .plans = settings.given("plans") ? settings.text("plans") : ""};
  StepsByBatch steps(compile);
  LargestBatchSearch batches(steps, choices.recompute);
  const SizedStep& asked = steps.at(0);
  WorldTable table{.device = worlds.front().machine.device->name,
                   .budget_bytes = *worlds.front().budget_bytes,
                   .batch = asked.batch,
                   .sequence = asked.sequence,
                   .micro_batches = worlds.front().micro_batches,
                   .rows = {}};
  std::vector<WorldRefusal> refusals;
  for (const WorldOptions& options : worlds) {
    table.rows.push_back(plan_row(asked.compiled->program, options, choices, refusals));
    if (settings.on("largest-batch")) {
      table.rows.back().batches = batches.find(options);
    }
  }
  const bool any = std::ranges::any_of(table.rows, &WorldRow::fits);
  if (!any && !refusals.empty() && !settings.on("largest-batch")) refuse(refusals);
  return world_outcome(table);
}

}  // namespace trainscope
