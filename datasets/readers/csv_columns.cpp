// Columns in their order, by the option `columns`, or by name: columns=x:A+B;y:C.
#include "datasets/readers/csv_columns.h"

#include <algorithm>
#include <optional>
#include <string>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

std::string hint_of_columns(const CsvTable& table) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(table.columns.size(), 20); ++i) {
    names.push_back(printable(table.columns[i], 40));
  }
  return fmt::format("the columns are {}", join(names, ", "));
}

std::size_t find_column(const DataSpec& spec, const CsvTable& table, std::string_view name) {
  const auto found = std::ranges::find(table.columns, name);
  if (found == table.columns.end()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("'{}' has no column '{}'", printable(spec.file()), printable(name)))
        .hint(nearest_hint(name, table.columns))
        .hint(hint_of_columns(table));
  }
  return static_cast<std::size_t>(found - table.columns.begin());
}

// Those of "A+B".
std::vector<std::size_t> listed_columns(const CsvSource& source, std::string_view names) {
  std::vector<std::size_t> columns;
  for (std::string_view name : split(names, '+')) {
    const std::size_t column = find_column(source.spec, source.table, name);
    const bool is_new =
        source.label != column && std::ranges::find(columns, column) == columns.end();
    require(is_new, ErrorCode::kUsage, "data '{}': column '{}' is {}", printable(source.spec.text),
            printable(name), source.label == column ? "the label" : "named twice");
    columns.push_back(column);
  }
  return columns;
}

// What "x" means in columns=x:A+B: an input, or the labels by the name that the loss gives them.
const WantedField* field_called(std::string_view name, const DatasetOptions& options) {
  const auto input = std::ranges::find(options.inputs, name, &WantedField::name);
  if (input != options.inputs.end()) return &*input;
  return options.labels && options.labels->name == name ? &*options.labels : nullptr;
}

// "x" of "x:A+B;y:C"; none where the option lists columns alone, whose names may hold colons too.
bool names_fields(const DataSpec& spec, const DatasetOptions& options) {
  const std::string text = spec.option("columns", "");
  const std::size_t colon = text.find(':');
  return colon != std::string::npos &&
         (text.find(';') != std::string::npos ||
          field_called(std::string_view(text).substr(0, colon), options) != nullptr);
}

std::optional<std::size_t> label_column(const CsvSource& source, const DatasetOptions& options,
                                        const FeatureRoles& roles) {
  const DataSpec& spec = source.spec;
  const std::string name = spec.option("label", "");
  if (!name.empty()) {
    require(roles.labels != nullptr || options.without_labels, ErrorCode::kUsage,
            "data '{}': the model takes no labels", printable(spec.text));
    return find_column(spec, source.table, name);
  }
  const bool wants_none = roles.labels == nullptr || roles.labels_are_input;
  if (wants_none || names_fields(spec, options)) return std::nullopt;
  throw Error(ErrorCode::kUsage,
              fmt::format("data '{}': which column is the label?", printable(spec.text)))
      .hint("the form is csv:FILE,label=COLUMN; " + hint_of_columns(source.table));
}

// Those that the option `columns` names, or all but the label.
std::vector<std::size_t> feature_columns(const CsvSource& source) {
  const std::string names = source.spec.option("columns", "");
  if (!names.empty()) return listed_columns(source, names);
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < source.table.columns.size(); ++i) {
    if (source.label != i) columns.push_back(i);
  }
  return columns;
}

void check_label(const CsvSource& source, const WantedField& field) {
  const std::int64_t elements = elements_of(source.spec, field);
  if (elements == 1) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("data '{}': label=COLUMN is one label an example, '{}' takes {}",
                  printable(source.spec.text), printable(field.name), shape_text(*field.dims)))
      .hint(fmt::format("columns={}:A+B;.. names several", printable(field.name)));
}

// Each input takes as many of the columns as one example of it has numbers.
std::vector<DealtColumns> dealt_in_order(const CsvSource& source, const DatasetOptions& options,
                                         const FeatureRoles& roles) {
  const std::vector<std::size_t>& columns = source.features;
  std::int64_t wanted = 0;
  std::vector<DealtColumns> dealt;
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
        .hint(hint_of_columns(source.table) +
              "; columns=A+B takes some of them, columns=x:A+B;y:C deals them by name");
  }
  return dealt;
}

