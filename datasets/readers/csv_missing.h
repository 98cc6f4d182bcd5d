// A CSV file on its way to a table, and what stands for its empty cells.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/csv.h"
#include "datasets/readers/table.h"
#include "datasets/spec.h"
#include "engine/core/json.h"

namespace trainscope {

// What stands for an empty cell.
enum class Missing : std::uint8_t { kRefused, kMean, kZero, kDrop };

struct CsvSource {
  const DataSpec& spec;
  CsvTable table;
  std::optional<std::size_t> label = {};      // a column
  std::vector<std::size_t> features = {};     // columns, in the order of the inputs
  Missing missing = Missing::kRefused;        // kDrop: these rows are gone
  std::vector<std::string> class_names = {};  // of labels that are text
  // Of columns that have a number, with Missing::kMean.
  std::map<std::string, double, std::less<>> means = {};
};

// Throws kBadInput that names the cell.
[[noreturn]] void bad_cell(const CsvSource& source, std::size_t row, std::size_t column,
                           std::string_view problem, std::string hint = {});

// What the option `missing` says. Throws kUsage for another word.
Missing missing_of(const DataSpec& spec);

// Leaves out the rows with an empty cell in a column that is used.
void drop_rows(CsvSource& source);

// The means of the features over the rows that train, or over all where none does. Empty cells do
// not count; what is no number is refused where it is read.
void take_means(CsvSource& source, const Table& table);

// What stands for an empty cell. Throws kBadInput when its column has no mean.
double mean_of(const CsvSource& source, std::size_t row, std::size_t column);

Json means_json(const CsvSource& source);

}  // namespace trainscope
