// Parses a filter into steps for a stack, and runs them.
#include "profiler/analysis/filter.h"

#include <array>
#include <optional>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope::profiler {

class FilterParser {
 public:
  FilterParser(std::string_view text, std::span<const FilterField> fields)
      : text_(text), fields_(fields) {}

  Filter parse() {
    either(0);
    skip_blanks();
    if (at_ < text_.size()) fail_here("expected && or ||, or the end");
    return std::move(filter_);
  }

 private:
  using Op = Filter::Op;
  static constexpr int kMostDepth = 64;

  [[noreturn]] void fail_here(const std::string& what) const { fail_at(at_, what); }
  // The text, and below it a caret.
  [[noreturn]] void fail_at(std::size_t place, const std::string& what,
                            const std::string& hint = {}) const {
    const std::string before = printable(text_.substr(0, place), text_.size() + 1);
    Error error(ErrorCode::kUsage, "the filter: " + what);
    error.at(before + printable(text_.substr(place), text_.size() + 1));
    error.at(std::string(before.size(), ' ') + "^");
    if (!hint.empty()) error.hint(hint);
    throw error;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  static bool is_word_character(char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') ||
           std::string_view("_./:*?+-").find(c) != std::string_view::npos;
  }
  std::string_view word() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word_character(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  void either(int depth) {
    both(depth);
    while (take("||")) {
      both(depth);
      filter_.steps_.push_back({.op = Op::kOr});
    }
  }
  void both(int depth) {
    one(depth);
    while (take("&&")) {
      one(depth);
      filter_.steps_.push_back({.op = Op::kAnd});
    }
  }
  void one(int depth) {
    if (depth > kMostDepth) fail_here("it is nested too deep");
    skip_blanks();
    if (!text_.substr(at_).starts_with("!=") && take("!")) {
      one(depth + 1);
      filter_.steps_.push_back({.op = Op::kNot});
    } else if (take("(")) {
      either(depth + 1);
      if (!take(")")) fail_here("expected )");
    } else {
      comparison();
    }
  }

  std::size_t field() {
    skip_blanks();
    const std::size_t place = at_;
    const std::string_view name = word();
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name == name) return i;
      names.push_back(fields_[i].name);
    }
    const std::string all = "fields are " + join(std::span<const std::string_view>(names), ", ");
    if (name.empty()) fail_at(place, "expected a field", all);
    const std::string near = nearest_hint(name, std::span<const std::string_view>(names));
    fail_at(place, "there is no field '" + printable(name) + "'", near.empty() ? all : near);
  }

  Op comparator(const FilterField& of) {
    static constexpr std::array<std::pair<std::string_view, Op>, 6> kComparators = {
        {{"==", Op::kEqual},
         {"!=", Op::kUnequal},
         {"<=", Op::kLessOrEqual},
         {">=", Op::kGreaterOrEqual},
         {"<", Op::kLess},
         {">", Op::kGreater}}};
    skip_blanks();
    const std::size_t place = at_;
    for (const auto& [token, op] : kComparators) {
      if (!take(token)) continue;
      if (of.is_number || op == Op::kEqual || op == Op::kUnequal) return op;
      fail_at(place, "'" + std::string(of.name) + "' is a text: it takes == and !=");
    }
    fail_at(place, of.is_number ? "expected ==, !=, <, <=, > or >=" : "expected == or !=");
  }

  std::string value() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'') return std::string(word());
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail_here("this quote has no end");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return std::string(inside);
  }

  void comparison() {
    const std::size_t index = field();
    const FilterField& of = fields_[index];
    const Op op = comparator(of);
    skip_blanks();
    const std::size_t place = at_;
    std::string text = value();
    if (at_ == place) fail_at(place, of.is_number ? "expected a number" : "expected a value");
    Filter::Step step{.op = op, .field = index, .is_number = of.is_number};
    if (of.is_number) {
      const std::optional<double> number = parse_number(text);
      if (!number) fail_at(place, "expected a number");
      step.number = *number;
    } else {
      step.text = std::move(text);
    }
    filter_.steps_.push_back(std::move(step));
  }

  std::string_view text_;
  std::span<const FilterField> fields_;
  std::size_t at_ = 0;
  Filter filter_;
};

Filter Filter::parse(std::string_view text, std::span<const FilterField> fields) {
  return FilterParser(text, fields).parse();
}

bool Filter::compare(const Step& step, const FieldValue& value) {
  if (!step.is_number) return matches_pattern(value.text, step.text) == (step.op == Op::kEqual);
  switch (step.op) {
    case Op::kEqual:
      return value.number == step.number;
    case Op::kUnequal:
      return value.number != step.number;
    case Op::kLess:
      return value.number < step.number;
    case Op::kLessOrEqual:
      return value.number <= step.number;
    case Op::kGreater:
      return value.number > step.number;
    default:
      return value.number >= step.number;
  }
}

bool Filter::matches(std::span<const FieldValue> row) const {
  if (steps_.empty()) return true;
  std::vector<bool> stack;
  const auto pop = [&stack] {
    const bool top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Step& step : steps_) {
    if (step.op == Op::kNot) {
      stack.back() = !stack.back();
    } else if (step.op == Op::kAnd) {
      const bool right = pop();
      stack.back() = stack.back() && right;
    } else if (step.op == Op::kOr) {
      const bool right = pop();
      stack.back() = stack.back() || right;
    } else {
      stack.push_back(compare(step, row[step.field]));
    }
  }
  return stack.back();
}

}  // namespace trainscope::profiler
