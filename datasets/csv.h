// Tables of text cells: CSV as RFC 4180 describes it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

// Cells row by row. Cells are separated by commas and rows by line ends (LF or CRLF); a cell in
// double quotes may hold both, and quotes written twice. Blanks around a cell without quotes are
// not part of it. A byte order mark at the beginning and empty lines at the end are left out. The
// first row names the columns: distinct, not empty. Every row has a cell for each of them.
struct CsvTable {
  std::vector<std::string> columns;
  std::vector<std::string> cells;
  std::vector<std::size_t> lines;  // where each row begins in the file, from 1

  std::size_t rows() const { return lines.size(); }
  const std::string& cell(std::size_t row, std::size_t column) const {
    return cells[row * columns.size() + column];
  }
};

// Throws kBadInput with the line.
CsvTable parse_csv(std::string_view text);

}  // namespace trainscope
