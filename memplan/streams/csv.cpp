// Reads both files; every refusal names the file and the line.
#include "memplan/streams/csv.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memplan/csv_text.h"

namespace trainscope::memplan {
namespace {

using std::int32_t;
using std::int64_t;
using std::size_t;
using std::string;
using std::string_view;

constexpr string_view kOperationColumns = "id,stream,after";
constexpr string_view kBufferColumns = "id,size,producer,readers";
constexpr string_view kKept = "*";

using Numbers = std::unordered_map<string_view, int32_t>;  // views into the text

std::vector<string_view> split_words(string_view field) {
  std::vector<string_view> words;
  while (!field.empty()) {
    const size_t end = field.find(' ');
    if (end != 0) words.push_back(field.substr(0, end));
    field.remove_prefix(end == string_view::npos ? field.size() : end + 1);
  }
  return words;
}

// A file's rows, one by one; `message` stays empty while all is well.
class Rows {
 public:
  Rows(const char* file, string_view columns, string_view text)
      : file_(file), columns_(columns), text_(text) {
    const string_view header = next_line(text_);
    if (header != columns) {
      refuse("the header is " + in_quotes(header) + ", expected '" + string(columns) + "'");
    }
  }

  // The fields of the next row; none at the end or after a refusal.
  std::vector<string_view> next() {
    if (!message.empty() || text_.empty()) return {};
    ++line_;
    const string_view row = next_line(text_);
    std::vector<string_view> fields = split_fields(row);
    const size_t expected = split_fields(columns_).size();
    if (fields.size() != expected) {
      refuse("expected " + std::to_string(expected) + " columns " + string(columns_) + ", found " +
             std::to_string(fields.size()) + " in " + in_quotes(row) +
             " (separate names in one column by spaces)");
      return {};
    }
    return fields;
  }

  void refuse(const string& wrong) {
    if (message.empty()) message = string(file_) + ", line " + std::to_string(line_) + ": " + wrong;
  }

  int64_t number(const char* column, string_view field) {
    int64_t value = 0;
    const string wrong = read_number(field, value);
    if (!wrong.empty()) refuse(string(column) + " " + wrong);
    return value;
  }

  // Remembers the row's id and returns it.
  string new_id(string_view id, Numbers& known) {
    if (const string wrong = find_id_error(id); !wrong.empty()) refuse(wrong);
    const auto number = static_cast<int32_t>(known.size());
    const auto [other, fresh] = known.emplace(id, number);
    if (!fresh) {
      refuse("the id " + in_quotes(id) + " was used in line " + std::to_string(other->second + 2) +
             " already");
    }
    return string(id);
  }

  string message = {};

 private:
  const char* file_;
  string_view columns_;
  string_view text_;
  size_t line_ = 1;
};

class Parser {
 public:
  explicit Parser(const StreamTexts& texts) : texts_(texts) {}

  ParsedStreams run() {
    string message = number_operations();
    if (message.empty()) message = read_operations();
    if (message.empty()) message = read_buffers();
    if (!message.empty()) return {.message = std::move(message)};
    if (std::optional<string> error = find_problem_error(problem_)) return {.message = *error};
    return {.problem = std::move(problem_)};
  }

 private:
  // Operations may wait for operations further down, so names come first.
  string number_operations() {
    Rows rows("operations", kOperationColumns, texts_.operations);
    for (auto fields = rows.next(); !fields.empty(); fields = rows.next()) {
      const bool clear = fields[0].find(' ') == string_view::npos && fields[0] != kKept;
      if (!clear) rows.refuse("the id " + in_quotes(fields[0]) + " has a space or is '*'");
      problem_.operations.push_back({.id = rows.new_id(fields[0], operations_)});
    }
    return rows.message;
  }

  string read_operations() {
    Rows rows("operations", kOperationColumns, texts_.operations);
    size_t row = 0;
    for (auto fields = rows.next(); !fields.empty(); fields = rows.next()) {
      Operation& operation = problem_.operations[row++];
      operation.stream = stream(fields[1], rows);
      for (const string_view word : split_words(fields[2])) {
        operation.after.push_back(find(word, "after", rows));
      }
    }
    return rows.message;
  }

  string read_buffers() {
    Rows rows("buffers", kBufferColumns, texts_.buffers);
    Numbers ids;
    for (auto fields = rows.next(); !fields.empty(); fields = rows.next()) {
      StreamBuffer buffer{.id = rows.new_id(fields[0], ids),
                          .size_bytes = rows.number("size", fields[1])};
      if (!fields[2].empty()) buffer.producer = find(fields[2], "producer", rows);
      for (const string_view word : split_words(fields[3])) {
        if (word == kKept) {
          buffer.kept = true;
        } else {
          buffer.readers.push_back(find(word, "readers", rows));
        }
      }
      problem_.buffers.push_back(std::move(buffer));
    }
    return rows.message;
  }

  // Streams have names; they are numbered as they come.
  int32_t stream(string_view name, Rows& rows) {
    if (const string wrong = find_id_error(name); !wrong.empty()) rows.refuse("stream: " + wrong);
    const auto number = static_cast<int32_t>(streams_.size());
    if (number == kMostStreams && !streams_.contains(name)) {
      rows.refuse("more than " + std::to_string(kMostStreams) + " streams");
      return 0;
    }
    return streams_.emplace(name, number).first->second;
  }

  int32_t find(string_view id, const char* column, Rows& rows) const {
    const auto found = operations_.find(id);
    if (found != operations_.end()) return found->second;
    rows.refuse(string(column) + " names " + in_quotes(id) + ", which is no operation");
    return 0;
  }

  const StreamTexts& texts_;
  StreamProblem problem_{.alignment_bytes = 1};
  Numbers operations_;
  Numbers streams_;
};

}  // namespace

ParsedStreams parse_streams_csv(const StreamTexts& texts) { return Parser(texts).run(); }

string write_solution_csv(const StreamProblem& problem, std::span<const int64_t> offsets) {
  const auto id_of = [&](int32_t operation) -> const string& {
    return problem.operations[static_cast<size_t>(operation)].id;
  };
  string text = string(kBufferColumns) + ",offset\n";
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const StreamBuffer& buffer = problem.buffers[i];
    text += buffer.id + ',' + std::to_string(buffer.size_bytes) + ',';
    if (buffer.producer != kNoOperation) text += id_of(buffer.producer);
    text += ',';
    string readers;
    for (const int32_t reader : buffer.readers) readers += ' ' + id_of(reader);
    if (buffer.kept) readers += " *";
    if (!readers.empty()) text += readers.substr(1);
    text += ',' + std::to_string(offsets[i]) + '\n';
  }
  return text;
}

}  // namespace trainscope::memplan
