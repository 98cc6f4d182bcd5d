// Splits CSV text into cells.
#include "datasets/csv.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class CsvParser {
 public:
  explicit CsvParser(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }
  std::size_t line() const { return line_; }

  // The next row; its end is consumed.
  std::vector<std::string> row() {
    std::vector<std::string> cells;
    while (true) {
      cells.push_back(cell());
      if (!rest_.starts_with(',')) break;
      rest_.remove_prefix(1);
    }
    end_row();
    return cells;
  }

 private:
  std::string cell() {
    const std::size_t blanks = std::min(rest_.find_first_not_of(" \t"), rest_.size());
    if (blanks < rest_.size() && rest_[blanks] == '"') {
      rest_.remove_prefix(blanks + 1);
      return quoted_cell();
    }
    const std::string_view raw = rest_.substr(0, rest_.find_first_of(",\r\n"));
    const bool has_quote = raw.find('"') != std::string_view::npos;
    require(!has_quote, ErrorCode::kBadInput,
            "line {}: a quote within the cell '{}', which does not begin with one", line_,
            printable(raw));
    rest_.remove_prefix(raw.size());
    return std::string(trim(raw));
  }

  // What follows the opening quote.
  std::string quoted_cell() {
    const std::size_t first_line = line_;
    std::string text;
    while (true) {
      const std::size_t quote = rest_.find('"');
      require(quote != std::string_view::npos, ErrorCode::kBadInput,
              "line {}: the quoted cell that begins there never ends", first_line);
      text += rest_.substr(0, quote);
      line_ += static_cast<std::size_t>(std::ranges::count(rest_.substr(0, quote), '\n'));
      rest_.remove_prefix(quote + 1);
      if (!rest_.starts_with('"')) break;
      text += '"';
      rest_.remove_prefix(1);
    }
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    return text;
  }

  void end_row() {
    if (rest_.empty()) return;
    if (rest_.starts_with("\r\n")) rest_.remove_prefix(1);
    require(rest_.front() == '\n', ErrorCode::kBadInput,
            "line {}: expected a comma or a line end after a cell, found '{}'", line_,
            printable(rest_.substr(0, 1)));
    rest_.remove_prefix(1);
    ++line_;
  }

  std::string_view rest_;
  std::size_t line_ = 1;
};

void check_columns(const std::vector<std::string>& columns) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    require(!columns[i].empty(), ErrorCode::kBadInput, "line 1: column {} has no name", i + 1);
    require(seen.insert(columns[i]).second, ErrorCode::kBadInput,
            "line 1: two columns are called '{}'", printable(columns[i]));
  }
}

std::string_view without_frame(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::size_t last = text.find_last_not_of("\r\n");
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

}  // namespace

CsvTable parse_csv(std::string_view text) {
  const std::size_t nul = text.find('\0');
  require(nul == std::string_view::npos, ErrorCode::kBadInput,
          "byte {} is 0: this is no text of cells", nul);
  text = without_frame(text);
  require(!text.empty(), ErrorCode::kBadInput, "there is no header row");
  CsvParser parser(text);
  CsvTable table{.columns = parser.row(), .cells = {}, .lines = {}};
  check_columns(table.columns);
  while (!parser.at_end()) {
    const std::size_t line = parser.line();
    std::vector<std::string> row = parser.row();
    require(row.size() == table.columns.size(), ErrorCode::kBadInput,
            "line {} has {} cells, the header has {}", line, row.size(), table.columns.size());
    table.lines.push_back(line);
    for (std::string& cell : row) table.cells.push_back(std::move(cell));
  }
  require(table.rows() > 0, ErrorCode::kBadInput, "there are no rows below the header");
  return table;
}

}  // namespace trainscope
