// Parsing of data source texts.
#include "datasets/spec.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

struct KindRow {
  DataKind kind;
  std::string_view name;
  std::string_view form;
  std::size_t files;
  std::span<const std::string_view> options;
};

constexpr std::string_view kFileOptions[] = {"validation"};
constexpr std::string_view kTokensOptions[] = {"dtype", "validation"};
constexpr std::string_view kCsvOptions[] = {"label", "validation"};
constexpr std::string_view kSyntheticOptions[] = {"examples", "classes", "validation"};
constexpr std::string_view kCatalogOptions[] = {"part", "validation"};

constexpr KindRow kKinds[] = {
    {DataKind::kText, "text", "text:FILE[,validation=FRACTION]", 1, kFileOptions},
    {DataKind::kBpe, "bpe", "bpe:FILE,VOCAB.json,MERGES.txt[,validation=FRACTION]", 3,
     kFileOptions},
    {DataKind::kTokens, "tokens", "tokens:FILE[,dtype=uint16|uint32,validation=FRACTION]", 1,
     kTokensOptions},
    {DataKind::kIdx, "idx", "idx:IMAGES,LABELS[,validation=FRACTION]", 2, kFileOptions},
    {DataKind::kCsv, "csv", "csv:FILE,label=COLUMN[,validation=FRACTION]", 1, kCsvOptions},
    {DataKind::kTensors, "tensors", "tensors:FILE.safetensors|FILE.npz[,validation=FRACTION]", 1,
     kFileOptions},
    {DataKind::kSynthetic, "synthetic", "synthetic[,examples=N,classes=K,validation=FRACTION]", 0,
     kSyntheticOptions},
    {DataKind::kCatalog, "catalog", "catalog:NAME[,part=train|test,validation=FRACTION]", 1,
     kCatalogOptions},
};

[[noreturn]] void bad_spec(std::string_view spec, std::string_view problem, std::string hint) {
  throw Error(ErrorCode::kUsage, fmt::format("data '{}': {}", printable(spec), problem))
      .hint(std::move(hint));
}

std::string form_hint(const KindRow& row) { return fmt::format("the form is {}", row.form); }

const KindRow& find_kind(std::string_view spec, std::string_view name) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> forms;
  for (const KindRow& row : kKinds) {
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

bool has_option(const KindRow& row, std::string_view key) {
  return std::find(row.options.begin(), row.options.end(), key) != row.options.end();
}

void add_option(std::string_view piece, const KindRow& row, DataSpec& spec) {
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
std::size_t take_files(std::span<const std::string_view> pieces, const KindRow& row,
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

std::string missing_files(const KindRow& row, const DataSpec& spec) {
  if (row.kind == DataKind::kCatalog) return "the name is missing";
  if (row.files == 1) return "the file is missing";
  return fmt::format("expected {} files, found {}", row.files, spec.files.size());
}

}  // namespace

std::string_view name_of(DataKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row.name;
  }
  return "?";
}

DataSpec parse_data_spec(std::string_view text) {
  const std::size_t name_end = std::min(text.find_first_of(":,"), text.size());
  const KindRow& row = find_kind(text, text.substr(0, name_end));
  DataSpec spec{.kind = row.kind, .text = std::string(text), .files = {}, .options = {}};
  const bool has_file = name_end < text.size() && text[name_end] == ':';
  if (has_file && row.files == 0) bad_spec(text, "synthetic data have no file", form_hint(row));

  std::vector<std::string_view> pieces;
  if (name_end < text.size()) pieces = split(text.substr(name_end + 1), ',');
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
