// A call of train as words that a shell takes.
#pragma once

#include <span>
#include <string>

#include "cli/flags/invocation.h"
#include "cli/source.h"

namespace trainscope {

// That trains what `advise` was asked about with these flags: of a run with its configuration, else
// with the flags of this call; --data and --steps are there in any case.
std::string train_command_line(const Source& source, const Invocation& settled,
                               std::span<const GivenFlag> flags);

}  // namespace trainscope
