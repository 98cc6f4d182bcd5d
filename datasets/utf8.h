// UTF-8 as code points.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/core/error.h"

namespace trainscope {

inline constexpr std::uint32_t kCodePointEnd = 0x110000;

struct Character {
  std::uint32_t code_point = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// The character at the beginning of `text`, which is not empty. Refused as the Unicode standard
// does: overlong forms, surrogates, beyond U+10FFFF.
Character first_character(std::string_view text);

void append_utf8(std::string& out, std::uint32_t code_point);

// Calls visit(code point, byte offset) for each character. Throws kBadInput with the byte offset
// where the text is not UTF-8.
template <typename Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (std::size_t offset = 0; offset < text.size();) {
    const Character character = first_character(text.substr(offset));
    require(character.bytes > 0, ErrorCode::kBadInput, "byte {} (0x{:02x}) is not valid UTF-8",
            offset, static_cast<unsigned char>(text[offset]));
    visit(character.code_point, offset);
    offset += character.bytes;
  }
}

}  // namespace trainscope
