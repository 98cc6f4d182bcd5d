// Tokenizers as Hugging Face's library writes them: tokenizer.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/bpe.h"

namespace trainscope {

// Of the kind byte-level BPE with GPT-2's pieces, as GPT-2, RoBERTa, GPT-NeoX and what is trained
// like them have it: model.type BPE; pre_tokenizer ByteLevel with use_regex, with or without
// add_prefix_space; no normalizer. Added tokens (<|endoftext|>) are found in the text before it is
// cut into pieces, at each place the longest. A post_processor is not looked at: nothing is put
// around a text. Anything else is refused by its name.
class JsonTokenizer {
 public:
  // Throws kIo, or kBadInput naming the file.
  static JsonTokenizer read(const std::string& file);

  std::size_t size() const { return size_; }  // ids are below it
  std::optional<std::uint32_t> added_token(std::string_view content) const;
  // Throws kBadInput: not UTF-8, a byte without a symbol, a token that takes in the spaces around
  // it.
  // `known` as in BpeTokenizer::encode.
  std::vector<std::uint32_t> encode(std::string_view text, BpeTokenizer::KnownPieces& known) const;

 private:
  struct AddedToken {
    std::string content;
    std::uint32_t id = 0;
    bool is_plain = true;  // matches as it is, without spaces or borders of words
  };

  explicit JsonTokenizer(BpeTokenizer bpe) : bpe_(std::move(bpe)) {}
  void encode_plain(std::string_view text, BpeTokenizer::KnownPieces& known,
                    std::vector<std::uint32_t>& ids) const;

  BpeTokenizer bpe_;
  std::vector<AddedToken> added_;  // longest first
  bool prefix_space_ = false;
  std::size_t size_ = 0;
};

}  // namespace trainscope
