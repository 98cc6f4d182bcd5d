// Reads and writes the CSV files; every refusal names the line.
#include "memplan/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;
using std::string;
using std::string_view;

constexpr string_view kHeader = "id,lower,upper,size";
constexpr size_t kColumns = 4;
constexpr size_t kLongestId = 256;

// Input is quoted in messages: short, and without bytes that would garble a terminal.
string quoted(string_view text) {
  constexpr size_t kLongest = 40;
  string out = "'";
  for (const char c : text.substr(0, kLongest)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > kLongest ? "...'" : "'");
}

// Cuts the next line off `text`, without its line end (LF or CRLF).
string_view next_line(string_view& text) {
  const size_t end = text.find('\n');
  string_view line = text.substr(0, end);
  text.remove_prefix(end == string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Reads one line; `error` stays empty while all is well.
class RowReader {
 public:
  Buffer read(string_view line) {
    std::array<string_view, kColumns> fields;
    if (!split(line, fields)) return {};
    Buffer buffer{.id = string(fields[0]),
                  .lower = number("lower", fields[1]),
                  .upper = number("upper", fields[2]),
                  .size_bytes = number("size", fields[3])};
    check_id(fields[0]);
    if (error.empty() && buffer.upper <= buffer.lower) {
      error = "upper " + std::to_string(buffer.upper) + " is not after lower " +
              std::to_string(buffer.lower) + " (upper is exclusive)";
    }
    return buffer;
  }

  string error = {};

 private:
  void refuse(string message) {
    if (error.empty()) error = std::move(message);
  }

  bool split(string_view line, std::array<string_view, kColumns>& fields) {
    const auto columns = static_cast<size_t>(std::count(line.begin(), line.end(), ',')) + 1;
    if (columns != kColumns) {
      refuse("expected 4 columns " + string(kHeader) + ", found " + std::to_string(columns) +
             " in " + quoted(line));
      return false;
    }
    for (string_view& field : fields) {
      field = line.substr(0, line.find(','));
      line.remove_prefix(std::min(line.size(), field.size() + 1));
    }
    return true;
  }

  int64_t number(const char* column, string_view field) {
    int64_t value = 0;
    const char* end = field.data() + field.size();
    const auto [stop, code] = std::from_chars(field.data(), end, value);
    if (code == std::errc::result_out_of_range) {
      refuse(string(column) + " " + quoted(field) + " does not fit a signed 64-bit integer");
    } else if (code != std::errc() || stop != end) {
      refuse(string(column) + " " + quoted(field) + " is not a whole number");
    } else if (value < 0) {
      refuse(string(column) + " " + quoted(field) + " is negative");
    }
    return value;
  }

  void check_id(string_view id) {
    const auto forbidden = [](char c) { return (c >= 0 && c < ' ') || c == '"' || c == '\x7f'; };
    if (id.empty()) refuse("the id is empty");
    if (id.size() > kLongestId) {
      refuse("the id " + quoted(id) + " is longer than " + std::to_string(kLongestId) + " bytes");
    }
    if (std::any_of(id.begin(), id.end(), forbidden)) {
      refuse("the id " + quoted(id) +
             " has a quote or control character (quoting is not supported)");
    }
  }
};

ParsedProblem refuse_line(size_t line, const string& message) {
  return {.message = "line " + std::to_string(line) + ": " + message};
}

}  // namespace

ParsedProblem parse_problem_csv(string_view text) {
  const string_view header = next_line(text);
  if (header != kHeader) {
    return refuse_line(1,
                       "the header is " + quoted(header) + ", expected '" + string(kHeader) + "'");
  }
  ParsedProblem parsed{.problem = {.alignment_bytes = 1}};
  std::unordered_map<string_view, size_t> line_of_id;  // views into `text`, which outlives it
  for (size_t line = 2; !text.empty(); ++line) {
    const string_view row = next_line(text);
    RowReader reader;
    Buffer buffer = reader.read(row);
    if (!reader.error.empty()) return refuse_line(line, reader.error);
    const auto [known, inserted] = line_of_id.emplace(row.substr(0, buffer.id.size()), line);
    if (!inserted) {
      return refuse_line(line, "the id " + quoted(buffer.id) + " was used in line " +
                                   std::to_string(known->second) + " already");
    }
    parsed.problem.buffers.push_back(std::move(buffer));
  }
  if (const std::optional<string> error = find_problem_error(parsed.problem)) {
    return {.message = *error};
  }
  return parsed;
}

string write_solution_csv(const Problem& problem, std::span<const int64_t> offsets) {
  string text = string(kHeader) + ",offset\n";
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    text += buffer.id;
    for (const int64_t value : {buffer.lower, buffer.upper, buffer.size_bytes, offsets[i]}) {
      text += ',';
      text += std::to_string(value);
    }
    text += '\n';
  }
  return text;
}

}  // namespace trainscope::memplan
