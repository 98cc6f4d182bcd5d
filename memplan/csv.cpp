// Reads and writes the CSV files; every refusal names the line.
#include "memplan/csv.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memplan/csv_text.h"

namespace trainscope::memplan {
namespace {

using std::int64_t;
using std::size_t;
using std::string;
using std::string_view;

constexpr string_view kHeader = "id,lower,upper,size";
constexpr size_t kColumns = 4;

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
    if (string wrong = find_id_error(fields[0]); !wrong.empty()) refuse(std::move(wrong));
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
    const std::vector<string_view> found = split_fields(line);
    if (found.size() != kColumns) {
      refuse("expected 4 columns " + string(kHeader) + ", found " + std::to_string(found.size()) +
             " in " + in_quotes(line));
      return false;
    }
    std::copy(found.begin(), found.end(), fields.begin());
    return true;
  }

  int64_t number(const char* column, string_view field) {
    int64_t value = 0;
    const string error_text = read_number(field, value);
    if (!error_text.empty()) refuse(string(column) + " " + error_text);
    return value;
  }
};

ParsedProblem refuse_line(size_t line, const string& message) {
  return {.message = "line " + std::to_string(line) + ": " + message};
}

}  // namespace

ParsedProblem parse_problem_csv(string_view text) {
  const string_view header = next_line(text);
  if (header != kHeader) {
    return refuse_line(
        1, "the header is " + in_quotes(header) + ", expected '" + string(kHeader) + "'");
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
      return refuse_line(line, "the id " + in_quotes(buffer.id) + " was used in line " +
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
