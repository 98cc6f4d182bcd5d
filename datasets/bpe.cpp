// Reads the files of a byte-level BPE and merges the pairs of texts.
#include "datasets/bpe.h"

#include <optional>
#include <queue>
#include <utility>

#include "datasets/pre_tokenizer.h"
#include "datasets/utf8.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;
constexpr std::int64_t kMaxSymbols = std::int64_t{1} << 24;
// Words that come again and again are merged once.
constexpr std::size_t kMaxKnownPieces = std::size_t{1} << 18;
constexpr std::size_t kMaxKnownBytes = 64;

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

// The character that stands for each byte in symbols.
constexpr std::array<std::uint32_t, 256> character_of_byte() {
  std::array<std::uint32_t, 256> characters{};
  std::uint32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    characters[byte] = is_printable(byte) ? byte : next++;
  }
  return characters;
}

constexpr std::array<std::uint32_t, 256> kCharacterOfByte = character_of_byte();
constexpr std::uint32_t kCharactersEnd = 0x100 + 68;  // 68 bytes are not printable

// Characters of a symbol that stand for bytes; none when one of them does not.
std::optional<std::string> symbol_bytes(std::string_view symbol) {
  static const std::vector<int> kByteOf = [] {
    std::vector<int> bytes(kCharactersEnd, -1);
    for (unsigned byte = 0; byte < 256; ++byte)
      bytes[kCharacterOfByte[byte]] = static_cast<int>(byte);
    return bytes;
  }();
  std::string bytes;
  bool known = true;
  for_each_character(symbol, [&](std::uint32_t character, std::size_t) {
    const int byte = character < kCharactersEnd ? kByteOf[character] : -1;
    known = known && byte >= 0;
    bytes += static_cast<char>(byte);
  });
  return known ? std::optional(bytes) : std::nullopt;
}

}  // namespace

std::string bpe_symbol_of_byte(unsigned byte) {
  std::string symbol;
  append_utf8(symbol, kCharacterOfByte[byte]);
  return symbol;
}

BpeTokenizer BpeTokenizer::read(const std::string& vocabulary_file,
                                const std::string& merges_file) {
  BpeTokenizer tokenizer;
  tokenizer.take_vocabulary(
      read_json_file(vocabulary_file, {.max_bytes = kMaxFileBytes, .max_depth = 2}),
      vocabulary_file);
  tokenizer.read_merges(merges_file);
  return tokenizer;
}

BpeTokenizer BpeTokenizer::from_json(const Json& vocabulary, const Json& merges,
                                     std::string_view name) {
  BpeTokenizer tokenizer;
  tokenizer.take_vocabulary(vocabulary, name);
  require(merges.is_array() && merges.size() > 0, ErrorCode::kBadInput, "'{}' has no merges",
          printable(name));
  std::vector<bool> made = tokenizer.bytes_made();
  std::size_t number = 0;
  for (const Json& merge : merges.as_array()) {
    ++number;
    try {
      if (merge.is_string()) {
        tokenizer.add_line(merge.as_string(), made);
        continue;
      }
      require(merge.is_array() && merge.size() == 2 && merge.as_array()[0].is_string() &&
                  merge.as_array()[1].is_string(),
              ErrorCode::kBadInput, "expected two symbols");
      tokenizer.add_merge(merge.as_array()[0].as_string(), merge.as_array()[1].as_string(), made);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("'{}' merge {}: {}", printable(name), number, error.message()))
          .hint(error.hint());
    }
  }
  return tokenizer;
}

