// Help texts, made from the tables.
#pragma once

#include <string>

#include "cli/command.h"

namespace trainscope {

std::string general_help();
// All of a verb's flags, and what matters most of them.
std::string command_help(const Command& command);
std::string short_help(const Command& command);
std::string exit_codes_help();
// "trainscope train MODEL.onnx [flags]"
std::string usage(const Command& command);

// The same facts for programs.
Json command_facts(const Command& command);

}  // namespace trainscope
