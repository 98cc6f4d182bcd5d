// Roles of a graph's inputs for files of features and labels.
#include "datasets/readers/features.h"

#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

FeatureRoles feature_roles(const DataSpec& spec, const DatasetOptions& options) {
  FeatureRoles roles;
  if (options.labels) roles.labels = &*options.labels;
  for (const WantedField& input : options.inputs) {
    if (roles.labels == nullptr && input.name == "labels") {
      roles.labels = &input;
      roles.labels_are_input = true;
    } else {
      roles.features.push_back(&input);
    }
  }
  require(!roles.features.empty(), ErrorCode::kUsage,
          "data '{}': the model has no input for features", printable(spec.text));
  return roles;
}

std::int64_t elements_of(const DataSpec& spec, const WantedField& field) {
  require(field.dims.has_value(), ErrorCode::kUsage, "data '{}': the shape of '{}' is not known",
          printable(spec.text), printable(field.name));
  std::int64_t elements = 1;
  for (const std::int64_t dim : *field.dims) {
    if (dim == WantedField::kAnySize) {
      throw Error(ErrorCode::kUsage, fmt::format("data '{}': a dimension of '{}' is left open",
                                                 printable(spec.text), printable(field.name)))
          .hint("give it with --shape NAME=DIMS");
    }
    const bool overflow = __builtin_mul_overflow(elements, dim, &elements);
    require(!overflow, ErrorCode::kUsage, "data '{}': '{}' is too large", printable(spec.text),
            printable(field.name));
  }
  return elements;
}

TensorType table_type(const WantedField& field, std::int64_t examples) {
  TensorType type{.dtype = field.dtype, .shape = {examples}};
  CHECK_INVARIANT(field.dims->size() < kMaxRank);
  for (const std::int64_t dim : *field.dims) type.shape.push_back(dim);
  return type;
}

Table make_table(const DataSpec& spec, const DatasetOptions& options, Json description) {
  Table table{.inputs = {},
              .labels = {},
              .ignore_index = options.ignore_index,
              .description = std::move(description)};
  set_split(spec, options, table);
  return table;
}

void add_column(Table& table, const FeatureRoles& roles, const WantedField& field, Tensor values) {
  Column column{.name = field.name,
                .values = std::move(values),
                .bound = field.bound,
                .ignored = field.ignored,
                .batch_axis = field.batch_axis};
  if (&field == roles.labels && !roles.labels_are_input) {
    table.labels = std::move(column);
  } else {
    table.inputs.push_back(std::move(column));
  }
}

}  // namespace trainscope
