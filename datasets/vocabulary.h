// The characters of a text as ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/core/json.h"

namespace trainscope {

// Distinct Unicode code points in ascending order; an id is a position in that order. At most
// 65,536: ids fit 16 bits.
class Vocabulary {
 public:
  Vocabulary() = default;
  // The characters of a text. Throws kBadInput with the byte offset where it is not UTF-8, and when
  // there are too many.
  static Vocabulary of(std::string_view text);
  // From the list that to_json gave. Throws kBadInput.
  static Vocabulary from_json(const Json& json);
  // One string of all characters in the order of their ids.
  Json to_json() const;

  std::size_t size() const { return code_points_.size(); }
  // Throws kBadInput: not UTF-8, or a character that is not in the vocabulary, naming it and its
  // byte offset.
  std::vector<std::uint16_t> encode(std::string_view text) const;
  // Ids must be below size().
  std::string decode(std::span<const std::int64_t> ids) const;

 private:
  std::vector<std::uint32_t> code_points_;
};

}  // namespace trainscope
