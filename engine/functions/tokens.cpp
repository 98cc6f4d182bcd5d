// Cuts a text into tokens; comments reach from # to the end of the line.
#include "engine/functions/tokens.h"

#include <cctype>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool begins_number(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.';
}
bool goes_on(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

class Cutter {
 public:
  Cutter(std::string_view text, std::string_view name, int first_line)
      : text_(text), name_(name), line_(first_line) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    do {
      skip_blanks();
      tokens.push_back(next());
    } while (tokens.back().kind != TokenKind::kEnd);
    return tokens;
  }

 private:
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }

  void skip_blanks() {
    bool comment = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        comment = false;
      } else if (c == '#') {
        comment = true;
      }
      if (!comment && std::isspace(static_cast<unsigned char>(c)) == 0) return;
    }
  }

  Token next() {
    Token token{.line = line_, .begin = at_};
    if (at_ == text_.size()) {
      token.end = at_;
      return token;
    }
    const char c = text_[at_];
    if (c == '"') {
      take_text(token);
    } else if (begins_name(c)) {
      token.kind = TokenKind::kName;
      while (goes_on(at(at_))) token.text += text_[at_++];
    } else if (begins_number(c)) {
      take_number(token);
    } else {
      take_sign(token);
    }
    token.end = at_;
    return token;
  }

  void take_text(Token& token) {
    token.kind = TokenKind::kText;
    for (++at_; at(at_) != '"'; ++at_) {
      const bool escaped = at(at_) == '\\';
      if (escaped) ++at_;
      require(at_ < text_.size() && text_[at_] != '\n', ErrorCode::kBadInput,
              "{}:{}: a text in quotes does not end in its line", name_, line_);
      token.text += text_[at_];
    }
    ++at_;
  }

  void take_number(Token& token) {
    token.kind = TokenKind::kNumber;
    token.text = text_[at_++];
    for (;; ++at_) {
      const char before = token.text.back();
      const bool exponent_sign =
          (at(at_) == '-' || at(at_) == '+') && (before == 'e' || before == 'E');
      if (!goes_on(at(at_)) && !exponent_sign) return;
      token.text += text_[at_];
    }
  }

  void take_sign(Token& token) {
    static constexpr std::string_view kSigns = "<>(){}[],;:=@";
    token.kind = TokenKind::kSign;
    require(kSigns.find(text_[at_]) != std::string_view::npos, ErrorCode::kBadInput,
            "{}:{}: '{}' means nothing here", name_, line_, printable(text_.substr(at_, 1)));
    token.text = text_[at_++];
    if (token.text == "=" && at(at_) == '>') token.text += text_[at_++];
  }

  std::string_view text_;
  std::string_view name_;
  std::size_t at_ = 0;
  int line_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view text, std::string_view name, int first_line) {
  return Cutter(text, name, first_line).run();
}

}  // namespace trainscope
