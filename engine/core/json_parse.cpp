// JSON text to values, with limits; the only file that sees nlohmann-json.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// Counts what the library has taken, because its events do not carry a position.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** furthest = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    *furthest = ++at;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
  bool operator!=(const CountingIterator& other) const { return at != other.at; }
};

// nlohmann's prefix "[json.exception.parse_error.101] parse error at line 1, column 2: " removed.
std::string reason_of(const nlohmann::detail::exception& error) {
  std::string_view text = error.what();
  if (const auto end = text.find("] "); end != std::string_view::npos) text.remove_prefix(end + 2);
  if (text.starts_with("parse error")) {
    if (const auto colon = text.find(": "); colon != std::string_view::npos) {
      text.remove_prefix(colon + 2);
    }
  }
  return printable(text);
}

// Receives the events of nlohmann's parser (which does not recurse) and builds our values.
class Builder {
 public:
  Builder(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}

  Json parse() {
    const char* begin = text_.data();
    const char* end = begin + text_.size();
    furthest_ = begin;
    // The library takes a NUL for the end and would ignore what follows.
    if (const auto nul = text_.find('\0'); nul != std::string_view::npos) {
      furthest_ += nul + 1;
      fail_here("NUL character");
    }
    nlohmann::json::sax_parse(CountingIterator{begin, &furthest_},
                              CountingIterator{end, &furthest_}, this);
    return std::move(root_);
  }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(std::int64_t value) { return add(Json(value)); }
  bool number_unsigned(std::uint64_t value) { return add(Json(value)); }
  bool number_float(double value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) { return add(Json(std::move(value))); }
  bool binary(const std::vector<std::uint8_t>&) { return false; }  // never from text
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& key) {
    if (open_.back().value.contains(key)) fail_here("duplicate key '{}'", printable(key));
    open_.back().key = std::move(key);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) {
    furthest_ = text_.data() + std::min(position, text_.size());
    fail_here("{}", reason_of(error));
  }

 private:
  // A container that is not complete yet, and the key its next member gets.
  struct Open {
    Json value;
    std::string key;
  };

  bool open(Json container) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      fail_here("nested deeper than {} levels", limits_.max_depth);
    }
    open_.push_back({std::move(container), {}});
    return true;
  }

  bool close() {
    Json complete = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(complete));
  }

  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& parent = open_.back();
    if (parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else {
      parent.value.set(std::move(parent.key), std::move(value));
    }
    return true;
  }

  template <typename... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) const {
    std::size_t line = 1;
    const char* line_begin = text_.data();
    for (const char* c = text_.data(); c < furthest_; ++c) {
      if (*c != '\n') continue;
      ++line;
      line_begin = c + 1;
    }
    fail(ErrorCode::kBadInput, "JSON, line {}, column {}: {}", line,
         std::max<std::ptrdiff_t>(1, furthest_ - line_begin),
         fmt::format(format, std::forward<Args>(args)...));
  }

  std::string_view text_;
  JsonLimits limits_;
  const char* furthest_ = nullptr;
  std::vector<Open> open_;
  Json root_;
};

}  // namespace

Json Json::parse(std::string_view text, const JsonLimits& limits) {
  require(text.size() <= limits.max_bytes, ErrorCode::kBadInput,
          "JSON text of {} is longer than the allowed {}", human_bytes(text.size()),
          human_bytes(limits.max_bytes));
  return Builder(text, limits).parse();
}

Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  const std::string text = read_file(path, limits.max_bytes);
  try {
    return Json::parse(text, limits);
  } catch (Error& error) {
    error.at(printable(path.string()));
    throw;
  }
}

}  // namespace trainscope
