// Which input of a graph the features of a file feed, and which the labels.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "datasets/open.h"
#include "datasets/readers/table.h"
#include "datasets/spec.h"

namespace trainscope {

// Roles of the fields for files of features and one label an example.
struct FeatureRoles {
  std::vector<const WantedField*> features;
  const WantedField* labels = nullptr;  // null: the graph wants none
  bool labels_are_input = false;        // the graph computes its loss itself
};

// The labels of the loss, or else the input that is called "labels". Throws kUsage when the model
// takes no features.
FeatureRoles feature_roles(const DataSpec& spec, const DatasetOptions& options);

// Numbers in one example of the field. Throws kUsage when its shape is open.
std::int64_t elements_of(const DataSpec& spec, const WantedField& field);

// `examples` and the field's own dimensions.
TensorType table_type(const WantedField& field, std::int64_t examples);

// The tensors of the fields, in the places that make_table_dataset wants.
Table make_table(const DataSpec& spec, const DatasetOptions& options, Json description);
// `values` as the field's column, among the labels or the inputs in the order of the calls.
void add_column(Table& table, const FeatureRoles& roles, const WantedField& field, Tensor values);

}  // namespace trainscope
