// Converts the cells of a CSV file into a table.
#include "datasets/readers/csv.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datasets/csv.h"
#include "datasets/format.h"
#include "datasets/readers/features.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{2} << 30;

struct CsvSource {
  const DataSpec& spec;
  const CsvTable& table;
  std::optional<std::size_t> label;  // a column
};

[[noreturn]] void bad_cell(const CsvSource& source, std::size_t row, std::size_t column,
                           std::string_view problem) {
  fail(ErrorCode::kBadInput, "'{}' row {} (line {}), column '{}': {}",
       printable(source.spec.file()), row + 1, source.table.lines[row],
       printable(source.table.columns[column]), problem);
}

template <typename T>
T number_of(const CsvSource& source, std::size_t row, std::size_t column) {
  const std::string& cell = source.table.cell(row, column);
  if (cell.empty()) bad_cell(source, row, column, "the cell is empty");
  if constexpr (std::is_floating_point_v<T>) {
    const std::optional<double> number = parse_number(cell);
    if (number && std::abs(*number) <= static_cast<double>(std::numeric_limits<T>::max())) {
      return static_cast<T>(*number);
    }
    bad_cell(source, row, column, fmt::format("'{}' is no number", printable(cell)));
  } else {
    const std::optional<std::int64_t> number = parse_int(cell);
    if (number && std::in_range<T>(*number)) return static_cast<T>(*number);
    bad_cell(source, row, column, fmt::format("'{}' is no whole number", printable(cell)));
  }
}

template <typename T>
void fill(const CsvSource& source, std::span<const std::size_t> columns, std::span<T> values) {
  auto next = values.begin();
  for (std::size_t row = 0; row < source.table.rows(); ++row) {
    for (const std::size_t column : columns) *next++ = number_of<T>(source, row, column);
  }
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
    case DType::kBool:
      fail(ErrorCode::kUsage, "data '{}': csv gives numbers, '{}' takes truth values",
           printable(source.spec.text), printable(field.name));
  }
  return tensor;
}

std::string hint_of_columns(const CsvTable& table) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(table.columns.size(), 20); ++i) {
    names.push_back(printable(table.columns[i], 40));
  }
  return fmt::format("the columns are {}", join(names, ", "));
}

std::optional<std::size_t> find_label(const DataSpec& spec, const CsvTable& table,
                                      const FeatureRoles& roles) {
  const std::string name = spec.option("label", "");
  if (name.empty()) {
    if (roles.labels == nullptr || roles.labels_are_input) return std::nullopt;
    throw Error(ErrorCode::kUsage,
                fmt::format("data '{}': which column is the label?", printable(spec.text)))
        .hint("the form is csv:FILE,label=COLUMN; " + hint_of_columns(table));
  }
  require(roles.labels != nullptr, ErrorCode::kUsage, "data '{}': the model takes no labels",
          printable(spec.text));
  const auto found = std::ranges::find(table.columns, name);
  if (found == table.columns.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' has no column '{}'", printable(spec.file()), printable(name)))
        .hint(nearest_hint(name, table.columns))
        .hint(hint_of_columns(table));
  }
  return static_cast<std::size_t>(found - table.columns.begin());
}

// A field and the columns that feed it.
struct Dealt {
  const WantedField* field = nullptr;
  std::vector<std::size_t> columns;
};

std::vector<Dealt> deal_columns(const CsvSource& source, const DatasetOptions& options,
                                const FeatureRoles& roles) {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < source.table.columns.size(); ++i) {
    if (source.label != i) columns.push_back(i);
  }
  std::int64_t wanted = 0;
  std::vector<Dealt> dealt;
  for (const WantedField& input : options.inputs) {
    if (&input == roles.labels && source.label) continue;
    const std::int64_t count = elements_of(source.spec, input);
    const auto first = std::min(static_cast<std::size_t>(wanted), columns.size());
    const auto last = std::min(static_cast<std::size_t>(wanted + count), columns.size());
    dealt.push_back({.field = &input,
                     .columns = {columns.begin() + static_cast<std::ptrdiff_t>(first),
                                 columns.begin() + static_cast<std::ptrdiff_t>(last)}});
    wanted += count;
  }
  if (static_cast<std::size_t>(wanted) != columns.size()) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' has {} columns besides the label, the model takes {} numbers an "
                            "example",
                            printable(source.spec.file()), columns.size(), wanted))
        .hint(hint_of_columns(source.table));
  }
  if (source.label) {
    const std::int64_t elements = elements_of(source.spec, *roles.labels);
    require(elements == 1, ErrorCode::kUsage,
            "data '{}': csv has one label an example, '{}' takes {}", printable(source.spec.text),
            printable(roles.labels->name), shape_text(*roles.labels->dims));
    dealt.push_back({.field = roles.labels, .columns = {*source.label}});
  }
  return dealt;
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
  const CsvTable csv = read_csv(spec, text);
  const CsvSource source{.spec = spec, .table = csv, .label = find_label(spec, csv, roles)};
  Table table =
      make_table(spec, options,
                 Json::object({{"kind", spec.format},
                               {"file", spec.file()},
                               {"label", spec.option("label", "")},
                               {"examples", csv.rows()},
                               {"xxh3", hash_hex(hash_bytes(std::as_bytes(std::span(text))))}}));
  for (const Dealt& dealt : deal_columns(source, options, roles)) {
    add_column(table, roles, *dealt.field, tensor_of(source, *dealt.field, dealt.columns));
  }
  return make_table_dataset(spec, std::move(table));
}

DataFormat csv_format() {
  return {.name = "csv",
          .form = "csv:FILE,label=COLUMN[,validation=FRACTION]",
          .options = {"label", "validation"},
          .open = open_csv};
}

}  // namespace trainscope
