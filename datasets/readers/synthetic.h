// Random examples in the shapes that a graph wants.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"

namespace trainscope {

// Floats are standard normal, integers uniform below their bound (labels: below the option
// `classes` if it is given; 0 or 1 where nothing is known), booleans either. Values depend on the
// seed, the position of the field and the position in it alone. Option `examples`: how many, 512
// unless given. Open dimensions take the sequence length.
std::unique_ptr<Dataset> make_synthetic(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
