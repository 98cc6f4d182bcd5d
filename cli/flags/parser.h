// From the words of a command line to the flags of a verb.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/flags/settings.h"

namespace trainscope {

struct ParsedLine {
  std::vector<GivenFlag> flags;
  std::vector<std::string> arguments;
};

// `words` are what follows the verb. Throws kUsage: unknown flag (with the nearest name), missing
// value, a flag given twice.
ParsedLine parse_line(const Command& command, std::span<const std::string> words);
// Throws kUsage for too few or too many arguments, or a word that the verb does not know.
void check_arguments(const Command& command, std::span<const std::string> given);

// Where the verb stands among the words: global flags may come before it. The number of words when
// there is none.
std::size_t verb_position(std::span<const std::string> words);

}  // namespace trainscope
