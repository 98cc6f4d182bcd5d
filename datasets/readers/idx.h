// Images and labels in the format of MNIST.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// Two IDX files of unsigned bytes, plain or compressed with gzip (told by their first bytes):
// images with three dimensions (N, height, width) and labels with one (N). A header is two zero
// bytes, the type 0x08, the number of dimensions, then each dimension as 32 bits, big end first;
// exactly the bytes it counts must follow.
//
// Pixels become floats by dividing by 255. The model's one float input takes them as [N,1,H,W],
// [N,H,W] or [N,H*W], by its own rank. Labels become the loss's integers, or the input "labels".
std::unique_ptr<Dataset> open_idx(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
