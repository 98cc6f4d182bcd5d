// Strings that were drawn, taken apart again, and the units that command lines print numbers in.
#pragma once

#include <optional>
#include <string_view>

namespace trainscope::gui::test {

// Of a unit: how many of the one that its kind is counted in ("s", "B", "FLOP/s"; "share" of 1;
// empty: it has none).
struct NumberUnit {
  std::string_view name = {};
  double size = 1.0;
  std::string_view counted_in = {};
};

struct DrawnNumber {
  NumberUnit unit = {};
  double value = 0.0;       // in what the unit is counted in
  double half_digit = 0.0;  // of the last one that was drawn, likewise
};
// "1.5 MiB", "12 345", "+3", "-1.977e+31"; none for what is no number.
std::optional<DrawnNumber> drawn_number(std::string_view text);

// Of a number that is printed there, by the names in its JSON pointer: nanoseconds of "/rows/3/ns".
NumberUnit unit_of_fact(std::string_view pointer);

// Whether a number with a unit is part of the text: "a step of 12.3 ms".
bool says_quantity(std::string_view text);

}  // namespace trainscope::gui::test
