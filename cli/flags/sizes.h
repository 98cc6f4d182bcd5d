// --batch, --seq and --shape: sizes for the dimensions that a model leaves open.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/flags/settings.h"
#include "engine/model_sizes.h"  // IWYU pragma: export

namespace trainscope {

std::span<const Flag> size_flags();
SizeRequest size_request(const Settings& settings);

// Throws kUsage for a model without inputs or without a batch dimension, kBadInput for one with
// batches of no examples.
void require_examples(const OnnxModel& model, const Sizes& sizes);

// Symbols of the inputs that have no size yet.
std::vector<std::string> open_symbols(const OnnxModel& model, const Sizes& sizes);

}  // namespace trainscope
