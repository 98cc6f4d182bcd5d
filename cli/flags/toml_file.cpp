// toml++ parses; this file alone includes it, because that costs seconds of compile time.
#include "cli/flags/toml_file.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
// Of brackets, and of names in a dotted key: toml++ frees its tables by recursion, so what it is
// given must not be deep.
constexpr std::size_t kMaxDepth = 16;

[[noreturn]] void fail_at(std::string_view file, TomlPlace place, std::string_view message) {
  fail(ErrorCode::kUsage, "{}:{}:{}: {}", file, place.line, place.column, message);
}

// Walks over the text without understanding more of it than strings and comments.
class DepthScan {
 public:
  DepthScan(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  void run() {
    while (at_ < text_.size()) step();
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '"' || c == '\'') return skip_string(c);
    if (c == '#') return skip_comment();
    count(c);
    if (std::max(brackets_, dots_) > kMaxDepth) fail_at(file_, place(), "nested too deeply");
    ++at_;
    if (c == '\n') new_line();
  }

  // Dots since what ends a key: only keys have more than one.
  void count(char c) {
    if (c == '[' || c == '{') ++brackets_;
    if ((c == ']' || c == '}') && brackets_ > 0) --brackets_;
    if (c == '.') ++dots_;
    const bool ends_key = c == '=' || c == ',' || c == '[' || c == '{' || c == '\n';
    if (ends_key) dots_ = 0;
  }

  void skip_comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void skip_string(char quote) {
    if (text_.substr(at_, 3) == std::string(3, quote)) return skip_long_string(quote);
    ++at_;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (text_[at_] == quote) {
        ++at_;
        return;
      }
      skip_character(quote);
    }
  }

  // """ and ''' strings go over lines; one or two more quotes before their end belong to them.
  void skip_long_string(char quote) {
    const std::string end(3, quote);
    at_ += end.size();
    while (at_ < text_.size() && text_.substr(at_, 3) != end) skip_character(quote);
    const std::size_t limit = std::min(at_ + 5, text_.size());
    while (at_ < limit && text_[at_] == quote) ++at_;
  }

  // In double quotes a backslash takes the next character with it.
  void skip_character(char quote) {
    const bool pair = text_[at_] == '\\' && quote == '"' && at_ + 1 < text_.size();
    at_ += pair ? 2 : 1;
    if (text_[at_ - 1] == '\n') new_line();
  }

  void new_line() {
    ++line_;
    line_begin_ = at_;
  }

  TomlPlace place() const { return {.line = line_, .column = at_ - line_begin_ + 1}; }

  std::string_view text_;
  std::string_view file_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t line_begin_ = 0;
  std::size_t brackets_ = 0;
  std::size_t dots_ = 0;
};

TomlPlace place_of(const toml::source_region& source) {
  return {.line = source.begin.line, .column = source.begin.column};
}

TomlKind toml_kind(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::string:
      return TomlKind::kString;
    case toml::node_type::integer:
      return TomlKind::kInteger;
    case toml::node_type::floating_point:
      return TomlKind::kNumber;
    case toml::node_type::boolean:
      return TomlKind::kBool;
    case toml::node_type::array:
      return TomlKind::kArray;
    case toml::node_type::table:
      return TomlKind::kTable;
    default:
      return TomlKind::kTime;
  }
}

// Null for what is no string, number or bool.
Json scalar(const toml::node& node) {
  switch (toml_kind(node)) {
    case TomlKind::kString:
      return node.value_or(std::string());
    case TomlKind::kInteger:
      return node.value_or(std::int64_t{0});
    case TomlKind::kNumber:
      return node.value_or(0.0);
    case TomlKind::kBool:
      return node.value_or(false);
    default:
      return nullptr;
  }
}

TomlEntry toml_entry(std::string_view table, const toml::key& key, const toml::node& node) {
  TomlEntry entry{.table = std::string(table),
                  .key = std::string(key.str()),
                  .kind = toml_kind(node),
                  .value = scalar(node),
                  .key_place = place_of(key.source()),
                  .value_place = place_of(node.source())};
  const toml::array* array = node.as_array();
  if (array == nullptr) return entry;
  entry.value = Json::array();
  for (const toml::node& item : *array) {
    Json value = scalar(item);
    entry.plain_items = entry.plain_items && !value.is_null();
    entry.value.push_back(std::move(value));
  }
  return entry;
}

void add_entries(std::string_view name, const toml::table& table, std::vector<TomlEntry>& into) {
  for (const auto& member : table) into.push_back(toml_entry(name, member.first, member.second));
}

std::vector<TomlEntry> entries_of(const toml::table& root) {
  std::vector<TomlEntry> entries;
  add_entries("", root, entries);
  for (const auto& member : root) {
    const toml::table* table = member.second.as_table();
    if (table != nullptr) add_entries(member.first.str(), *table, entries);
  }
  std::ranges::stable_sort(entries, [](const TomlEntry& a, const TomlEntry& b) {
    return a.key_place.line != b.key_place.line ? a.key_place.line < b.key_place.line
                                                : a.key_place.column < b.key_place.column;
  });
  return entries;
}

}  // namespace

std::string_view name_of(TomlKind kind) {
  switch (kind) {
    case TomlKind::kString:
      return "a string";
    case TomlKind::kInteger:
      return "a whole number";
    case TomlKind::kNumber:
      return "a number with a fraction";
    case TomlKind::kBool:
      return "a boolean";
    case TomlKind::kTime:
      return "a date or time";
    case TomlKind::kArray:
      return "an array";
    case TomlKind::kTable:
      return "a table";
  }
  return "?";
}

std::vector<TomlEntry> parse_toml(std::string_view text, std::string_view shown_file) {
  require(text.size() <= kMaxBytes, ErrorCode::kUsage,
          "{}: the file has {} bytes; a configuration has at most {}", shown_file, text.size(),
          kMaxBytes);
  DepthScan(text, shown_file).run();
  try {
    return entries_of(toml::parse(text));
  } catch (const toml::parse_error& error) {
    fail_at(shown_file, place_of(error.source()), printable(error.description(), 240));
  }
}

std::vector<TomlEntry> read_toml(const std::filesystem::path& file) {
  const std::string shown = printable(file.string());
  std::string text;
  try {
    text = read_file(file, kMaxBytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadInput) throw;
    throw Error(ErrorCode::kUsage, error.message()).hint("a configuration has at most 1 MiB");
  }
  return parse_toml(text, shown);
}

std::string toml_value(const Json& value) {
  // JSON's form is TOML's too, but for DEL in strings, which TOML wants escaped.
  std::string text;
  for (char c : value.dump()) {
    if (c == '\x7f') {
      text += "\\u007F";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace trainscope
