// What a compiled graph wants from the data.
#pragma once

#include "cli/flags/sizes.h"
#include "datasets/open.h"
#include "engine/session.h"

namespace trainscope {

// Inputs and labels of a program that was compiled with the loss, with the bounds of their
// integers: rows of the tables that they look up, classes of the output that the labels name.
DatasetOptions dataset_options(const Compiled& compiled, const OnnxModel& model,
                               const LossOptions& loss, const Sizes& sizes);

// How many labels an example of a CTC loss has at most, where that was not asked for: as the
// tensors of the data say.
void resolve_most_labels(const std::string& source, LossOptions& loss);

// What is asked for of sizes, and of the symbols that it leaves open what the tensors of the data
// have.
SizeRequest sizes_with_data(const OnnxModel& model, SizeRequest request, const std::string& source);
Sizes resolve_sizes_with_data(const OnnxModel& model, SizeRequest request,
                              const std::string& source);

}  // namespace trainscope
