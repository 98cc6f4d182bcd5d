// Converts the cells of a CSV file into a table.
#include "datasets/readers/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/csv.h"
#include "datasets/format.h"
#include "datasets/readers/csv_columns.h"
#include "datasets/readers/csv_missing.h"
#include "datasets/readers/features.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{2} << 30;

// What an empty cell of a feature stands for.
template <typename T>
T stand_in(const CsvSource& source, std::size_t row, std::size_t column) {
  const bool is_label = source.label == column;
  const bool refused = source.missing == Missing::kRefused || is_label;
  if (refused || source.missing == Missing::kDrop) {
    bad_cell(source, row, column, "the cell is empty",
             is_label ? "missing=drop leaves out rows without a label"
                      : "missing=mean, missing=zero or missing=drop says what stands for it");
  }
  if (source.missing == Missing::kZero) return T{0};
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(mean_of(source, row, column));
  } else {
    bad_cell(source, row, column, "the cell is empty, and a mean is no whole number",
             "missing=zero or missing=drop");
  }
}

// A whole number, also one that is written as a decimal one: "3.0".
std::optional<std::int64_t> whole_number(const std::string& cell) {
  if (const std::optional<std::int64_t> number = parse_int(cell)) return number;
  const std::optional<double> number = parse_number(cell);
  constexpr double kMost = 9007199254740992.0;  // 2^53
  if (!number || std::floor(*number) != *number || std::abs(*number) > kMost) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

template <typename T>
T number_of(const CsvSource& source, std::size_t row, std::size_t column) {
  const std::string& cell = source.table.cell(row, column);
  if constexpr (std::is_floating_point_v<T>) {
    const std::optional<double> number = parse_number(cell);
    if (number && std::abs(*number) <= static_cast<double>(std::numeric_limits<T>::max())) {
      return static_cast<T>(*number);
    }
    bad_cell(source, row, column, fmt::format("'{}' is no number", printable(cell)));
  } else {
    const std::optional<std::int64_t> number = whole_number(cell);
    if (number && std::in_range<T>(*number)) return static_cast<T>(*number);
    bad_cell(source, row, column, fmt::format("'{}' is no whole number", printable(cell)),
             source.label == column ? std::string(kNumberLossHint) : std::string());
  }
}

template <typename T>
T class_of(const CsvSource& source, std::size_t row) {
  const std::string& cell = source.table.cell(row, *source.label);
  const auto found = std::ranges::find(source.class_names, cell);
  if (found == source.class_names.end()) {
    bad_cell(source, row, *source.label,
             fmt::format("'{}' is none of the classes {}", printable(cell),
                         printable(join(source.class_names, ", "), 400)));
  }
  return static_cast<T>(found - source.class_names.begin());
}

template <typename T>
void fill(const CsvSource& source, std::span<const std::size_t> columns, std::span<T> values) {
  auto next = values.begin();
  for (std::size_t row = 0; row < source.table.rows(); ++row) {
    for (const std::size_t column : columns) {
      if (source.table.cell(row, column).empty()) {
        *next++ = stand_in<T>(source, row, column);
      } else if (source.label == column && !source.class_names.empty()) {
        *next++ = class_of<T>(source, row);
      } else {
        *next++ = number_of<T>(source, row, column);
      }
    }
  }
}

Tensor tensor_of(const CsvSource& source, const WantedField& field,
                 std::span<const std::size_t> columns);

// Of integers that are narrower than i32, through i64.
Tensor narrow_tensor(const CsvSource& source, const WantedField& field,
                     std::span<const std::size_t> columns) {
  require(is_integer_type(field.dtype), ErrorCode::kUsage,
          "data '{}': csv gives numbers, '{}' takes {}", printable(source.spec.text),
          printable(field.name), name_of(field.dtype));
  WantedField wide = field;
  wide.dtype = DType::kI64;
  return narrowed(tensor_of(source, wide, columns), field.dtype, field.name);
}

Tensor tensor_of(const CsvSource& source, const WantedField& field,
                 std::span<const std::size_t> columns) {
  Tensor tensor(table_type(field, static_cast<std::int64_t>(source.table.rows())));
  switch (field.dtype) {
    case DType::kF32:
      fill(source, columns, tensor.values<float>());
      break;
    case DType::kF64:
      fill(source, columns, tensor.values<double>());
      break;
    case DType::kI32:
      fill(source, columns, tensor.values<std::int32_t>());
      break;
    case DType::kI64:
      fill(source, columns, tensor.values<std::int64_t>());
      break;
    case DType::kBF16:
    case DType::kF16: {
      WantedField as_f32 = field;
      as_f32.dtype = DType::kF32;
      return convert(tensor_of(source, as_f32, columns), field.dtype);
    }
    default:
      return narrow_tensor(source, field, columns);
  }
  return tensor;
}

// Labels of classes that are text, none of them a number: their sorted names.
std::vector<std::string> class_names(const CsvSource& source, const DatasetOptions& options,
                                     const FeatureRoles& roles) {
  const bool by_class =
      source.label && roles.labels != nullptr && is_index_type(roles.labels->dtype);
  if (!by_class) return {};
  if (!options.class_names.empty()) return options.class_names;
  std::set<std::string> names;
  for (std::size_t row = 0; row < source.table.rows(); ++row) {
    const std::string& cell = source.table.cell(row, *source.label);
    if (parse_number(cell)) return {};
    if (!cell.empty()) names.insert(cell);
  }
  const std::int64_t bound = roles.labels->bound;
  const auto count = static_cast<std::int64_t>(names.size());
  require(bound == 0 || count <= bound, ErrorCode::kBadInput,
          "'{}' column '{}' has {} different labels, the model has {} classes",
          printable(source.spec.file()), printable(source.table.columns[*source.label]), count,
          bound);
  return {names.begin(), names.end()};
}

CsvTable read_csv(const DataSpec& spec, const std::string& text) {
  try {
    return parse_csv(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}' {}", printable(spec.file()), error.message()));
  }
}

}  // namespace

