// The machine that trained a session, for the roofs of its calls.
#pragma once

#include <optional>
#include <string_view>

#include "cli/flags/settings.h"
#include "engine/bundle/format.h"
#include "engine/machine/machine.h"

namespace trainscope {

// The file that --machine names, or what the session (--session, else the newest) was planned with;
// none where that is the built-in machine, which nobody measured.
std::optional<Machine> machine_of_session(const Settings& settings, const RunManifest& manifest);

// What the machine does not know that roofs ask for; empty: nothing.
std::string_view note_of(const Machine& machine);

}  // namespace trainscope
