// A place in a text of functions, and the values of attributes there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/functions/tokens.h"
#include "engine/ir/attributes.h"

namespace trainscope {

// Reads token by token. Whatever is not there as expected is kBadInput, "NAME:LINE: ...".
class Cursor {
 public:
  Cursor(std::vector<Token> tokens, std::string name)
      : tokens_(std::move(tokens)), name_(std::move(name)) {}

  bool at_end() const { return peek().kind == TokenKind::kEnd; }
  const Token& peek() const { return tokens_[at_]; }
  int line() const { return peek().line; }
  Token take();

  // Whether the sign is next; then it is passed.
  bool skip(std::string_view sign);
  // `what` is what the message expects.
  Token sign(std::string_view sign);
  std::string name(std::string_view what);
  std::string text(std::string_view what);
  std::int64_t integer(std::string_view what, std::int64_t least, std::int64_t most);

  [[noreturn]] void fail(std::string_view message) const;
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  std::vector<Token> tokens_;  // the last one is kEnd, and is never passed
  std::string name_;
  std::size_t at_ = 0;
};

// A number, a text, a list of numbers, or a tensor: 1, 0.5, "both", [1, 2], float {0.5},
// int64[2] {3, 4}. `type` is what stands before it, "" for nothing: int, float, string, ints,
// floats, tensor.
Attribute literal(Cursor& cursor, std::string_view type);

}  // namespace trainscope
