// What an unknown flag was meant to be: by its sense, or by its letters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace trainscope {

// The name of the flag that a word such as "learning_rate" or "no-bais" was meant to be, without
// dashes; none where nothing is near. Words of other tools come first, then slips of the fingers.
std::optional<std::string> flag_meant(std::span<const Flag> flags, std::string_view word);
// "did you mean '--NAME'?" for a word such as "--learning_rate" among `flags`, ready for
// Error::hint; "" when nothing is near.
std::string flag_hint(std::span<const Flag> flags, std::string_view word);

}  // namespace trainscope
