// Filters: "op==MatMul && ms>0.1 && phase==backward".
//
// A comparison is FIELD == != < <= > >= VALUE; fields of text take == and != and patterns with *
// and
// ?. Comparisons are joined by && and ||, turned round by !, grouped by parentheses. Values with
// other characters than letters, digits and _ . / : * ? + - stand in quotes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope::profiler {

struct FilterField {
  std::string_view name;
  bool is_number = false;
};

// What a row has in each field, in the order of the fields.
struct FieldValue {
  std::string_view text = {};
  double number = 0.0;
};

class Filter {
 public:
  // Everything matches.
  Filter() = default;
  // Throws kUsage that points to the place in the text.
  static Filter parse(std::string_view text, std::span<const FilterField> fields);

  bool matches(std::span<const FieldValue> row) const;

 private:
  friend class FilterParser;
  enum class Op : std::uint8_t {
    kAnd,
    kOr,
    kNot,
    kEqual,
    kUnequal,
    kLess,
    kLessOrEqual,
    kGreater,
    kGreaterOrEqual
  };
  // In the order in which a stack computes them: what an operation takes stands before it.
  struct Step {
    Op op;
    std::size_t field = 0;
    bool is_number = false;
    std::string text = {};
    double number = 0.0;
  };
  static bool compare(const Step& step, const FieldValue& value);

  std::vector<Step> steps_;
};

}  // namespace trainscope::profiler