DealtColumns dealt_by_name(const CsvSource& source, const DatasetOptions& options,
                           std::string_view piece) {
  const DataSpec& spec = source.spec;
  const std::size_t colon = piece.find(':');
  const std::string_view name = trim(piece.substr(0, colon));
  const WantedField* field =
      colon == std::string_view::npos ? nullptr : field_called(name, options);
  if (field == nullptr) {
    std::vector<std::string> names;
    for (const WantedField& input : options.inputs) names.push_back(printable(input.name, 60));
    if (options.labels) names.push_back(printable(options.labels->name, 60));
    throw Error(ErrorCode::kUsage,
                fmt::format("data '{}': columns: '{}' is not NAME:A+B with an input of the model",
                            printable(spec.text), printable(piece)))
        .hint(fmt::format("the model takes {}", join(names, ", ")));
  }
  DealtColumns dealt{.field = field, .columns = listed_columns(source, piece.substr(colon + 1))};
  const std::int64_t wanted = elements_of(spec, *field);
  require(static_cast<std::size_t>(wanted) == dealt.columns.size(), ErrorCode::kBadInput,
          "data '{}': '{}' has {} columns, the model takes {} numbers an example there",
          printable(spec.text), printable(field->name), dealt.columns.size(), wanted);
  return dealt;
}

// Where labels are not read, what they are called is not known: what is of no input is theirs. An
// input that it was meant for lacks columns then.
bool is_for_labels_alone(const DatasetOptions& options, std::string_view piece) {
  const std::size_t colon = piece.find(':');
  return options.without_labels && colon != std::string_view::npos &&
         field_called(trim(piece.substr(0, colon)), options) == nullptr;
}

std::vector<DealtColumns> dealt_by_names(CsvSource& source, const DatasetOptions& options,
                                         const FeatureRoles& roles) {
  const std::string text = source.spec.option("columns", "");
  std::vector<DealtColumns> dealt;
  for (const std::string_view piece : split(text, ';')) {
    if (is_for_labels_alone(options, piece)) continue;
    DealtColumns one = dealt_by_name(source, options, piece);
    const auto again = std::ranges::find(dealt, one.field, &DealtColumns::field);
    const bool has_label = one.field == roles.labels && source.label.has_value();
    require(again == dealt.end() && !has_label, ErrorCode::kUsage,
            "data '{}': the columns of '{}' are given twice", printable(source.spec.text),
            printable(one.field->name));
    dealt.push_back(std::move(one));
  }
  const auto check_dealt = [&](const WantedField& field) {
    const bool is_there = std::ranges::find(dealt, &field, &DealtColumns::field) != dealt.end() ||
                          (&field == roles.labels && source.label);
    require(is_there, ErrorCode::kUsage, "data '{}': columns says nothing of '{}'",
            printable(source.spec.text), printable(field.name));
  };
  for (const WantedField& input : options.inputs) check_dealt(input);
  if (options.labels) check_dealt(*options.labels);
  for (const DealtColumns& one : dealt) {
    // One column of labels is read as label=COLUMN is: its classes may be text.
    if (one.field == roles.labels && one.columns.size() == 1) source.label = one.columns.front();
    source.features.insert(source.features.end(), one.columns.begin(), one.columns.end());
  }
  std::erase_if(dealt, [&](const DealtColumns& one) {
    return one.field == roles.labels && source.label.has_value();
  });
  if (source.label) std::erase(source.features, *source.label);
  return dealt;
}

}  // namespace

std::vector<DealtColumns> deal_columns(CsvSource& source, const DatasetOptions& options,
                                       const FeatureRoles& roles) {
  source.label = label_column(source, options, roles);
  std::vector<DealtColumns> dealt;
  if (names_fields(source.spec, options)) {
    dealt = dealt_by_names(source, options, roles);
  } else {
    source.features = feature_columns(source);
    dealt = dealt_in_order(source, options, roles);
  }
  if (source.label && roles.labels != nullptr) {
    check_label(source, *roles.labels);
    dealt.push_back({.field = roles.labels, .columns = {*source.label}});
  }
  return dealt;
}

}  // namespace trainscope
