// UTF-8 text to ids and back.
#include "datasets/vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kMaxCharacters = std::size_t{1} << 16;
constexpr std::uint32_t kCodePointEnd = 0x110000;
constexpr std::int32_t kUnknown = -1;

struct Character {
  std::uint32_t code_point = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

constexpr unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// The character at the beginning of `text`, which is not empty. Refused as the Unicode standard
// does: overlong forms, surrogates, beyond U+10FFFF.
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

// Calls visit(code point, byte offset) for each character.
template <typename Visit>
void for_each_character(std::string_view text, Visit visit) {
  for (std::size_t offset = 0; offset < text.size();) {
    const Character character = first_character(text.substr(offset));
    require(character.bytes > 0, ErrorCode::kBadInput, "byte {} (0x{:02x}) is not valid UTF-8",
            offset, byte_at(text, offset));
    visit(character.code_point, offset);
    offset += character.bytes;
  }
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((c >> shift) & 0x3FU));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0U | (c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0U | (c >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0U | (c >> 18));
    tail(12), tail(6), tail(0);
  }
}

std::string character_text(std::uint32_t code_point) {
  std::string text;
  append_utf8(text, code_point);
  return fmt::format("'{}' (U+{:04X})", printable(text), code_point);
}

}  // namespace

Vocabulary Vocabulary::of(std::string_view text) {
  std::vector<bool> seen(kCodePointEnd);
  for_each_character(text, [&](std::uint32_t code_point, std::size_t) { seen[code_point] = true; });
  Vocabulary vocabulary;
  for (std::uint32_t code_point = 0; code_point < kCodePointEnd; ++code_point) {
    if (seen[code_point]) vocabulary.code_points_.push_back(code_point);
  }
  require(vocabulary.size() <= kMaxCharacters, ErrorCode::kBadInput,
          "{} distinct characters are more than the {} that a vocabulary can hold",
          vocabulary.size(), kMaxCharacters);
  return vocabulary;
}

Vocabulary Vocabulary::from_json(const Json& json) {
  require(json.is_string(), ErrorCode::kBadInput,
          "the vocabulary is {}: expected a string of its characters", name_of(json.type()));
  Vocabulary vocabulary;
  for_each_character(json.as_string(), [&](std::uint32_t code_point, std::size_t) {
    const auto& known = vocabulary.code_points_;
    require(known.empty() || known.back() < code_point, ErrorCode::kBadInput,
            "the vocabulary is not in ascending order at {}", character_text(code_point));
    vocabulary.code_points_.push_back(code_point);
  });
  require(vocabulary.size() > 0 && vocabulary.size() <= kMaxCharacters, ErrorCode::kBadInput,
          "the vocabulary has {} characters: expected 1 to {}", vocabulary.size(), kMaxCharacters);
  return vocabulary;
}

Json Vocabulary::to_json() const {
  std::string characters;
  for (const std::uint32_t code_point : code_points_) append_utf8(characters, code_point);
  return {std::move(characters)};
}

std::vector<std::uint16_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int32_t> id_of(code_points_.empty() ? 0 : code_points_.back() + 1, kUnknown);
  for (std::size_t id = 0; id < code_points_.size(); ++id) {
    id_of[code_points_[id]] = static_cast<std::int32_t>(id);
  }
  std::vector<std::uint16_t> ids;
  ids.reserve(text.size());
  for_each_character(text, [&](std::uint32_t code_point, std::size_t offset) {
    const std::int32_t id = code_point < id_of.size() ? id_of[code_point] : kUnknown;
    if (id == kUnknown) {
      throw Error(
          ErrorCode::kBadInput,
          fmt::format("the character {} at byte {} is not in the vocabulary of {} characters",
                      character_text(code_point), offset, size()))
          .hint("the model can read only characters of the text that it was trained on");
    }
    ids.push_back(static_cast<std::uint16_t>(id));
  });
  return ids;
}

std::string Vocabulary::decode(std::span<const std::int64_t> ids) const {
  std::string text;
  for (const std::int64_t id : ids) {
    CHECK_INVARIANT(id >= 0 && static_cast<std::size_t>(id) < size());
    append_utf8(text, code_points_[static_cast<std::size_t>(id)]);
  }
  return text;
}

}  // namespace trainscope