std::unique_ptr<Dataset> open_csv(const DataSpec& spec, const DatasetOptions& options) {
  const FeatureRoles roles = feature_roles(spec, options);
  const std::string text = read_file(spec.file(), kMaxFileBytes);
  CsvSource source{.spec = spec, .table = read_csv(spec, text)};
  source.missing = missing_of(spec);
  const std::vector<DealtColumns> dealt = deal_columns(source, options, roles);
  if (source.missing == Missing::kDrop) drop_rows(source);
  source.class_names = class_names(source, options, roles);
  Json description = Json::object({{"kind", spec.format},
                                   {"file", spec.file()},
                                   {"label", spec.option("label", "")},
                                   {"examples", source.table.rows()},
                                   {"xxh3", hash_hex(hash_bytes(std::as_bytes(std::span(text))))}});
  for (std::string_view option : {"columns", "missing"}) {
    const std::string value = spec.option(option, "");
    if (!value.empty()) description.set(std::string(option), value);
  }
  if (!source.class_names.empty()) {
    description.set(std::string(kClassNames), Json::list(source.class_names));
  }
  Table table = make_table(spec, options, std::move(description));
  if (source.missing == Missing::kMean) {
    source.means = options.column_means;
    if (source.means.empty()) take_means(source, table);
    table.description.set(std::string(kColumnMeans), means_json(source));
  }
  for (const DealtColumns& each : dealt) {
    add_column(table, roles, *each.field, tensor_of(source, *each.field, each.columns));
  }
  return make_table_dataset(spec, std::move(table));
}

DataFormat csv_format() {
  return {.name = "csv",
          .form =
              "csv:FILE,label=COLUMN[,columns=A+B|x:A+B;y:C,missing=mean|zero|drop,"
              "validation=FRACTION]",
          .options = {"label", "columns", "missing", "validation"},
          .endings = {".csv"},
          .open = open_csv};
}

}  // namespace trainscope
