// Manual pages in the man macros of troff, made from the tables.
#pragma once

#include <string>

#include "cli/command.h"

namespace trainscope {

std::string man_page();                        // trainscope(1)
std::string man_page(const Command& command);  // trainscope-VERB(1)

}  // namespace trainscope
