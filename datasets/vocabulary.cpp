// UTF-8 text to ids and back.
#include "datasets/vocabulary.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "datasets/utf8.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::size_t kMaxCharacters = std::size_t{1} << 16;
constexpr std::int32_t kUnknown = -1;

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
