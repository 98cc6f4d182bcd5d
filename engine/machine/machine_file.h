// A machine as a JSON file.
#pragma once

#include <filesystem>

#include "engine/core/json.h"
#include "engine/machine/machine.h"

namespace trainscope {

// Of the file's format. A reader takes this version only.
inline constexpr int kMachineVersion = 1;

Json machine_json(const Machine& machine);
// Throws kBadInput, naming the key, for what is no machine: a key that is missing, unknown or of
// another type, a number that is not above 0, levels that are out of order.
Machine machine_of(const Json& json);

// Throws kIo where there is no file; all errors name it.
Machine read_machine(const std::filesystem::path& path);
// Whole or not at all.
void write_machine(const std::filesystem::path& path, const Machine& machine);

}  // namespace trainscope
