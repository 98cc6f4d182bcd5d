// export --names torch.
#pragma once

#include <string>

#include "cli/command.h"
#include "cli/source.h"

namespace trainscope {

// Writes the trained tensors under PyTorch's names, warns of each that is not in the file, and says
// how to load it.
Outcome export_state_dict(const Source& source, const Invocation& settled, const std::string& out);

}  // namespace trainscope
