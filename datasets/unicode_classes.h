// The classes of characters that GPT-2's pre-tokenizer tells apart.
#pragma once

#include <cstdint>

namespace trainscope {

enum class CharacterClass : std::uint8_t { kLetter, kNumber, kWhitespace, kOther };

// Letter: general category L. Number: N. Whitespace: the property White_Space. All by Unicode 14.
CharacterClass class_of(std::uint32_t code_point);

}  // namespace trainscope
