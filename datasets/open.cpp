// From a source to its format's reader.
#include "datasets/open.h"

#include "datasets/catalog.h"
#include "datasets/format.h"
#include "engine/core/error.h"

namespace trainscope {

void take_from_training(const Json& description, DatasetOptions& options) {
  if (description.get_or<std::string>("kind", "") == "text") {
    if (const Json* vocabulary = description.find("vocabulary")) {
      options.vocabulary = Vocabulary::from_json(*vocabulary);
    }
  }
  if (const Json* names = description.find(kClassNames)) {
    options.class_names.clear();
    for (const Json& name : names->as_array()) options.class_names.push_back(name.as_string());
  }
  if (const Json* means = description.find(kColumnMeans)) {
    for (const JsonMember& mean : means->as_object()) {
      options.column_means[mean.key] = mean.value.as_number();
    }
  }
}

std::unique_ptr<Dataset> open_dataset(std::string_view source, const DatasetOptions& options) {
  DataSpec spec = parse_data_spec(source);
  if (find_format(spec.format)->open == nullptr) spec = resolve_catalog(spec, options.data_folder);
  return find_format(spec.format)->open(spec, options);
}

}  // namespace trainscope
