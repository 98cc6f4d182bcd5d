// Formulas are read from left to right, a function for each level of precedence.
#include "tests/cuda/ptx/byte_formula.h"

#include <charconv>
#include <stdexcept>
#include <string>

namespace trainscope::test {
namespace {

class Reader {
 public:
  Reader(std::string_view formula, const OpArgs& args, const Cost& cost)
      : formula_(formula), rest_(formula), args_(args), cost_(cost) {}

  std::int64_t whole() {
    const std::int64_t value = sum();
    if (next() != '\0') fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error("formula '" + std::string(formula_) + "', at '" + std::string(rest_) +
                             "': not understood");
  }

  // The next character, which is no space; 0 at the end.
  char next() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool took(char wanted) {
    if (next() != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool took(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    while (true) {
      if (took('+')) {
        value += product();
      } else if (took('-')) {
        value -= product();
      } else {
        return value;
      }
    }
  }

  std::int64_t product() {
    std::int64_t value = factor();
    while (true) {
      if (took('*')) {
        value *= factor();
      } else if (took('/')) {
        const std::int64_t divisor = factor();
        if (divisor == 0) fail();
        value = (value + divisor - 1) / divisor;
      } else {
        return value;
      }
    }
  }

  std::int64_t factor() {
    if (took('(')) {
      const std::int64_t value = sum();
      if (!took(')')) fail();
      return value;
    }
    if (took("read")) return cost_.bytes_read;
    if (took("written")) return cost_.bytes_written;
    if (took('x')) return operand(true);
    if (took('y')) return operand(false);
    return number();
  }

  std::int64_t number() {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  std::int64_t operand(bool is_input) {
    const auto i = static_cast<std::size_t>(number());
    const auto& types = is_input ? args_.inputs : args_.outputs;
    const bool present = i < types.size() && (!is_input || args_.present[i]);
    const TensorType type = present ? types[i] : TensorType{};
    if (!took(std::string_view("."))) return present ? static_cast<std::int64_t>(type.bytes()) : 0;
    if (took(std::string_view("n"))) return present ? type.elements() : 0;
    const std::int64_t axis = number();
    if (!present || axis >= type.shape.rank) fail();
    return type.shape[static_cast<int>(axis)];
  }

  std::string_view formula_;
  std::string_view rest_;
  const OpArgs& args_;
  const Cost& cost_;
};

}  // namespace

std::int64_t value_of_formula(std::string_view formula, const OpArgs& args, const Cost& cost) {
  return Reader(formula, args, cost).whole();
}

}  // namespace trainscope::test
