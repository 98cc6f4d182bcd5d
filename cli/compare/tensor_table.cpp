// Rows by A's tensors, blocks of columns by the other traces.
#include "cli/compare/tensor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "engine/core/text.h"

namespace trainscope {
namespace {

using profiler::ComparedTensor;
using profiler::TensorStatistics;
using profiler::Trace;
using profiler::TraceRow;

// A's tensor, with null for each other trace that lacks it.
struct TableRow {
  const TraceRow* row = nullptr;
  std::string key;
  std::vector<const ComparedTensor*> tensors;
};

double rank_of(const ComparedTensor& tensor) {
  const double over = tensor.over_limit();
  const bool has_number = tensor.limit.value_or(0.0) > 0.0 && std::isfinite(over);
  return profiler::is_fault(tensor.verdict) && !has_number ? 1e300 : over;
}

double rank_of(const TableRow& row) {
  double most = -1.0;
  for (const ComparedTensor* tensor : row.tensors) {
    if (tensor != nullptr) most = std::max(most, rank_of(*tensor));
  }
  return most;
}

std::vector<TableRow> table_rows(const Trace& a, const std::vector<TracePair>& pairs,
                                 std::size_t top) {
  std::map<std::size_t, TableRow> rows;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (const ComparedTensor& tensor : pairs[i].both.tensors) {
      TableRow& row = rows[tensor.row_a];
      row.row = &a.rows()[tensor.row_a];
      row.key = tensor.key;
      row.tensors.resize(pairs.size());
      row.tensors[i] = &tensor;
    }
  }
  std::vector<TableRow> sorted;
  for (auto& [index, row] : rows) sorted.push_back(std::move(row));
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const TableRow& row) { return rank_of(row); });
  sorted.resize(std::min(top, sorted.size()));
  return sorted;
}

// A column: its title, and its cell of a row.
class Columns {
 public:
  template <typename Cell>
  void add(std::string title, int width, Cell cell) {
    heading_ += fmt::format("{:>{}} ", title, width);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      lines_[i] += fmt::format("{:>{}} ", cell(rows_[i]), width);
    }
  }
  explicit Columns(const std::vector<TableRow>& rows) : rows_(rows), lines_(rows.size()) {}

  std::string text() const {
    std::string text = heading_ + " value\n";
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      text += lines_[i] + " " + printable(rows_[i].key) + "\n";
    }
    return text;
  }

 private:
  const std::vector<TableRow>& rows_;
  std::vector<std::string> lines_;
  std::string heading_;
};

// A cell of the tensor that the i-th other trace has; empty where it has none.
template <typename Cell>
auto of_pair(std::size_t i, Cell cell) {
  return [i, cell](const TableRow& row) {
    return row.tensors[i] == nullptr ? std::string() : cell(*row.tensors[i]);
  };
}

std::string optional_text(const std::optional<double>& number) {
  return number ? fmt::format("{:.1e}", *number) : "";
}

bool any_tensor(const std::vector<TableRow>& rows, auto is_so) {
  return std::ranges::any_of(rows, [&](const TableRow& row) {
    return std::ranges::any_of(
        row.tensors, [&](const ComparedTensor* tensor) { return tensor && is_so(*tensor); });
  });
}

std::int64_t not_finite(const TensorStatistics& statistics) {
  return statistics.count - statistics.finite();
}

void add_error_columns(std::size_t i, const std::string& suffix, Columns& columns) {
  columns.add("error" + suffix, 10, of_pair(i, [](const ComparedTensor& tensor) {
                return fmt::format("{:.2e}", tensor.relative);
              }));
  columns.add("limit" + suffix, 10, of_pair(i, [](const ComparedTensor& tensor) {
                return tensor.limit ? fmt::format("{:.2e}", *tensor.limit) : "none";
              }));
  columns.add("over" + suffix, 9, of_pair(i, [](const ComparedTensor& tensor) {
                return fmt::format("{:.3g}", tensor.over_limit());
              }));
  columns.add("verdict", 8, of_pair(i, [](const ComparedTensor& tensor) {
                return std::string(name_of(tensor.verdict));
              }));
}

void add_special_columns(const TracePair& pair, std::size_t i, Columns& columns) {
  columns.add("NaN,inf A/" + pair.name, 14, of_pair(i, [](const ComparedTensor& tensor) {
                const TensorStatistics& x = tensor.statistics_a;
                const TensorStatistics& y = tensor.statistics_b;
                return fmt::format("{},{}/{},{}", x.nan, not_finite(x) - x.nan, y.nan,
                                   not_finite(y) - y.nan);
              }));
}

void add_element_columns(std::size_t i, const std::string& suffix, Columns& columns) {
  columns.add("max abs" + suffix, 9, of_pair(i, [](const ComparedTensor& tensor) {
                return tensor.elements ? fmt::format("{:.1e}", tensor.elements->largest) : "";
              }));
  columns.add("ulp 50/90/99%" + suffix, 16, of_pair(i, [](const ComparedTensor& tensor) {
                const auto& e = tensor.elements;
                return e ? fmt::format("{:.0f}/{:.0f}/{:.0f}", e->ulp_median, e->ulp_90, e->ulp_99)
                         : "";
              }));
  columns.add("1-cosine" + suffix, 9, of_pair(i, [](const ComparedTensor& tensor) {
                return fmt::format("{:.1e}", 1.0 - tensor.cosine);
              }));
  columns.add("flips" + suffix, 6, of_pair(i, [](const ComparedTensor& tensor) {
                return tensor.kink_flips ? std::to_string(*tensor.kink_flips) : "";
              }));
}

void add_truth_columns(const std::vector<TracePair>& pairs, Columns& columns) {
  columns.add("A-f64", 8, [](const TableRow& row) {
    for (const ComparedTensor* tensor : row.tensors) {
      if (tensor != nullptr && tensor->error_a) return optional_text(tensor->error_a);
    }
    return std::string();
  });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    columns.add(pairs[i].name + "-f64", 8, of_pair(i, [](const ComparedTensor& tensor) {
                  return optional_text(tensor.error_b);
                }));
  }
}

}  // namespace

std::string tensor_table(const Trace& a, const std::vector<TracePair>& pairs, std::size_t top) {
  const std::vector<TableRow> rows = table_rows(a, pairs, top);
  Columns columns(rows);
  columns.add("step", 6, [](const TableRow& row) { return std::to_string(row.row->step); });
  columns.add("phase", 8, [](const TableRow& row) { return std::string(name_of(row.row->phase)); });
  const bool special = any_tensor(rows, [](const ComparedTensor& tensor) {
    return tensor.verdict == profiler::TensorVerdict::kSpecial ||
           not_finite(tensor.statistics_a) > 0;
  });
  const bool elements =
      any_tensor(rows, [](const ComparedTensor& tensor) { return tensor.elements.has_value(); });
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string suffix = pairs.size() > 1 ? " " + pairs[i].name : "";
    add_error_columns(i, suffix, columns);
    if (special) add_special_columns(pairs[i], i, columns);
    if (elements) add_element_columns(i, suffix, columns);
  }
  const bool truth =
      any_tensor(rows, [](const ComparedTensor& tensor) { return tensor.error_a.has_value(); });
  if (truth) add_truth_columns(pairs, columns);
  return columns.text();
}

}  // namespace trainscope
