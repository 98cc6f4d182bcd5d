// Which columns of a CSV file feed which field.
#pragma once

#include <string_view>
#include <vector>

#include "datasets/open.h"
#include "datasets/readers/csv_missing.h"
#include "datasets/readers/features.h"

namespace trainscope {

// A field and the columns that feed it.
struct DealtColumns {
  const WantedField* field = nullptr;
  std::vector<std::size_t> columns;
};

// Takes what the options `label` and `columns` say: source.label and source.features are set, and
// the fields with their columns, the label's last. Throws kUsage for columns that the file does not
// have or a list that does not fit the model, kBadInput where the numbers of columns do not.
std::vector<DealtColumns> deal_columns(CsvSource& source, const DatasetOptions& options,
                                       const FeatureRoles& roles);

}  // namespace trainscope
