// Filters: what they leave, and where their errors point.
#include "profiler/analysis/filter.h"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "engine/core/error.h"

namespace trainscope::profiler {
namespace {

constexpr std::array<FilterField, 3> kFields = {{{"op"}, {"phase"}, {"ms", true}}};

bool matches(std::string_view text, std::string_view op, double ms) {
  const std::array<FieldValue, 3> row = {{{.text = op}, {.text = "backward"}, {.number = ms}}};
  return Filter::parse(text, kFields).matches(row);
}

TEST_CASE("filter: comparisons, their joints, and which bind first") {
  CHECK(matches("op==MatMul && ms>0.1 && phase==backward", "MatMul", 0.2));
  CHECK(!matches("op==MatMul && ms>0.1 && phase==backward", "MatMul", 0.1));
  CHECK(!matches("op==MatMul && ms>0.1 && phase==backward", "Gelu", 0.2));
  CHECK(matches("op==Gelu || op==MatMul && ms<0.1", "Gelu", 5.0));  // && first
  CHECK(!matches("(op==Gelu || op==MatMul) && ms<0.1", "Gelu", 5.0));
  CHECK(matches("!(op==Gelu) && !ms<=1", "MatMul", 1.5));
  CHECK(matches("op!=Gelu", "MatMul", 0.0));
  CHECK(matches("ms>=1e-1&&ms<=0.1&&ms==0.1&&ms!=0.2", "x", 0.1));
  CHECK(matches("op==Mat*", "MatMul", 0.0));
  CHECK(matches("op==\"a b\" || op=='a b'", "a b", 0.0));
  CHECK(Filter().matches({}));
}

struct Fault {
  std::string text;
  std::string what;
  std::size_t place;
};

TEST_CASE("filter: an error points to its place in the text") {
  const Fault faults[] = {
      {"", "the filter: expected a field", 0},
      {"op==MatMul && ", "the filter: expected a field", 14},
      {"op==", "the filter: expected a value", 4},
      {"opp==MatMul", "the filter: there is no field 'opp'", 0},
      {"op>MatMul", "the filter: 'op' is a text: it takes == and !=", 2},
      {"op=MatMul", "the filter: expected == or !=", 2},
      {"ms>fast", "the filter: expected a number", 3},
      {"ms>", "the filter: expected a number", 3},
      {"ms 1", "the filter: expected ==, !=, <, <=, > or >=", 3},
      {"(ms>1", "the filter: expected )", 5},
      {"ms>1) && op==x", "the filter: expected && or ||, or the end", 4},
      {"ms>1 op==x", "the filter: expected && or ||, or the end", 5},
      {"op=='MatMul", "the filter: this quote has no end", 4},
  };
  for (const Fault& fault : faults) {
    try {
      Filter::parse(fault.text, kFields);
      FAIL_CHECK(fault.text);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kUsage);
      CHECK(error.message() == fault.what);
      REQUIRE(error.context().size() == 2);
      CHECK(error.context()[0] == fault.text);
      CHECK_MESSAGE(error.context()[1] == std::string(fault.place, ' ') + "^", fault.text);
    }
  }
}

TEST_CASE("filter: a stack of parentheses or of ! ends in an error, not in the stack") {
  for (const char c : {'(', '!'}) {
    CHECK_THROWS_AS(Filter::parse(std::string(100'000, c) + "ms>1", kFields), Error);
  }
}

}  // namespace
}  // namespace trainscope::profiler
