// From a source to its format's reader.
#include "datasets/open.h"

#include "datasets/catalog.h"
#include "datasets/format.h"
#include "engine/core/error.h"

namespace trainscope {

std::unique_ptr<Dataset> open_dataset(std::string_view source, const DatasetOptions& options) {
  DataSpec spec = parse_data_spec(source);
  if (find_format(spec.format)->open == nullptr) spec = resolve_catalog(spec, options.data_folder);
  return find_format(spec.format)->open(spec, options);
}

}  // namespace trainscope
