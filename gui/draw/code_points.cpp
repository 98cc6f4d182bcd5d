// Decodes and encodes UTF-8.
#include "gui/draw/code_points.h"

#include <algorithm>

namespace trainscope::gui {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {.value = lead, .bytes = 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size()) return {};
  char32_t value = lead & (0x7FU >> bytes);
  for (const char c : text.substr(1, bytes - 1)) {
    if (!continues(c)) return {};
    value = (value << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  const bool is_scalar = value <= 0x10FFFF && (value < 0xD800 || value > 0xDFFF);
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by bytes
  return is_scalar && value >= kLeast[bytes] ? CodePoint{.value = value, .bytes = bytes}
                                             : CodePoint{};
}

void append_utf8(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
    return;
  }
  const int bytes = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  constexpr unsigned char kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};  // by bytes
  for (int i = bytes - 1; i >= 0; --i) {
    const auto bits = static_cast<unsigned char>((c >> static_cast<unsigned>(6 * i)) & 0x3FU);
    const bool first = i == bytes - 1;
    text += static_cast<char>(first ? kLead[bytes] | bits : 0x80U | bits);
  }
}

std::size_t bytes_before(std::string_view text, std::size_t end) {
  std::size_t bytes = 1;
  while (bytes < std::min<std::size_t>(end, 4) && continues(text[end - bytes])) ++bytes;
  return bytes;
}

}  // namespace trainscope::gui
