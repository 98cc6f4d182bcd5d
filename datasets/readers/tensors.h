// Files with a tensor for each graph input and the labels.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"

namespace trainscope {

// A safetensors file or NumPy's .npz. Tensors have the names of the graph's inputs and of the
// labels (or "labels"); the first dimension counts examples. Integers and floats of another width
// are converted; other tensors in the file are not read. All that does not fit is listed in one
// error.
std::unique_ptr<Dataset> open_tensors(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
