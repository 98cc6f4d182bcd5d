// doctor: what this machine offers to a run.
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/invocation.h"
#include "cli/machine.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

Json memory_facts(const Memory& memory) {
  Json json = Json::object(
      {{"total_bytes", memory.total_bytes}, {"available_bytes", memory.available_bytes}});
  if (memory.limit_bytes) json.set("limit_bytes", *memory.limit_bytes);
  return json;
}

std::string memory_text(const Memory& memory) {
  std::string text = fmt::format("{}, {} available", human_bytes(memory.total_bytes),
                                 human_bytes(memory.available_bytes));
  if (memory.limit_bytes) {
    text += fmt::format(", limited to {} by the cgroup", human_bytes(*memory.limit_bytes));
  }
  return text;
}

Outcome run(const Invocation& invocation) {
  const Memory memory = machine_memory();
  const std::optional<std::uint64_t> disk = free_disk_bytes(".");
  const std::vector<std::string> libraries = loaded_libraries();
  const std::vector<std::string> sets = instruction_sets();
  Outcome outcome;
  outcome.facts =
      Json::object({{"version", program_version()},
                    {"cpu", Json::object({{"name", processor_name()},
                                          {"isa", vector_isa()},
                                          {"instruction_sets", Json::list(sets)},
                                          {"online_cores", online_cores()},
                                          {"usable_cores", usable_cores()},
                                          {"threads", invocation.threads()}})},
                    {"memory", memory_facts(memory)},
                    {"free_disk_bytes", disk ? Json(*disk) : Json()},
                    {"libraries", Json::list(libraries)},
                    {"cuda", Json::object({{"available", false}, {"why", cuda_absence()}})}});
  outcome.text = fmt::format(
      "trainscope  {}\ncpu         {}\n            {} of {} cores usable, {} threads, {}\n"
      "memory      {}\ndisk        {}\nlibraries   {}\ncuda        {}\n",
      program_version(), processor_name(), usable_cores(), online_cores(), invocation.threads(),
      join(sets, ", "), memory_text(memory), disk ? human_bytes(*disk) + " free here" : "unknown",
      join(libraries, ", "), cuda_absence());
  return outcome;
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "Show what this machine offers: processor, memory, libraries, devices.",
          .examples = {"trainscope doctor", "trainscope doctor --json"},
          .run = run};
}

}  // namespace trainscope
