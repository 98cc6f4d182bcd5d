// GPT-2's division of a text into pieces that byte pairs are merged in.
#pragma once

#include <cstddef>
#include <string_view>

namespace trainscope {

// The number of bytes of the first piece of `text`, which is not empty and valid UTF-8. This is
// what the first match of GPT-2's pattern takes:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// In words, the first rule that fits: a contraction in lower case; an optional space (U+0020) and a
// run of letters, or of numbers, or of others; white space, of which a run before other text
// leaves its last character to the next piece.
std::size_t first_piece(std::string_view text);

}  // namespace trainscope
