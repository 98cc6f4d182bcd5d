// Pieces of an HTML page. What comes from files goes through escaped(): no name can become markup.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainscope::profiler {

// For text and for attributes in double quotes: & < > " ' as entities; control characters, and
// what is not UTF-8, as escapes that can be read. Beyond `max_bytes` the middle is left out.
std::string escaped(std::string_view text, std::size_t max_bytes = 200);

using Attributes = std::initializer_list<std::pair<std::string_view, std::string_view>>;

// <tag a="b">content</tag>; values of attributes are escaped, the content is markup already.
std::string element(std::string_view tag, Attributes attributes, std::string_view content);

// A table that scrolls within itself where the window is narrow. Cells are markup; columns whose
// `is_number` is true stand at the right.
struct TableColumn {
  std::string title;
  bool is_number = false;
};
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string text() const;

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A bar of `share` (0 to 1) of the cell's width, with its label on it.
std::string bar(double share, std::string_view label);

// "1.23 ms", "4.5 s", "870 ns".
std::string duration_text(double ns);

}  // namespace trainscope::profiler
