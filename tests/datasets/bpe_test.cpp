// Byte-pair encoding: pieces and ids against independent ones, and files that are no vocabulary.
#include "datasets/bpe.h"

#include <doctest/doctest.h>

#include "datasets/make/make.h"
#include "datasets/pre_tokenizer.h"
#include "datasets/unicode_classes.h"
#include "engine/core/json.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

using Pieces = std::vector<std::string>;

fs::path sample(const char* name) {
  return fs::path(TRAINSCOPE_SOURCE_DIR) / "datasets/samples" / name;
}

Pieces pieces_of(std::string_view text) {
  Pieces pieces;
  while (!text.empty()) {
    pieces.emplace_back(text.substr(0, first_piece(text)));
    text.remove_prefix(pieces.back().size());
  }
  return pieces;
}

BpeTokenizer read(const TemporaryFolder& folder, std::string_view vocabulary,
                  std::string_view merges) {
  put(folder / "v.json", vocabulary);
  put(folder / "m.txt", merges);
  return BpeTokenizer::read((folder / "v.json").string(), (folder / "m.txt").string());
}

// Symbols a b c and what merges of them make.
constexpr const char* kSmall = R"({"a":0,"b":1,"c":2,"ab":3,"abc":4,"bc":5,"aa":6,"aaaa":7})";

using Ids = std::vector<std::uint32_t>;

Ids encode(const char* merges, std::string_view text) {
  const TemporaryFolder folder;
  return read(folder, kSmall, merges).encode(text);
}

}  // namespace

TEST_CASE("unicode classes: letters, numbers, white space, others") {
  using enum CharacterClass;
  for (const std::uint32_t c : {0x41, 0x7A, 0xAA, 0xE9, 0x416, 0x905, 0x65E5, 0x10348}) {
    CHECK(class_of(c) == kLetter);
  }
  for (const std::uint32_t c : {0x30, 0x39, 0xB2, 0xBD, 0x663, 0x2167, 0x1D7D9}) {
    CHECK(class_of(c) == kNumber);
  }
  for (const std::uint32_t c : {0x9, 0xD, 0x20, 0x85, 0xA0, 0x1680, 0x2009, 0x2028, 0x3000}) {
    CHECK(class_of(c) == kWhitespace);
  }
  for (const std::uint32_t c : {0x0, 0x1C, 0x21, 0x5F, 0x301, 0x200B, 0xFEFF, 0x1F642, 0x10FFFF}) {
    CHECK(class_of(c) == kOther);
  }
}

TEST_CASE("pre-tokenizer: the rules one by one") {
  CHECK(pieces_of("Hello world") == Pieces{"Hello", " world"});
  CHECK(pieces_of("it's we'll I'D") == Pieces{"it", "'s", " we", "'ll", " I", "'", "D"});
  CHECK(pieces_of("a1b22") == Pieces{"a", "1", "b", "22"});
  CHECK(pieces_of("x  y") == Pieces{"x", " ", " y"});
  CHECK(pieces_of("x \n y") == Pieces{"x", " \n", " y"});
  CHECK(pieces_of("x\n\ny") == Pieces{"x", "\n", "\n", "y"});
  CHECK(pieces_of("x   ") == Pieces{"x", "   "});
  CHECK(pieces_of(" ...a") == Pieces{" ...", "a"});
  CHECK(pieces_of("\t'sa") == Pieces{"\t", "'s", "a"});
}

