// Empty cells of a CSV file: left out with their rows, or what stands for them.
#include "datasets/readers/csv_missing.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {

void bad_cell(const CsvSource& source, std::size_t row, std::size_t column,
              std::string_view problem, std::string hint) {
  throw Error(
      ErrorCode::kBadInput,
      fmt::format("'{}' row {} (line {}), column '{}': {}", printable(source.spec.file()), row + 1,
                  source.table.lines[row], printable(source.table.columns[column]), problem))
      .hint(std::move(hint));
}

Missing missing_of(const DataSpec& spec) {
  const std::string word = spec.option("missing", "");
  if (word.empty()) return Missing::kRefused;
  if (word == "mean") return Missing::kMean;
  if (word == "zero") return Missing::kZero;
  if (word == "drop") return Missing::kDrop;
  throw Error(ErrorCode::kUsage,
              fmt::format("data '{}': option 'missing' is '{}': expected mean, zero or drop",
                          printable(spec.text), printable(word)));
}

void drop_rows(CsvSource& source) {
  std::vector<std::size_t> used = source.features;
  if (source.label) used.push_back(*source.label);
  const CsvTable& table = source.table;
  CsvTable kept{.columns = table.columns, .cells = {}, .lines = {}};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const bool is_whole = std::ranges::none_of(
        used, [&](std::size_t column) { return table.cell(row, column).empty(); });
    if (!is_whole) continue;
    kept.lines.push_back(table.lines[row]);
    for (std::size_t i = 0; i < table.columns.size(); ++i) kept.cells.push_back(table.cell(row, i));
  }
  require(kept.rows() > 0, ErrorCode::kBadInput, "'{}': every row has an empty cell",
          printable(source.spec.file()));
  source.table = std::move(kept);
}

void take_means(CsvSource& source, const Table& table) {
  const auto rows_of_file = static_cast<std::int64_t>(source.table.rows());
  Table whole;
  std::vector<std::int64_t> rows = training_rows(table, rows_of_file);
  if (rows.empty()) rows = training_rows(whole, rows_of_file);
  for (const std::size_t column : source.features) {
    double sum = 0.0;
    std::size_t count = 0;
    for (const std::int64_t row : rows) {
      const auto at = static_cast<std::size_t>(row);
      const std::optional<double> number = parse_number(source.table.cell(at, column));
      if (!number) continue;
      sum += *number;
      ++count;
    }
    if (count == 0) continue;
    source.means[source.table.columns[column]] = sum / static_cast<double>(count);
  }
}

double mean_of(const CsvSource& source, std::size_t row, std::size_t column) {
  const auto mean = source.means.find(source.table.columns[column]);
  if (mean == source.means.end()) {
    bad_cell(source, row, column, "the cell is empty, and no row that trains has a number there",
             "missing=zero or missing=drop");
  }
  return mean->second;
}

Json means_json(const CsvSource& source) {
  Json means = Json::object();
  for (const auto& [column, mean] : source.means) means.set(column, mean);
  return means;
}

}  // namespace trainscope