void BpeTokenizer::take_vocabulary(const Json& json, std::string_view file) {
  const std::string name = printable(file);
  require(json.is_object(), ErrorCode::kBadInput,
          "'{}' is {}: expected an object from symbols to ids", name, name_of(json.type()));
  require(json.size() > 0, ErrorCode::kBadInput, "'{}' has no symbols", name);
  const auto size = static_cast<std::int64_t>(json.size());
  require(size <= kMaxSymbols, ErrorCode::kBadInput, "'{}' has {} symbols: at most {} can be read",
          name, size, kMaxSymbols);
  symbols_.resize(json.size());
  std::vector<bool> given(json.size(), false);
  for (const JsonMember& member : json.as_object()) {
    require(member.value.is_int(), ErrorCode::kBadInput,
            "'{}': the id of '{}' is {}: expected an integer", name, printable(member.key),
            name_of(member.value.type()));
    const std::int64_t id = member.value.as_int();
    require(id >= 0 && id < size, ErrorCode::kBadInput,
            "'{}': the id of '{}' is {}: {} symbols have the ids 0 to {}", name,
            printable(member.key), id, size, size - 1);
    const auto place = static_cast<std::size_t>(id);
    require(!given[place], ErrorCode::kBadInput, "'{}': '{}' and '{}' both have the id {}", name,
            printable(symbols_[place]), printable(member.key), id);
    given[place] = true;
    symbols_[place] = member.key;
  }
  for (std::uint32_t id = 0; id < symbols_.size(); ++id) id_of_.emplace(symbols_[id], id);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto found = id_of_.find(bpe_symbol_of_byte(byte));
    id_of_byte_[byte] = found == id_of_.end() ? -1 : std::int64_t{found->second};
  }
}

std::vector<bool> BpeTokenizer::bytes_made() const {
  std::vector<bool> made(symbols_.size(), false);
  for (const std::int64_t id : id_of_byte_) {
    if (id >= 0) made[static_cast<std::size_t>(id)] = true;
  }
  return made;
}

void BpeTokenizer::read_merges(const std::string& file) {
  const std::string text = read_file(file, kMaxFileBytes);
  std::vector<bool> made = bytes_made();
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    try {
      add_line(line, made);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("'{}' line {}: {}", printable(file), number, error.message()))
          .hint(error.hint());
    }
  }
  require(!merges_.empty(), ErrorCode::kBadInput, "'{}' has no merges", printable(file));
}

void BpeTokenizer::add_line(std::string_view line, std::vector<bool>& made) {
  const std::vector<std::string_view> words = split(line, ' ');
  require(words.size() == 2 && !words[0].empty() && !words[1].empty(), ErrorCode::kBadInput,
          "expected two symbols with a space between them, found '{}'", printable(line));
  add_merge(words[0], words[1], made);
}

void BpeTokenizer::add_merge(std::string_view first, std::string_view second,
                             std::vector<bool>& made) {
  const auto id = [&](std::string_view symbol) {
    const auto found = id_of_.find(symbol);
    if (found == id_of_.end()) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("'{}' is not in the vocabulary", printable(symbol)))
          .hint("take both files from the same tokenizer");
    }
    return found->second;
  };
  const std::uint32_t left = id(first);
  const std::uint32_t right = id(second);
  const std::uint32_t both = id(std::string(first) + std::string(second));
  for (const std::uint32_t piece : {left, right}) {
    require(made[piece], ErrorCode::kBadInput, "no earlier line makes '{}'",
            printable(symbols_[piece]));
  }
  made[both] = true;
  const Merge merge{.rank = static_cast<std::uint32_t>(merges_.size()), .id = both};
  const bool added = merges_.emplace(Pair{left} << 32 | right, merge).second;
  require(added, ErrorCode::kBadInput, "the pair '{} {}' is there twice", printable(first),
          printable(second));
}

const BpeTokenizer::Merge* BpeTokenizer::find_merge(std::uint32_t left, std::uint32_t right) const {
  const auto found = merges_.find(Pair{left} << 32 | right);
  return found == merges_.end() ? nullptr : &found->second;
}