TEST_CASE("pre-tokenizer: pieces of GPT-2's pattern by another program") {
  const Json cases = read_json_file(fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/bpe/pieces.json");
  CHECK(cases.size() == 150);
  for (const Json& row : cases.as_array()) {
    Pieces expected;
    std::string text;
    for (const Json& piece : row.as_array()) text += expected.emplace_back(piece.as_string());
    CHECK(pieces_of(text) == expected);
  }
}

TEST_CASE("bpe: merges in the order of the list") {
  CHECK(encode("a b\nab c\n", "abcab") == Ids{4, 3});
  CHECK(encode("b c\na b\n", "abcab") == Ids{0, 5, 3});
  CHECK(encode("#version: 0.2\r\na a\r\naa aa\r\n", "aaaaaaa") == Ids{7, 6, 0});
  CHECK(encode("a b\n", "") == Ids{});
  CHECK(encode("a b\n", "c") == Ids{2});
}

TEST_CASE("bpe: ids of the sample are those of another program, and decode to the text") {
  const BpeTokenizer tokenizer =
      BpeTokenizer::read(sample("vocab.json").string(), sample("merges.txt").string());
  const Json cases = read_json_file(fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/bpe/ids.json");
  CHECK(cases.size() >= 40);
  for (const Json& row : cases.as_array()) {
    const std::string text = row.get<std::string>("text");
    Ids expected;
    for (const Json& id : row.array_at("ids")) {
      expected.push_back(static_cast<std::uint32_t>(id.as_int()));
    }
    CHECK(tokenizer.encode(text) == expected);
    CHECK(tokenizer.decode(expected) == text);
  }
}

TEST_CASE("bpe: a long piece takes no long time") {
  const TemporaryFolder folder;
  const BpeTokenizer tokenizer = read(folder, kSmall, "a a\naa aa\n");
  CHECK(tokenizer.encode(std::string(1 << 18, 'a')).size() == (1 << 16));
}

TEST_CASE("bpe: windows of a text's tokens") {
  const TemporaryFolder folder;
  put(folder / "t", "abcabcaabc");
  put(folder / "v.json", kSmall);
  put(folder / "m.txt", "a b\nab c\n");
  const std::string spec = source("bpe", folder / "t") + "," + (folder / "v.json").string() + "," +
                           (folder / "m.txt").string() + ",validation=1";
  const auto data = open_dataset(spec, text_options(3));
  const Batch batch = read_batch(*data, Split::kValidation, 0, {0});  // abc abc a abc
  CHECK(ints_of(batch.tensors[0].second) == Ints{4, 4, 0});
  CHECK(ints_of(batch.tensors[1].second) == Ints{4, 0, 4});
  CHECK(data->description().get<int>("tokens") == 4);
  CHECK(data->description().get<int>("vocabulary_size") == 8);
}

TEST_CASE("bpe: vocabularies and merges that are none") {
  struct Row {
    const char* vocabulary;
    const char* merges;
    const char* message;
  };
  const Row rows[] = {
      {"", "a b", "JSON, line 1"},
      {"[1]", "a b", "expected an object from symbols to ids"},
      {"{}", "a b", "has no symbols"},
      {R"({"a":"0"})", "a b", "the id of 'a' is a string: expected an integer"},
      {R"({"a":0,"b":0})", "a b", "'a' and 'b' both have the id 0"},
      {R"({"a":0,"b":2})", "a b", "the id of 'b' is 2: 2 symbols have the ids 0 to 1"},
      {R"({"a":-1})", "a b", "the id of 'a' is -1"},
      {R"({"a":0,"a":1})", "a b", "duplicate key 'a'"},
      {R"({"a":{"b":{"c":0}}})", "a b", "nested deeper than 2 levels"},
      {kSmall, "", "has no merges"},
      {kSmall, "#version: 0.2\n", "has no merges"},
      {kSmall, "a b\nab\n", "line 2: expected two symbols with a space between them, found 'ab'"},
      {kSmall, "a b c\n", "line 1: expected two symbols"},
      {kSmall, "a  b\n", "line 1: expected two symbols"},
      {kSmall, "a b\na d\n", "line 2: 'd' is not in the vocabulary"},
      {kSmall, "b a\n", "line 1: 'ba' is not in the vocabulary"},
      {kSmall, "ab c\na b\n", "line 1: no earlier line makes 'ab'"},
      {kSmall, "a b\na b\n", "line 2: the pair 'a b' is there twice"},
      {kSmall, "a b\n#version: 1\n", "line 2: '#version:' is not in the vocabulary"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const Error error = error_of([&] { read(folder, row.vocabulary, row.merges); });
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
  }
}

TEST_CASE("bpe: texts and models that do not suit the vocabulary") {
  const TemporaryFolder folder;
  put(folder / "v.json", kSmall);
  put(folder / "m.txt", "a b\n");
  const std::string files =
      "," + (folder / "v.json").string() + "," + (folder / "m.txt").string() + ",validation=1";
  const auto error = [&](std::string_view text, std::int64_t bound) {
    put(folder / "t", text);
    DatasetOptions options = text_options(3);
    options.inputs[0].bound = bound;
    return opening_error(source("bpe", folder / "t", files), options);
  };
  const Error unknown = error("abdc", 8);
  CHECK(unknown.code() == ErrorCode::kBadInput);
  CHECK(contains(unknown.message(), "no symbol for the byte 0x64, which is in 'abdc'"));
  CHECK(contains(error("ab\xFF", 8).message(), "byte 2 (0xff) is not valid UTF-8"));
  CHECK(contains(error("", 8).message(), "is empty"));
  CHECK(contains(error("abc", 7).message(), "has 8 tokens, but 'ids' takes ids below 7"));
}

}  // namespace trainscope
