// GPT-2's pattern as code.
#include "datasets/pre_tokenizer.h"

#include "datasets/unicode_classes.h"
#include "datasets/utf8.h"

namespace trainscope {
namespace {

constexpr std::string_view kContractions[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};

CharacterClass first_class(std::string_view text) {
  return class_of(first_character(text).code_point);
}

// A run of characters of one class.
struct CharacterRun {
  std::size_t bytes = 0;
  std::size_t last_bytes = 0;  // of its last character
};

CharacterRun run_of(CharacterClass kind, std::string_view text) {
  CharacterRun run;
  while (run.bytes < text.size()) {
    const Character next = first_character(text.substr(run.bytes));
    CHECK_INVARIANT(next.bytes > 0);
    if (class_of(next.code_point) != kind) break;
    run.bytes += next.bytes;
    run.last_bytes = next.bytes;
  }
  return run;
}

}  // namespace

std::size_t first_piece(std::string_view text) {
  for (const std::string_view contraction : kContractions) {
    if (text.starts_with(contraction)) return contraction.size();
  }
  const std::size_t space = text.front() == ' ' && text.size() > 1 ? 1 : 0;
  const CharacterClass kind = first_class(text.substr(space));
  if (kind != CharacterClass::kWhitespace) {
    return space + run_of(kind, text.substr(space)).bytes;
  }
  const CharacterRun white = run_of(CharacterClass::kWhitespace, text);
  const bool whole = white.bytes == text.size() || white.bytes == white.last_bytes;
  return whole ? white.bytes : white.bytes - white.last_bytes;
}

}  // namespace trainscope
