// Lines, fields and numbers of CSV files.
#include "memplan/csv_text.h"

#include <algorithm>
#include <charconv>

namespace trainscope::memplan {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string out = "'";
  for (const char c : text.substr(0, kLongest)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kLongest ? "...'" : "'");
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string find_id_error(std::string_view id) {
  constexpr std::size_t kLongestId = 256;
  const auto forbidden = [](char c) { return (c >= 0 && c < ' ') || c == '"' || c == '\x7f'; };
  if (id.empty()) return "the id is empty";
  if (id.size() > kLongestId) {
    return "the id " + in_quotes(id) + " is longer than " + std::to_string(kLongestId) + " bytes";
  }
  if (std::any_of(id.begin(), id.end(), forbidden)) {
    return "the id " + in_quotes(id) +
           " has a quote or control character (quoting is not supported)";
  }
  return {};
}

std::vector<std::string_view> split_fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t comma = line.find(','); comma != std::string_view::npos;
       comma = line.find(',')) {
    fields.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  fields.push_back(line);
  return fields;
}

std::string read_number(std::string_view field, std::int64_t& value) {
  const char* end = field.data() + field.size();
  const auto [stop, code] = std::from_chars(field.data(), end, value);
  if (code == std::errc::result_out_of_range) {
    return in_quotes(field) + " does not fit a signed 64-bit integer";
  }
  if (code != std::errc() || stop != end) return in_quotes(field) + " is not a whole number";
  if (value < 0) return in_quotes(field) + " is negative";
  return {};
}

}  // namespace trainscope::memplan
