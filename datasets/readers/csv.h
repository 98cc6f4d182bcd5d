// Rows of numbers with a label.
#pragma once

#include <memory>

#include "datasets/open.h"
#include "datasets/spec.h"
#include "engine/train/data.h"

namespace trainscope {

// A CSV file (datasets/csv.h) with an example in each row. The column that the option `label` names
// is the label; the other columns, in their order, are dealt to the model's inputs in the graph's
// order, each taking as many as one example of it has numbers. Cells are decimal numbers, whole
// ones for integer inputs and labels. All columns must be used.
std::unique_ptr<Dataset> open_csv(const DataSpec& spec, const DatasetOptions& options);

}  // namespace trainscope
