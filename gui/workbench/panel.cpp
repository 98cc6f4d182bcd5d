// Tables as text for other programs.
#include "gui/workbench/panel.h"

namespace trainscope::gui {
namespace {

std::string plain(const std::string& text, char separator) {
  std::string result;
  for (const char c : text) {
    const bool breaks = c == '\n' || c == '\r' || c == '\t';
    if (c == '|' && separator == '|') result += '\\';
    result += breaks ? ' ' : c;
  }
  return result;
}

}  // namespace

std::string tsv_of(const CopiedTable& table) {
  std::string text;
  const auto add = [&text](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += '\t';
      text += plain(cells[i], '\t');
    }
    text += '\n';
  };
  add(table.head);
  for (const std::vector<std::string>& row : table.rows) add(row);
  return text;
}

std::string markdown_of(const CopiedTable& table) {
  std::string text;
  const auto add = [&text](const std::vector<std::string>& cells) {
    text += '|';
    for (const std::string& cell : cells) text += " " + plain(cell, '|') + " |";
    text += '\n';
  };
  add(table.head);
  text += '|';
  for (std::size_t i = 0; i < table.head.size(); ++i) text += i == 0 ? "---|" : "---:|";
  text += '\n';
  for (const std::vector<std::string>& row : table.rows) add(row);
  return text;
}

}  // namespace trainscope::gui
