// What an unknown flag was meant to be: by its sense, or by its letters.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/command.h"

namespace trainscope {

// "did you mean '--NAME'?" for a word such as "--learning_rate" among `flags`, ready for
// Error::hint; "" when nothing is near. Words of other tools come first, then slips of the fingers.
std::string flag_hint(std::span<const Flag> flags, std::string_view word);

}  // namespace trainscope
