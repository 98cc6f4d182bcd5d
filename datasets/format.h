// Data formats: how a source is written on the command line, and who reads it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

struct DataFormat {
  std::string_view name;  // "text"
  std::string_view form;  // "text:FILE[,validation=FRACTION]"
  std::size_t files = 1;  // that come first
  std::vector<std::string_view> options = {"validation"};
  // Of files that are of this format when a source names none: ".csv", "-ubyte".
  std::vector<std::string_view> endings = {};
  // Null: the source stands for one of another format (datasets/catalog.h).
  std::unique_ptr<Dataset> (*open)(const DataSpec&, const DatasetOptions&) = nullptr;
};

// The rows of formats.def.
std::span<const DataFormat> data_formats();
// Null where there is none.
const DataFormat* find_format(std::string_view name);

}  // namespace trainscope
