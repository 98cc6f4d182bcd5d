// Which file or record the machine comes from.
#include "cli/session_machine.h"

#include <algorithm>
#include <iterator>

#include "engine/machine/machine_file.h"

namespace trainscope {

std::optional<Machine> machine_of_session(const Settings& settings, const RunManifest& manifest) {
  if (settings.has("machine")) return read_machine(settings.text("machine"));
  const auto session = static_cast<std::size_t>(
      settings.find_integer("session").value_or(std::ssize(manifest.sessions)));
  const Json& recorded = manifest.sessions.at(session - 1).machine;
  if (recorded.is_null()) return std::nullopt;
  return machine_of(recorded);
}

std::string_view note_of(const Machine& machine) {
  const bool knows = std::ranges::all_of(
      machine.levels, [](const MemoryLevel& level) { return level.update.has_value(); });
  if (knows) return {};
  return "the machine has no rate of updates in place, which are held against a copy's: an older "
         "program measured it; `doctor --roofs --out FILE` does so anew";
}

}  // namespace trainscope
