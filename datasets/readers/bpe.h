// Text files as byte-pair tokens.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// The text is UTF-8, its ids those of datasets/bpe.h with the given vocabulary files; examples are
// windows (windows.h).
std::unique_ptr<Dataset> open_bpe(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
