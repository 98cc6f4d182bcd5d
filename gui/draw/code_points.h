// UTF-8 one code point at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trainscope::gui {

inline constexpr char32_t kReplacement = 0xFFFD;  // for bytes that are not UTF-8

struct CodePoint {
  char32_t value = kReplacement;
  std::size_t bytes = 1;  // that it takes in the text
};

// Of a text that is not empty.
CodePoint first_code_point(std::string_view text);
void append_utf8(std::string& text, char32_t code_point);
// Bytes of the code point that ends at `end`, of a text whose first `end` bytes are not empty.
std::size_t bytes_before(std::string_view text, std::size_t end);

}  // namespace trainscope::gui
