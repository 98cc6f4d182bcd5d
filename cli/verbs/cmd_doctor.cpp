// doctor: what this machine offers to a run, and what it reaches.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/flags/invocation.h"
#include "cli/flags/training_flags.h"
#include "cli/machine.h"
#include "cli/print/machine_table.h"
#include "engine/compile.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"
#include "engine/machine/machine_file.h"
#include "engine/machine/this_machine.h"

namespace trainscope {
namespace {

constexpr const char* kRunsFolder = "runs";  // where runs without --run-dir go

constexpr Flag kDoctorFlags[] = {
    {.name = "roofs",
     .type = FlagType::kSwitch,
     .help = "Measure what the machine reaches: bytes/s of its caches and memory, FLOP/s of each "
             "dtype; takes some seconds"},
    {.name = "out",
     .value = "FILE",
     .help = "Where the measured machine goes, a file for --machine; with --roofs"},
    {.name = "roof-seconds",
     .type = FlagType::kNumber,
     .value = "S",
     .fallback = "0.06",
     .help = "Of each of the thirty measurements of --roofs",
     .minimum = 0.001,
     .maximum = 10},
    {.name = "roof-memory",
     .value = "BYTES",
     .fallback = "1GiB",
     .help = "The most memory that --roofs uses: four times the last cache, if that is less"},
};

Json memory_facts(const MachineMemory& memory) {
  Json json = Json::object(
      {{"total_bytes", memory.total_bytes}, {"available_bytes", memory.available_bytes}});
  if (memory.limit_bytes) json.set("limit_bytes", *memory.limit_bytes);
  return json;
}

std::string memory_text(const MachineMemory& memory) {
  std::string text = fmt::format("{}, {} available", human_bytes(memory.total_bytes),
                                 human_bytes(memory.available_bytes));
  if (memory.limit_bytes) {
    text += fmt::format(", limited to {} by the cgroup", human_bytes(*memory.limit_bytes));
  }
  return text;
}

// The runs' folder, or the one that it would be made in.
std::filesystem::path runs_place() { return folder_exists(kRunsFolder) ? kRunsFolder : "."; }

Json disk_facts(const std::filesystem::path& place, std::optional<std::uint64_t> free_bytes) {
  return Json::object({{"folder", std::filesystem::absolute(place).lexically_normal().string()},
                       {"free_bytes", free_bytes ? Json(*free_bytes) : Json()}});
}

Json cpu_facts(const Invocation& invocation) {
  Json json = Json::object({{"name", processor_name()},
                            {"isa", vector_isa()},
                            {"instruction_sets", Json::list(instruction_sets())},
                            {"online_cores", online_cores()},
                            {"usable_cores", usable_cores()},
                            {"threads", invocation.threads()}});
  if (const std::optional<double> limit = cgroup_cores()) json.set("cgroup_cores", *limit);
  return json;
}

// What was asked of driver and back end.
struct CudaState {
  CudaDriver driver = find_cuda_driver();
  std::string absence = cuda_absence(driver, why_no_device("cuda"));  // empty: there is a device
  std::vector<std::string> back_end = cuda_description("cuda");
};

Json cuda_facts(const CudaState& state) {
  const CudaDriver& driver = state.driver;
  Json json = Json::object({{"available", state.absence.empty()}});
  if (!state.absence.empty()) json.set("why", state.absence);
  json.set("back_end", Json::list(state.back_end));
  if (driver.version) json.set("driver_cuda_version", cuda_version_text(*driver.version));
  json.set("devices", Json::list(driver.devices));
  return json;
}

std::string cuda_text(const CudaState& state) {
  const CudaDriver& driver = state.driver;
  std::string text = state.absence.empty() ? std::string("available")
                                           : fmt::format("not available: {}", state.absence);
  if (driver.version) {
    text +=
        fmt::format("\n            the driver knows CUDA {}", cuda_version_text(*driver.version));
  }
  for (const auto* lines : {&driver.devices, &state.back_end}) {
    for (const std::string& line : *lines) text += fmt::format("\n            {}", line);
  }
  return text;
}

std::string versions_text(const std::vector<Library>& libraries) {
  std::vector<std::string> pieces;
  for (const Library& library : libraries) {
    pieces.push_back(fmt::format("{} {}", library.name, library.version));
  }
  return join(pieces, ", ");
}

// As the file has it; what is measured is named by the processor and the instructions used.
void add_roofs(const Invocation& invocation, Outcome& outcome) {
  const Settings& settings = invocation.settings();
  const std::int64_t memory = parse_bytes("roof-memory", settings.text("roof-memory"));
  Machine machine = measure_cpu({.threads = invocation.threads(),
                                 .seconds = settings.number("roof-seconds"),
                                 .most_bytes = static_cast<std::size_t>(memory)});
  const std::string processor = processor_name();
  machine.name =
      fmt::format("{}, {}", processor.empty() ? "unknown processor" : processor, vector_isa());
  outcome.facts.set("machine", machine_json(machine));
  outcome.text += "\n" + machine_table(machine);
  if (!settings.has("out")) return;
  write_machine(settings.text("out"), machine);
  outcome.text += fmt::format("written to {}\n", settings.text("out"));
}

Outcome run_doctor(const Invocation& invocation) {
  const Settings& settings = invocation.settings();
  for (const char* flag : {"out", "roof-seconds", "roof-memory"}) {
    require(settings.on("roofs") || !settings.given(flag), ErrorCode::kUsage, "--{} needs --roofs",
            flag);
  }
  const MachineMemory memory = machine_memory();
  const std::filesystem::path place = runs_place();
  const std::optional<std::uint64_t> disk = free_disk_bytes(place);
  const std::vector<std::string> files = loaded_libraries();
  const std::vector<Library> libraries = library_versions();
  const CudaState cuda;
  Json versions = Json::object();
  for (const Library& library : libraries) versions.set(library.name, library.version);
  Outcome outcome;
  outcome.facts = Json::object({{"version", program_version()},
                                {"cpu", cpu_facts(invocation)},
                                {"memory", memory_facts(memory)},
                                {"disk", disk_facts(place, disk)},
                                {"libraries", std::move(versions)},
                                {"library_files", Json::list(files)},
                                {"cuda", cuda_facts(cuda)}});
  const std::optional<double> limit = cgroup_cores();
  outcome.text = fmt::format(
      "trainscope  {}\ncpu         {}\n            {} of {} cores usable{}, {} threads\n"
      "            {}; kernels use {}\nmemory      {}\ndisk        {} free in {}\n"
      "libraries   {}\n            {}\ncuda        {}\n",
      program_version(), processor_name(), usable_cores(), online_cores(),
      limit ? fmt::format(" (the cgroup allows {:.3g})", *limit) : "", invocation.threads(),
      join(instruction_sets(), ", "), vector_isa(), memory_text(memory),
      disk ? human_bytes(*disk) : "unknown", place == "." ? "this folder" : "./runs",
      versions_text(libraries), join(files, ", "), cuda_text(cuda));
  if (settings.on("roofs")) add_roofs(invocation, outcome);
  return outcome;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "Show what this machine offers: processor, memory, libraries, devices.",
          .flags = join_flags({kDoctorFlags}),
          .examples = {"trainscope doctor --json", "trainscope doctor --roofs --out machine.json"},
          .run = run_doctor};
}

}  // namespace trainscope
