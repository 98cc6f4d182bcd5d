// The words and signs that a text of functions is made of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainscope {

enum class TokenKind : std::uint8_t {
  kName,    // Sigmoid, com.example.Swish, x
  kNumber,  // -1, 0.5, 1e-3
  kText,    // "both"
  kSign,    // < > ( ) { } [ ] , ; : = @ and =>
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text = {};  // of kText without its quotes
  int line = 0;           // from 1
  std::size_t begin = 0;  // in the text
  std::size_t end = 0;

  bool is(std::string_view sign) const { return kind == TokenKind::kSign && text == sign; }
};

// All of them and one kEnd. `name` is what messages call the text. Throws kBadInput for a sign that
// means nothing, and for a text in quotes that does not end in its line.
std::vector<Token> tokens_of(std::string_view text, std::string_view name, int first_line);

}  // namespace trainscope