// The symbols of a piece as a linked list, and the pairs that can be merged. Because a merge only
// uses what earlier lines make, taking the lowest rank, leftmost first, is the same as merging each
// pair everywhere before the next one; and a long piece costs n log n.
struct BpeTokenizer::Piece {
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Symbol {
    std::uint32_t id = 0;
    std::size_t previous = kNone;
    std::size_t next = kNone;
    bool gone = false;
  };
  struct Candidate {
    std::uint32_t rank = 0;
    std::size_t left = 0;
    std::uint32_t left_id = 0;
    std::uint32_t right_id = 0;
    // Lowest rank first, then leftmost: a priority queue puts the greatest on top.
    bool operator<(const Candidate& other) const {
      return std::pair(rank, left) > std::pair(other.rank, other.left);
    }
  };

  const BpeTokenizer& tokenizer;
  std::vector<Symbol> symbols;
  std::priority_queue<Candidate> candidates;

  void propose(std::size_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    const std::uint32_t left_id = symbols[left].id;
    const std::uint32_t right_id = symbols[symbols[left].next].id;
    const Merge* merge = tokenizer.find_merge(left_id, right_id);
    if (merge != nullptr) candidates.push({merge->rank, left, left_id, right_id});
  }

  // False for a pair that another merge has changed since.
  bool is_current(const Candidate& c) const {
    const Symbol& left = symbols[c.left];
    return !left.gone && left.id == c.left_id && left.next != kNone &&
           symbols[left.next].id == c.right_id;
  }

  void merge(const Candidate& c) {
    Symbol& left = symbols[c.left];
    Symbol& right = symbols[left.next];
    left.id = tokenizer.find_merge(c.left_id, c.right_id)->id;
    right.gone = true;
    left.next = right.next;
    if (left.next != kNone) symbols[left.next].previous = c.left;
    propose(left.previous);
    propose(c.left);
  }
};

void BpeTokenizer::encode_piece(std::string_view bytes, std::vector<std::uint32_t>& ids) const {
  Piece piece{.tokenizer = *this, .symbols = {}, .candidates = {}};
  piece.symbols.resize(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    require(id_of_byte_[byte] >= 0, ErrorCode::kBadInput,
            "the vocabulary has no symbol for the byte 0x{:02x}, which is in '{}'", byte,
            printable(bytes));
    piece.symbols[i] = {.id = static_cast<std::uint32_t>(id_of_byte_[byte]),
                        .previous = i == 0 ? Piece::kNone : i - 1,
                        .next = i + 1 == bytes.size() ? Piece::kNone : i + 1,
                        .gone = false};
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) piece.propose(i);
  while (!piece.candidates.empty()) {
    const Piece::Candidate best = piece.candidates.top();
    piece.candidates.pop();
    if (piece.is_current(best)) piece.merge(best);
  }
  for (std::size_t i = 0; i != Piece::kNone; i = piece.symbols[i].next) {
    ids.push_back(piece.symbols[i].id);
  }
}

std::vector<std::uint32_t> BpeTokenizer::encode(std::string_view text) const {
  KnownPieces known;
  std::vector<std::uint32_t> ids;
  encode(text, known, ids);
  return ids;
}

void BpeTokenizer::encode(std::string_view text, KnownPieces& known,
                          std::vector<std::uint32_t>& ids) const {
  for_each_character(text, [](std::uint32_t, std::size_t) {});  // throws unless it is UTF-8
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, first_piece(text));
    text.remove_prefix(piece.size());
    const auto found = known.find(piece);
    if (found != known.end()) {
      ids.insert(ids.end(), found->second.begin(), found->second.end());
      continue;
    }
    const std::size_t before = ids.size();
    encode_piece(piece, ids);
    if (known.size() < kMaxKnownPieces && piece.size() <= kMaxKnownBytes) {
      known.emplace(piece, std::vector<std::uint32_t>(
                               ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
    }
  }
}

std::string BpeTokenizer::decode(std::span<const std::uint32_t> ids) const {
  std::string text;
  for (const std::uint32_t id : ids) {
    CHECK_INVARIANT(id < symbols_.size());
    // A special token's name stands for itself.
    text += symbol_bytes(symbols_[id]).value_or(symbols_[id]);
  }
  return text;
}

}  // namespace trainscope
