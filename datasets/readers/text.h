// Text files as sequences of characters.
#pragma once

#include <memory>
#include <string>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// The text is UTF-8; ids are the positions in the sorted list of its distinct characters. Examples
// are windows (windows.h).
std::unique_ptr<Dataset> open_text(const DataSpec& spec, const DatasetOptions& options);

// The whole content of a text file. Throws kIo, or kBadInput when it is empty.
std::string read_text(const std::string& file);

}  // namespace trainscope
