// Elements, tables and numbers of a report's page.
#include "profiler/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/core/markup.h"
#include "engine/core/text.h"

namespace trainscope::profiler {

std::string escaped(std::string_view text, std::size_t max_bytes) {
  return markup_text(printable(text, max_bytes));
}

std::string element(std::string_view tag, Attributes attributes, std::string_view content) {
  std::string text = fmt::format("<{}", tag);
  for (const auto& [name, value] : attributes) {
    text += fmt::format(" {}=\"{}\"", name, escaped(value, std::string_view::npos));
  }
  return text + fmt::format(">{}</{}>", content, tag);
}

std::string HtmlTable::text() const {
  std::string head;
  for (const TableColumn& column : columns_) {
    head += element("th", {{"class", column.is_number ? "n" : "t"}}, escaped(column.title));
  }
  std::string body;
  for (const std::vector<std::string>& row : rows_) {
    std::string cells;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_number = i < columns_.size() && columns_[i].is_number;
      cells += element("td", {{"class", is_number ? "n" : "t"}}, row[i]);
    }
    body += element("tr", {}, cells) + '\n';
  }
  const std::string table =
      element("thead", {}, element("tr", {}, head)) + '\n' + element("tbody", {}, body);
  return element("div", {{"class", "scroll"}}, element("table", {}, table)) + '\n';
}

std::string bar(double share, std::string_view label) {
  const double percent = std::isfinite(share) ? std::clamp(100.0 * share, 0.0, 100.0) : 0.0;
  const std::string width = fmt::format("width:{:.2f}%", percent);
  return element("div", {{"class", "bar"}},
                 element("span", {{"class", "fill"}, {"style", width}}, "") +
                     element("span", {{"class", "label"}}, escaped(label)));
}

std::string duration_text(double ns) {
  if (!std::isfinite(ns)) return "-";
  if (ns >= 1e9) return fmt::format("{:.3g} s", ns / 1e9);
  if (ns >= 1e6) return fmt::format("{:.3g} ms", ns / 1e6);
  if (ns >= 1e3) return fmt::format("{:.3g} us", ns / 1e3);
  return fmt::format("{:.0f} ns", ns);
}

}  // namespace trainscope::profiler
