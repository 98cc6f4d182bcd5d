// Parsing of data source texts.
#include "datasets/spec.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

// One for each format, in its reader's file.
#define FORMAT(name) DataFormat name##_format();
#include "datasets/formats.def"
#undef FORMAT

namespace {

[[noreturn]] void bad_spec(std::string_view spec, std::string_view problem, std::string hint) {
  throw Error(ErrorCode::kUsage, fmt::format("data '{}': {}", printable(spec), problem))
      .hint(std::move(hint));
}

std::string form_hint(const DataFormat& row) { return fmt::format("the form is {}", row.form); }

const DataFormat& known_format(std::string_view spec, std::string_view name) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> forms;
  for (const DataFormat& row : data_formats()) {
    if (row.name == name) return row;
    names.push_back(row.name);
    forms.push_back(row.form);
  }
  const std::string nearest = nearest_hint(name, names);
  const std::string problem = name.empty()
                                  ? "expected a kind of data first"
                                  : fmt::format("unknown kind of data '{}'", printable(name));
  bad_spec(spec, problem,
           nearest.empty() ? fmt::format("the forms are {}", join(forms, ", ")) : nearest);
}

// The format of a source that begins with a file, by the end of its name; null when it does not.
const DataFormat* format_of_file(std::string_view text) {
  const std::string_view file = text.substr(0, text.find(','));
  if (file.find(':') != std::string_view::npos) return nullptr;
  for (const DataFormat& row : data_formats()) {
    for (std::string_view ending : row.endings) {
      if (file.size() > ending.size() && file.ends_with(ending)) return &row;
    }
  }
  return nullptr;
}

bool is_parquet(std::string_view file) {
  return file.ends_with(".parquet") || file.ends_with(".pq");
}

// The kind is left to others: one line makes a file of it that is read.
void refuse_parquet(std::string_view text) {
  std::string_view file = text.substr(0, text.find(','));
  const bool has_kind = file.starts_with("parquet:");
  if (const std::size_t colon = file.find(':'); colon != std::string_view::npos) {
    file.remove_prefix(colon + 1);
  }
  if (!has_kind && !is_parquet(file)) return;
  const bool is_plain = file.find_first_of("'\"\\`$!") == std::string_view::npos;
  const std::string name = is_plain && !file.empty() ? printable(file) : "FILE";
  bad_spec(text, "Parquet files are not read",
           fmt::format("python -c \"import pandas; pandas.read_parquet('{0}').to_csv('{0}.csv', "
                       "index=False)\" makes a file for csv:{0}.csv",
                       name));
}

bool has_option(const DataFormat& row, std::string_view key) {
  return std::find(row.options.begin(), row.options.end(), key) != row.options.end();
}

void add_option(std::string_view piece, const DataFormat& row, DataSpec& spec) {
  const std::size_t equals = piece.find('=');
  if (equals == std::string_view::npos) {
    bad_spec(spec.text, fmt::format("expected key=value, found '{}'", printable(piece)),
             "a file name ends at the first comma: rename a file whose name holds one");
  }
  const std::string_view key = piece.substr(0, equals);
  const std::string_view value = piece.substr(equals + 1);
  if (!has_option(row, key)) {
    const std::string nearest = nearest_hint(key, row.options);
    bad_spec(spec.text, fmt::format("{} has no option '{}'", row.name, printable(key)),
             nearest.empty() ? form_hint(row) : nearest);
  }
  if (value.empty()) bad_spec(spec.text, fmt::format("option '{}' has no value", key), "");
  if (!spec.options.emplace(key, value).second) {
    bad_spec(spec.text, fmt::format("option '{}' is given twice", key), "");
  }
}

// Takes the files at the beginning of `pieces`; how many pieces that were. An option in the place
// of a further file says that the file is missing.
std::size_t take_files(std::span<const std::string_view> pieces, const DataFormat& row,
                       DataSpec& spec) {
  std::size_t next = 0;
  for (; next < std::min(pieces.size(), row.files); ++next) {
    const bool is_option =
        next > 0 && has_option(row, pieces[next].substr(0, pieces[next].find('=')));
    if (pieces[next].empty() || is_option) break;
    spec.files.emplace_back(pieces[next]);
  }
  return next;
}

std::string missing_files(const DataFormat& row, const DataSpec& spec) {
  if (row.open == nullptr) return "the name is missing";
  if (row.files == 1) return "the file is missing";
  return fmt::format("expected {} files, found {}", row.files, spec.files.size());
}

}  // namespace

std::span<const DataFormat> data_formats() {
  static const std::vector<DataFormat> formats = {
#define FORMAT(name) name##_format(),
#include "datasets/formats.def"
#undef FORMAT
  };
  return formats;
}

const DataFormat* find_format(std::string_view name) {
  const auto found = std::ranges::find(data_formats(), name, &DataFormat::name);
  return found == data_formats().end() ? nullptr : &*found;
}

DataSpec parse_data_spec(std::string_view text) {
  refuse_parquet(text);
  const DataFormat* of_file = format_of_file(text);
  const std::size_t name_end =
      of_file != nullptr ? 0 : std::min(text.find_first_of(":,"), text.size());
  const DataFormat& row =
      of_file != nullptr ? *of_file : known_format(text, text.substr(0, name_end));
  DataSpec spec{.format = row.name, .text = std::string(text), .files = {}, .options = {}};
  const bool has_file = of_file != nullptr || (name_end < text.size() && text[name_end] == ':');
  if (has_file && row.files == 0) bad_spec(text, "synthetic data have no file", form_hint(row));

  std::vector<std::string_view> pieces;
  if (of_file != nullptr) {
    pieces = split(text, ',');
  } else if (name_end < text.size()) {
    pieces = split(text.substr(name_end + 1), ',');
  }
  std::size_t next = has_file ? take_files(pieces, row, spec) : 0;
  if (spec.files.size() < row.files) bad_spec(text, missing_files(row, spec), form_hint(row));
  for (; next < pieces.size(); ++next) add_option(pieces[next], row, spec);
  return spec;
}

std::int64_t DataSpec::integer(std::string_view key, std::int64_t fallback,
                               std::int64_t minimum) const {
  const auto found = options.find(key);
  if (found == options.end()) return fallback;
  const auto value = parse_int(found->second);
  if (!value || *value < minimum) {
    bad_spec(text,
             fmt::format("option '{}' is '{}': expected a whole number of {} or more", key,
                         printable(found->second), minimum),
             "");
  }
  return *value;
}

double DataSpec::fraction(std::string_view key, double fallback) const {
  const auto found = options.find(key);
  if (found == options.end()) return fallback;
  const auto value = parse_number(found->second);
  if (!value || *value < 0.0 || *value > 1.0) {
    bad_spec(text,
             fmt::format("option '{}' is '{}': expected a number from 0 to 1", key,
                         printable(found->second)),
             "");
  }
  return *value;
}

std::string DataSpec::option(std::string_view key, std::string_view fallback) const {
  const auto found = options.find(key);
  return found == options.end() ? std::string(fallback) : found->second;
}

}  // namespace trainscope
