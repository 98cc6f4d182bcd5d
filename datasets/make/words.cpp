// Sentences by a small grammar, a byte-pair vocabulary made from them, and tokens by a rule.
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "datasets/bpe.h"
#include "datasets/make/make.h"
#include "datasets/pre_tokenizer.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/json.h"
#include "engine/core/text.h"
#include "engine/train/data.h"  // random numbers

namespace trainscope {
namespace {

constexpr std::int64_t kDefaultTokens = 64;
constexpr std::int64_t kDefaultMerges = 64;
constexpr std::int64_t kBytes = 256;

constexpr std::array kSubjects = {"the miller",  "a sailor", "my sister",    "the old dog",
                                  "our captain", "a child",  "the grey cat", "the baker"};
constexpr std::array kVerbs = {"sees", "finds", "carries", "follows", "paints", "hides"};
constexpr std::array kObjects = {"the river",   "a lantern", "two apples",   "the bread",
                                 "a blue boat", "the hill",  "an open door", "the moon"};
constexpr std::array kEndings = {".", ".", ".", "!", "?"};

template <std::size_t N>
const char* pick(const std::array<const char*, N>& words, std::uint32_t word) {
  return words[word % N];
}

// Pieces of a text as ids, with how often each comes.
using CountedPieces = std::vector<std::pair<std::vector<std::uint32_t>, std::int64_t>>;
using Pair = std::pair<std::uint32_t, std::uint32_t>;

CountedPieces count_pieces(std::string_view text,
                           const std::array<std::uint32_t, kBytes>& id_of_byte) {
  std::map<std::string_view, std::int64_t> counts;
  while (!text.empty()) {
    const std::size_t bytes = first_piece(text);
    ++counts[text.substr(0, bytes)];
    text.remove_prefix(bytes);
  }
  CountedPieces pieces;
  for (const auto& [piece, count] : counts) {
    std::vector<std::uint32_t> ids;
    for (const char c : piece) ids.push_back(id_of_byte[static_cast<unsigned char>(c)]);
    pieces.emplace_back(std::move(ids), count);
  }
  return pieces;
}

// The most frequent pair of neighbours, the smallest of equally frequent ones; a count of 0 when
// no piece has two symbols left.
std::pair<Pair, std::int64_t> best_pair(const CountedPieces& pieces) {
  std::map<Pair, std::int64_t> counts;
  for (const auto& [ids, count] : pieces) {
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) counts[{ids[i], ids[i + 1]}] += count;
  }
  std::pair<Pair, std::int64_t> best{};
  for (const auto& row : counts) {
    if (row.second > best.second) best = row;
  }
  return best;
}

void replace_pair(CountedPieces& pieces, const Pair& pair, std::uint32_t by) {
  for (auto& [ids, count] : pieces) {
    std::vector<std::uint32_t> merged;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool here = i + 1 < ids.size() && Pair{ids[i], ids[i + 1]} == pair;
      merged.push_back(here ? by : ids[i]);
      i += here ? 1 : 0;
    }
    ids = std::move(merged);
  }
}

struct BpeFiles {
  Json vocabulary = Json::object();
  std::string merges = "#version: 0.2\n";
};

// Merges the most frequent pair again and again, as byte-pair encoding is trained.
BpeFiles train_bpe(std::string_view text, std::int64_t merges) {
  BpeFiles files;
  std::vector<std::string> symbols;
  std::array<std::uint32_t, kBytes> id_of_byte{};
  for (unsigned byte = 0; byte < kBytes; ++byte) {
    id_of_byte[byte] = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back(bpe_symbol_of_byte(byte));
  }
  CountedPieces pieces = count_pieces(text, id_of_byte);
  for (std::int64_t i = 0; i < merges; ++i) {
    const auto [pair, count] = best_pair(pieces);
    if (count == 0) break;
    const auto id = static_cast<std::uint32_t>(symbols.size());
    const std::string left = symbols[pair.first];
    const std::string right = symbols[pair.second];
    files.merges += left + " " + right + "\n";
    // Another pair may already have made the same symbol.
    const auto known = std::ranges::find(symbols, left + right);
    replace_pair(pieces, pair, static_cast<std::uint32_t>(known - symbols.begin()));
    if (id == known - symbols.begin()) symbols.push_back(left + right);
  }
  for (std::size_t id = 0; id < symbols.size(); ++id) files.vocabulary.set(symbols[id], id);
  return files;
}

std::filesystem::path write(const MakeOptions& options, std::string_view name,
                            std::string_view content) {
  std::filesystem::path path = options.folder / name;
  write_file_atomic(path, content);
  return path;
}

}  // namespace

std::string made_text(std::int64_t lines, std::uint64_t seed) {
  std::string text;
  for (std::int64_t i = 0; i < lines; ++i) {
    const auto words = random_block(seed, kMakeStreams + 3, static_cast<std::uint64_t>(i));
    std::string line = pick(kSubjects, words[0]);
    line.front() = static_cast<char>(line.front() - 'a' + 'A');
    text += fmt::format("{} {} {}{}\n", line, pick(kVerbs, words[1]), pick(kObjects, words[2]),
                        pick(kEndings, words[3]));
  }
  return text;
}

MadeData make_text(const MakeOptions& options) {
  MadeData made;
  made.files = {write(options, "text.txt", made_text(options.examples, options.seed))};
  made.source = "text:" + made.files[0].string();
  return made;
}

MadeData make_bpe(const MakeOptions& options) {
  const std::int64_t wanted =
      options.vocabulary == 0 ? kBytes + kDefaultMerges : options.vocabulary;
  require(wanted > kBytes && wanted <= 65536, ErrorCode::kUsage,
          "--vocab {}: a byte-pair vocabulary has 257 to 65536 tokens", wanted);
  const std::string text = made_text(options.examples, options.seed);
  const BpeFiles files = train_bpe(text, wanted - kBytes);
  MadeData made;
  made.files = {write(options, "text.txt", text),
                write(options, "vocab.json", files.vocabulary.dump() + "\n"),
                write(options, "merges.txt", files.merges)};
  made.source = fmt::format("bpe:{},{},{}", made.files[0].string(), made.files[1].string(),
                            made.files[2].string());
  return made;
}

// Four of five tokens follow from the one before them, so there is something to learn and an end
// to it.
MadeData make_tokens(const MakeOptions& options) {
  const std::int64_t vocabulary = options.vocabulary == 0 ? kDefaultTokens : options.vocabulary;
  require(vocabulary >= 2 && vocabulary <= 65536, ErrorCode::kUsage,
          "--vocab {}: 16-bit tokens have a vocabulary of 2 to 65536", vocabulary);
  const auto size = static_cast<std::uint64_t>(vocabulary);
  std::string bytes;
  std::uint64_t token = 0;
  for (std::int64_t i = 0; i < options.examples; ++i) {
    const auto words = random_block(options.seed, kMakeStreams + 4, static_cast<std::uint64_t>(i));
    const bool by_rule = words[0] % 5 != 0;
    token = by_rule ? (3 * token + 1) % size : words[1] % size;
    bytes += static_cast<char>(token & 0xFF);
    bytes += static_cast<char>(token >> 8);
  }
  MadeData made;
  made.files = {write(options, "tokens.bin", bytes)};
  made.source = "tokens:" + made.files[0].string();
  return made;
}

}  // namespace trainscope
