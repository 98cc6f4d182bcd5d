// bench MODEL|RUN --node NAME: one call of a training step by itself, by every kernel that takes
// it.
#pragma once

#include <span>
#include <string>

#include "cli/command.h"

namespace trainscope {

// Whether the words of a call of `bench` ask for a node.
bool asks_for_node(std::span<const std::string> words);
// `bench` as it is for a node: other flags, the same name.
Command bench_node_command(const Command& bench);

}  // namespace trainscope
