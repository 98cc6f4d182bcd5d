// Reads tokenizer.json and encodes texts with it.
#include "datasets/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

// An added token with one of these takes in what is around it.
constexpr std::string_view kWithSpaces[] = {"lstrip", "rstrip", "single_word"};

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;

[[noreturn]] void refuse(std::string_view file, std::string_view what) {
  throw Error(ErrorCode::kBadInput, fmt::format("'{}' {}", printable(file), what))
      .hint(
          "byte-level BPE with GPT-2's pieces is read; other tokenizers: write their ids to a file "
          "and take tokens:FILE");
}

// The member, or nothing where it is missing or null.
const Json* present(const Json& object, std::string_view key) {
  const Json* found = object.find(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string type_of(const Json& part) {
  return part.is_object() ? printable(part.get_or<std::string>("type", "?"), 60) : "?";
}

bool is_true(const Json& object, std::string_view key, std::string_view file,
             bool otherwise = false) {
  const Json* found = present(object, key);
  if (found == nullptr) return otherwise;
  require(found->is_bool(), ErrorCode::kBadInput, "'{}': '{}' is {}: expected true or false",
          printable(file), key, name_of(found->type()));
  return found->as_bool();
}

const Json& checked_model(const Json& json, std::string_view file) {
  const Json* model = json.is_object() ? present(json, "model") : nullptr;
  if (model == nullptr || !model->is_object()) refuse(file, "has no object 'model'");
  const std::string type = model->get_or<std::string>("type", "BPE");
  if (type != "BPE") refuse(file, fmt::format("is a tokenizer of kind {}", printable(type, 60)));
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* affix = present(*model, key);
    const bool is_empty = affix == nullptr || (affix->is_string() && affix->as_string().empty());
    if (!is_empty) refuse(file, fmt::format("marks words with model.{}", key));
  }
  for (const std::string_view key : {"byte_fallback", "ignore_merges"}) {
    if (is_true(*model, key, file)) refuse(file, fmt::format("has model.{}", key));
  }
  const Json* dropout = present(*model, "dropout");
  if (dropout != nullptr && !(dropout->is_number() && dropout->as_number() == 0.0)) {
    refuse(file, "drops merges at random (model.dropout)");
  }
  for (const std::string_view key : {"vocab", "merges"}) {
    if (present(*model, key) == nullptr) refuse(file, fmt::format("has no model.{}", key));
  }
  return *model;
}

// Whether a space goes before a text that has none.
bool checked_pieces(const Json& json, std::string_view file) {
  if (const Json* normalizer = present(json, "normalizer")) {
    refuse(file, fmt::format("has a normalizer ({})", type_of(*normalizer)));
  }
  for (const std::string_view key : {"truncation", "padding"}) {
    if (present(json, key) != nullptr)
      refuse(file, fmt::format("brings texts to a length ({})", key));
  }
  const Json* pieces = present(json, "pre_tokenizer");
  if (pieces == nullptr) refuse(file, "has no pre_tokenizer");
  if (type_of(*pieces) != "ByteLevel" || !is_true(*pieces, "use_regex", file, true)) {
    refuse(file, fmt::format("cuts texts with the pre_tokenizer {}", type_of(*pieces)));
  }
  return is_true(*pieces, "add_prefix_space", file, true);
}

}  // namespace

JsonTokenizer JsonTokenizer::read(const std::string& file) {
  const Json json = read_json_file(file, {.max_bytes = kMaxFileBytes, .max_depth = 32});
  const Json& model = checked_model(json, file);
  const bool prefix_space = checked_pieces(json, file);
  JsonTokenizer tokenizer(BpeTokenizer::from_json(model.at("vocab"), model.at("merges"), file));
  tokenizer.prefix_space_ = prefix_space;
  tokenizer.size_ = tokenizer.bpe_.size();
  const Json* added = present(json, "added_tokens");
  if (added == nullptr) return tokenizer;
  if (!added->is_array()) refuse(file, "has added_tokens that are no list");
  for (const Json& token : added->as_array()) {
    const Json* id = token.is_object() ? present(token, "id") : nullptr;
    const Json* content = token.is_object() ? present(token, "content") : nullptr;
    const bool is_whole = id != nullptr && id->is_int() && id->as_int() >= 0 &&
                          id->as_int() < (std::int64_t{1} << 24) && content != nullptr &&
                          content->is_string() && !content->as_string().empty();
    if (!is_whole) refuse(file, "has an added token without an id or content");
    const bool is_plain =
        std::ranges::none_of(kWithSpaces, [&](auto key) { return is_true(token, key, file); });
    tokenizer.added_.push_back({.content = content->as_string(),
                                .id = static_cast<std::uint32_t>(id->as_int()),
                                .is_plain = is_plain});
    tokenizer.size_ = std::max(tokenizer.size_, static_cast<std::size_t>(id->as_int()) + 1);
  }
  std::ranges::stable_sort(tokenizer.added_, std::ranges::greater(),
                           [](const AddedToken& token) { return token.content.size(); });
  return tokenizer;
}

std::optional<std::uint32_t> JsonTokenizer::added_token(std::string_view content) const {
  const auto found = std::ranges::find(added_, content, &AddedToken::content);
  return found == added_.end() ? std::nullopt : std::optional(found->id);
}

void JsonTokenizer::encode_plain(std::string_view text, BpeTokenizer::KnownPieces& known,
                                 std::vector<std::uint32_t>& ids) const {
  if (text.empty()) return;
  if (prefix_space_ && text.front() != ' ') {
    bpe_.encode(" " + std::string(text), known, ids);
  } else {
    bpe_.encode(text, known, ids);
  }
}

std::vector<std::uint32_t> JsonTokenizer::encode(std::string_view text,
                                                 BpeTokenizer::KnownPieces& known) const {
  std::vector<std::uint32_t> ids;
  std::vector<std::size_t> next;  // place of each added token from `begin` on
  for (const AddedToken& token : added_) next.push_back(text.find(token.content));
  for (std::size_t begin = 0;;) {
    // The first one, of those at the same place the longest: that stands first.
    const auto first = std::ranges::min_element(next);
    const bool found = first != next.end() && *first != std::string_view::npos;
    const std::size_t place = found ? *first : text.size();
    encode_plain(text.substr(begin, place - begin), known, ids);
    if (!found) return ids;
    const AddedToken& token = added_[static_cast<std::size_t>(first - next.begin())];
    require(token.is_plain, ErrorCode::kBadInput,
            "the text holds '{}', which takes in the spaces around it",
            printable(token.content, 60));
    ids.push_back(token.id);
    begin = place + token.content.size();
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (next[i] < begin) next[i] = text.find(added_[i].content, begin);
    }
  }
}

}  // namespace trainscope
