// Byte-level byte-pair encoding with given vocabulary files (GPT-2's format).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/core/json.h"

namespace trainscope {

// How symbols of a vocabulary write a byte, as UTF-8: see BpeTokenizer.
std::string bpe_symbol_of_byte(unsigned byte);

// The text is cut into pieces (pre_tokenizer.h). A piece begins as one symbol for each of its UTF-8
// bytes; then the pair of neighbours that stands first in the list of merges becomes one symbol,
// everywhere in the piece from left to right, until no pair is in the list. Special tokens such as
// <|endoftext|> are not looked for: their characters are text.
//
// VOCAB.json is an object from symbol to id, ids 0 to n-1 each once. In symbols each byte is one
// character: printable bytes (0x21-0x7E, 0xA1-0xAC, 0xAE-0xFF) as themselves, the others in
// ascending order as U+0100, U+0101 ... (so a space is U+0120). MERGES.txt may begin with a line
// "#version..."; then each line has two symbols with a space between them, which and whose
// concatenation are in the vocabulary. Each symbol of several bytes is made by an earlier line.
class BpeTokenizer {
 public:
  BpeTokenizer(const BpeTokenizer&) = delete;  // id_of_ looks into symbols_
  BpeTokenizer& operator=(const BpeTokenizer&) = delete;
  BpeTokenizer(BpeTokenizer&&) = default;
  BpeTokenizer& operator=(BpeTokenizer&&) = default;
  // Throws kIo, or kBadInput naming file and line.
  static BpeTokenizer read(const std::string& vocabulary_file, const std::string& merges_file);
  // The same as parts of the JSON file `name`: merges are strings "a b" or arrays ["a","b"].
  static BpeTokenizer from_json(const Json& vocabulary, const Json& merges, std::string_view name);

  struct PieceHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view piece) const {
      return std::hash<std::string_view>{}(piece);
    }
  };
  using KnownPieces =
      std::unordered_map<std::string, std::vector<std::uint32_t>, PieceHash, std::equal_to<>>;

  std::size_t size() const { return symbols_.size(); }
  // Throws kBadInput: not UTF-8, or a byte without a symbol.
  std::vector<std::uint32_t> encode(std::string_view text) const;
  // Adds the ids; `known` has those of pieces that came before, also in other texts.
  void encode(std::string_view text, KnownPieces& known, std::vector<std::uint32_t>& ids) const;
  // The bytes of the ids, which must be below size(); a text only when they are whole characters.
  std::string decode(std::span<const std::uint32_t> ids) const;

 private:
  struct Merge {
    std::uint32_t rank = 0;  // a lower one goes first
    std::uint32_t id = 0;    // of both together
  };
  using Pair = std::uint64_t;  // ids of left << 32 | right
  struct Piece;

  BpeTokenizer() = default;
  void take_vocabulary(const Json& json, std::string_view name);
  void read_merges(const std::string& file);
  std::vector<bool> bytes_made() const;  // of each symbol whether it is a byte's
  void add_line(std::string_view line, std::vector<bool>& made);
  void add_merge(std::string_view first, std::string_view second, std::vector<bool>& made);
  void encode_piece(std::string_view bytes, std::vector<std::uint32_t>& ids) const;
  const Merge* find_merge(std::uint32_t left, std::uint32_t right) const;

  std::vector<std::string> symbols_;                           // by id, as the file writes them
  std::unordered_map<std::string_view, std::uint32_t> id_of_;  // looks into symbols_
  std::array<std::int64_t, 256> id_of_byte_{};                 // -1: none
  std::unordered_map<Pair, Merge> merges_;
};

}  // namespace trainscope
