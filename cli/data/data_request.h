// Where examples come from, which of them validate and what is done to images: --data and the flags
// of validation and of images.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/flags/settings.h"
#include "datasets/image/changes.h"
#include "datasets/open.h"

namespace trainscope {

std::span<const Flag> validation_flags();  // --validation, --validation-data
std::span<const Flag> normalize_flags();   // --normalize
std::span<const Flag> image_flags();       // --normalize, --augment: where images train

struct DataRequest {
  std::string source;
  std::string validation_source;           // empty: a part of `source` validates
  std::optional<double> fraction = {};     // that validates; none: what the source says, or 0.1
  std::optional<std::uint64_t> seed = {};  // draws the examples that validate
  ImageChanges changes = {};
};

// Of a verb that has --data, which must have a value, and validation_flags(). With a --data of this
// call the flags of validation are those of this call too, not those of a run. Throws kUsage.
DataRequest data_request(const Settings& settings);

// What image_flags() say, or those of them that the verb has. Throws kUsage.
ImageChanges image_changes(const Settings& settings);

// Opens what was asked for. `wanted` says nothing of the split. Throws as open_dataset does.
std::shared_ptr<const Dataset> open_data(const DataRequest& request, DatasetOptions wanted);

}  // namespace trainscope
