// Splits a text at its semicolons and labels.
#include "tests/cuda/interpreter/statements.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace trainscope::ptx {
namespace {

class Splitter {
 public:
  Splitter(std::string_view text, int line) : text_(text), line_(line) {}

  std::vector<Statement> split() {
    for (; at_ < text_.size(); ++at_) take(text_[at_]);
    return std::move(statements_);
  }

 private:
  void take(char c) {
    if (text_.substr(at_, 2) == "//") {
      at_ = std::min(text_.find('\n', at_), text_.size());
      c = '\n';
    }
    if (c == '\n') {
      ++line_;
      // Line directives have no ';'.
      if (current_.text.starts_with(".loc ") || current_.text.starts_with(".pragma ")) end(false);
    }
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      if (!current_.text.empty() && current_.text.back() != ' ') current_.text += ' ';
      return;
    }
    if ((c == '{' || c == '}') && current_.text.empty()) return;
    if (c == '{') ++depth_;
    if (c == '}') --depth_;
    if (c == ';' && depth_ == 0) return end(false);
    if (c == ':' && depth_ == 0 && current_.text.find(' ') == std::string::npos) return end(true);
    if (current_.text.empty()) current_.line = line_;
    current_.text += c;
  }

  void end(bool is_label) {
    while (!current_.text.empty() && current_.text.back() == ' ') current_.text.pop_back();
    current_.is_label = is_label;
    if (!current_.text.empty()) statements_.push_back(std::exchange(current_, {}));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_;
  int depth_ = 0;
  Statement current_;
  std::vector<Statement> statements_;
};

}  // namespace

std::vector<Statement> statements_of(std::string_view text, int line) {
  return Splitter(text, line).split();
}

std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    std::string_view part = list.substr(begin, end - begin);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
    begin = end + 1;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '{' || list[i] == '[' || list[i] == '(') ++depth;
    if (list[i] == '}' || list[i] == ']' || list[i] == ')') --depth;
    if (list[i] == ',' && depth == 0) add(i);
  }
  add(list.size());
  return parts;
}

}  // namespace trainscope::ptx
