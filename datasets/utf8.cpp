// Decoding and encoding of UTF-8.
#include "datasets/utf8.h"

namespace trainscope {
namespace {

constexpr unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

Character first_character(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return {.code_point = lead, .bytes = 1};
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  std::uint32_t code_point = lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80U) return {};
    code_point = (code_point << 6) | (byte_at(text, i) & 0x3FU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < kLeast[length] || surrogate || code_point >= kCodePointEnd) return {};
  return {.code_point = code_point, .bytes = length};
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((code_point >> shift) & 0x3FU));
  };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += static_cast<char>(0xC0U | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    out += static_cast<char>(0xE0U | (code_point >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0U | (code_point >> 18));
    tail(12), tail(6), tail(0);
  }
}

}  // namespace trainscope
