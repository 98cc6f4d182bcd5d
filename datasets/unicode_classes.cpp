// Looks code points up in sorted ranges.
#include "datasets/unicode_classes.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace trainscope {
namespace {

using enum CharacterClass;

struct Range {
  CharacterClass kind;
  std::uint32_t first;
  std::uint32_t last;
};

// Letters in ascending order, then numbers in ascending order.
constexpr Range kRanges[] = {
#define RANGE(kind, first, last) {kind, first, last},
#include "datasets/unicode_ranges.def"
#undef RANGE
};

constexpr Range kWhitespaceRanges[] = {
    {kWhitespace, 0x9, 0xD},       {kWhitespace, 0x20, 0x20},     {kWhitespace, 0x85, 0x85},
    {kWhitespace, 0xA0, 0xA0},     {kWhitespace, 0x1680, 0x1680}, {kWhitespace, 0x2000, 0x200A},
    {kWhitespace, 0x2028, 0x2029}, {kWhitespace, 0x202F, 0x202F}, {kWhitespace, 0x205F, 0x205F},
    {kWhitespace, 0x3000, 0x3000},
};

constexpr const Range* kFirstNumber =
    std::find_if(std::begin(kRanges), std::end(kRanges),
                 [](const Range& range) { return range.kind == kNumber; });

bool is_in(const Range* begin, const Range* end, std::uint32_t code_point) {
  const Range* next = std::upper_bound(
      begin, end, code_point, [](std::uint32_t c, const Range& range) { return c < range.first; });
  return next != begin && code_point <= std::prev(next)->last;
}

CharacterClass look_up(std::uint32_t code_point) {
  if (is_in(std::begin(kRanges), kFirstNumber, code_point)) return kLetter;
  if (is_in(kFirstNumber, std::end(kRanges), code_point)) return kNumber;
  const bool white = is_in(std::begin(kWhitespaceRanges), std::end(kWhitespaceRanges), code_point);
  return white ? kWhitespace : kOther;
}

constexpr std::size_t kAscii = 128;

// Most text is ASCII.
std::array<CharacterClass, kAscii> ascii_classes() {
  std::array<CharacterClass, kAscii> classes{};
  for (std::uint32_t c = 0; c < kAscii; ++c) classes[c] = look_up(c);
  return classes;
}

}  // namespace

CharacterClass class_of(std::uint32_t code_point) {
  static const std::array<CharacterClass, kAscii> kClasses = ascii_classes();
  return code_point < kAscii ? kClasses[code_point] : look_up(code_point);
}

}  // namespace trainscope
