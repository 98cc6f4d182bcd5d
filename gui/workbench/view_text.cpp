// Percent-encoding of the characters that are asked for.
#include "gui/workbench/view_text.h"

#include <fmt/format.h>

#include <charconv>

namespace trainscope::gui {

std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '%' || special.find(c) != std::string_view::npos) {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char* digits = text.data() + i + 1;
    unsigned char code = 0;
    const bool is_escape = text[i] == '%' && i + 2 < text.size() &&
                           std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2;
    result += is_escape ? static_cast<char>(code) : text[i];
    if (is_escape) i += 2;
  }
  return result;
}

}  // namespace trainscope::gui
