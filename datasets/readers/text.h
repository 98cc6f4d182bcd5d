// Text files as sequences of characters.
#pragma once

#include <memory>
#include <string>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// The text is UTF-8; ids are the positions in the sorted list of its distinct characters. With n
// characters and a validation fraction f the first floor(n (1 - f)) train, the others validate.
//
// An example is a window: T characters in, the same moved on by one as labels (T = sequence).
// Training: with L characters epoch e cuts windows at p, p + T, p + 2T ..., where the phase p in
// [0, T) is random, a function of (seed, e); there are floor((L - T) / T) of them in every epoch
// (one while T < L < 2T). They do not overlap but for the label at a window's end, which is the
// next one's first input.
// Validation: windows at 0, T, 2T ... that cover all V characters: each but the first, which has
// no predecessor, is a label exactly once. The last window is filled up with id 0 and labels
// ignore_index.
std::unique_ptr<Dataset> open_text(const DataSpec& spec, const DatasetOptions& options);

// The whole content of a text file. Throws kIo, or kBadInput when it is empty.
std::string read_text(const std::string& file);

}  // namespace trainscope
