// Scripts that complete the command line in a shell, made from the tables.
#pragma once

#include <string>

namespace trainscope {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace trainscope
