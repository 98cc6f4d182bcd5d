// tokenizer.json beside Hugging Face's tokenizers, and what of it is refused.
#include "datasets/tokenizer/tokenizer_json.h"

#include <doctest/doctest.h>

#include "engine/core/json.h"
#include "tests/engine/core/core_test_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/tokenizer";

// What is said of the file after one of its parts became another.
std::string refusal(const TemporaryFolder& folder, std::string_view part, std::string_view other) {
  std::string text = get(kFolder / "plain.json");
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  put(folder / "t.json", text.replace(at, part.size(), other));
  const Error error = error_of([&] { JsonTokenizer::read((folder / "t.json").string()); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "t.json'"));
  return std::string(error.message());
}

}  // namespace

TEST_CASE("tokenizer.json: ids are those of Hugging Face's library") {
  const Json expected = read_json_file(kFolder / "expected.json");
  for (const char* name : {"plain", "prefix"}) {
    const JsonTokenizer tokenizer =
        JsonTokenizer::read((kFolder / (std::string(name) + ".json")).string());
    CHECK(tokenizer.size() == 331);
    CHECK(tokenizer.added_token("<|end|>") == 330);
    CHECK_FALSE(tokenizer.added_token("<|pad|>").has_value());
    BpeTokenizer::KnownPieces known;
    for (const Json& each : expected.at(name).as_array()) {
      const std::string& text = each.at("text").as_string();
      CAPTURE(text);
      Json ids = Json::list(tokenizer.encode(text, known));
      CHECK(ids.dump() == each.at("ids").dump());
    }
  }
}

TEST_CASE("tokenizer.json: what is read otherwise is refused by its name") {
  const TemporaryFolder folder;
  const auto has = [&](std::string_view part, std::string_view other, std::string_view said) {
    CHECK(contains(refusal(folder, part, other), said));
  };
  has(R"("type":"BPE")", R"("type":"Unigram")", "of kind Unigram");
  has(R"("normalizer":null)", R"("normalizer":{"type":"NFC"})", "normalizer (NFC)");
  has(R"("pre_tokenizer":{"type":"ByteLevel")", R"("pre_tokenizer":{"type":"Metaspace")",
      "pre_tokenizer Metaspace");
  has(R"("pre_tokenizer":{)", R"("pre_tokenizer":null,"other":{)", "no pre_tokenizer");
  has(R"("use_regex":true)", R"("use_regex":false)", "pre_tokenizer ByteLevel");
  has(R"("end_of_word_suffix":null)", R"("end_of_word_suffix":"</w>")", "model.end_of_word_suffix");
  has(R"("byte_fallback":false)", R"("byte_fallback":true)", "model.byte_fallback");
  has(R"("vocab":{)", R"("words":{)", "no model.vocab");
  has(R"("merges":[)", R"("merges":[["a","q"],)", "merge 1: 'aq' is not in the vocabulary");
  has(R"("merges":[)", R"("merges":[["a"],)", "merge 1: expected two symbols");
  has(R"({"id":330,)", R"({"id":-1,)", "added token without an id");
  has(R"("model":{)", R"("model":[],"was":{)", "no object 'model'");
  has(R"("dropout":null)", R"("dropout":0.1)", "model.dropout");
  has(R"("truncation":null)", R"("truncation":{"max_length":8})", "to a length (truncation)");
  has(R"("padding":null)", R"("padding":{"pad_id":0})", "to a length (padding)");
}

TEST_CASE("tokenizer.json: a token that takes in spaces is refused where a text holds it") {
  const TemporaryFolder folder;
  std::string text = get(kFolder / "plain.json");
  const std::string_view part = R"("content":"<|end|>","single_word":false,"lstrip":false)";
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  put(folder / "t.json",
      text.replace(at, part.size(), R"("content":"<|end|>","single_word":false,"lstrip":true)"));
  const JsonTokenizer tokenizer = JsonTokenizer::read((folder / "t.json").string());
  BpeTokenizer::KnownPieces known;
  CHECK(tokenizer.encode("a<|endoftext|>", known).back() == 0);
  const Error error = error_of([&] { tokenizer.encode("a <|end|>", known); });
  CHECK(contains(error.message(), "'<|end|>', which takes in the spaces"));
}

}  // namespace trainscope
