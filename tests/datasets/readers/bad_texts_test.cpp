// Twenty bad files of each kind of sequences: text, bpe, jsonl with its tokenizer, tokens. Each is
// refused with one message that names the file and says what is wrong, exit code 3.
#include <doctest/doctest.h>

#include "tests/datasets/archive_tools.h"
#include "tests/datasets/bad_file.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

using namespace std::string_literals;
namespace fs = std::filesystem;

const fs::path kSamples = fs::path(TRAINSCOPE_SOURCE_DIR) / "datasets/samples";

// A model of `bound` ids and windows of 4.
DatasetOptions ids_below(std::int64_t bound) {
  DatasetOptions options = text_options(4);
  options.inputs[0].bound = bound;
  return options;
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("bad files: text") {
  const std::vector<BadFile> files = {
      {"", "is empty"},
      {"abc", "2 characters to train on"},
      {"abcd", "3 characters to train on"},
      {"aaaa\xff", "is not valid UTF-8"},
      {"\x80 begins within a character", "is not valid UTF-8"},
      {"overlong \xc0\xaf", "is not valid UTF-8"},
      {"overlong \xe0\x80\xaf in three bytes", "is not valid UTF-8"},
      {"overlong \xf0\x80\x80\xaf in four bytes", "is not valid UTF-8"},
      {"a surrogate \xed\xa0\x80", "is not valid UTF-8"},
      {"a surrogate pair \xed\xa0\x80\xed\xb0\x80", "is not valid UTF-8"},
      {"beyond U+10FFFF \xf4\x90\x80\x80", "is not valid UTF-8"},
      {"five bytes \xf8\x88\x80\x80\x80", "is not valid UTF-8"},
      {"six bytes \xfc\x84\x80\x80\x80\x80", "is not valid UTF-8"},
      {"cut \xe2\x82", "is not valid UTF-8"},
      {"cut \xf0\x9f\x98", "is not valid UTF-8"},
      {"cut \xc3", "is not valid UTF-8"},
      {"\xc3(\xc3) no second byte", "is not valid UTF-8"},
      {"\xfe\xff\0a\0b\0c\0d"s, "is not valid UTF-8"},
      {"\xff\xfe"
       "a\0b\0c\0d\0"s,
       "is not valid UTF-8"},
      {"latin-1: caf\xe9 au lait", "is not valid UTF-8"},
      {"\x1f\x8b\x08\0 a gzip file"s, "is not valid UTF-8"},
      {"\x89PNG\r\n\x1a\n an image", "is not valid UTF-8"},
      {"abcdefghijklmnopqrstuvwxyz", "26 distinct characters"},
  };
  check_bad_files("text", files, [](const BadPlace& place) {
    return opening_error(source("text", place.file), ids_below(20));
  });
}

TEST_CASE("bad files: bpe vocabularies and merges") {
  const std::string vocabulary = R"({"a":0,"b":1,"ab":2})";
  const std::string merges = "#version: 0.2\na b\n";
  // Of each row the vocabulary, a line of ten signs, the merges.
  const std::string between = "==========";
  const auto both = [&](const std::string& first, const std::string& second) {
    return first + between + second;
  };
  const std::vector<BadFile> files = {
      {both("", merges), "unexpected end of input"},
      {both("{", merges), "unexpected end of input"},
      {both("[]", merges), "expected an object"},
      {both("{}", merges), "has no symbols"},
      {both("7", merges), "expected an object"},
      {both(R"({"a":0,"b":2,"ab":1,"c":2})", merges), "'b' and 'c' both have the id 2"},
      {both(R"({"a":0,"b":3,"ab":2})", merges),
       "the id of 'b' is 3: 3 symbols have the ids 0 to 2"},
      {both(R"({"a":-1,"b":1,"ab":2})", merges),
       "the id of 'a' is -1: 3 symbols have the ids 0 to 2"},
      {both(R"({"a":0.5,"b":1,"ab":2})", merges), "the id of 'a' is a number: expected an integer"},
      {both(R"({"a":"0","b":1,"ab":2})", merges), "the id of 'a' is a string: expected an integer"},
      {both(R"({"a":null,"b":1,"ab":2})", merges), "the id of 'a' is null: expected an integer"},
      {both(R"({"a":18446744073709551615,"b":1,"ab":2})", merges),
       "the id of 'a' is a number: expected an integer"},
      {both(R"({"a":0,"a":1,"ab":2})", merges), "JSON, line 1, column 10: duplicate key 'a'"},
      {both(std::string(100000, '['), merges),
       "JSON, line 1, column 3: nested deeper than 2 levels"},
      {both(R"({"a b":0,"b":1,"ab":2})", merges), "line 2: 'a' is not in the vocabulary"},
      {both("{\"a\":0,\"b\":1,\"\xff\":2}", merges),
       "JSON, line 1, column 15: syntax error while parsing object key -"},
      {both(vocabulary, "a b c\n"), "line 1"},
      {both(vocabulary, "ab\n"), "line 1"},
      {both(vocabulary, "a c\n"), "line 1"},
      {both(vocabulary, "b a\n"), "line 1"},
      {both(vocabulary, "a b\na b\n"), "line 2"},
      {both(vocabulary, ""), "has no merges"},
      {both(vocabulary, " \n"), "line 1"},
      {both(vocabulary, "a  b\n"), "line 1"},
      {both(vocabulary, "\xff b\n"), "line 1"},
  };
  check_bad_files("vocab.json", files, [&](const BadPlace& place) {
    const std::string content = get(place.file);
    const std::size_t cut = content.find(between);
    put(place.folder / "vocab.json", content.substr(0, cut));
    put(place.folder / "merges.txt", content.substr(cut + between.size()));
    put(place.folder / "text.txt", "abababababababababab");
    return opening_error("bpe:" + (place.folder / "text.txt").string() + "," +
                             (place.folder / "vocab.json").string() + "," +
                             (place.folder / "merges.txt").string(),
                         ids_below(3));
  });
}

TEST_CASE("bad files: jsonl") {
  const std::string good = "{\"text\":\"the cat sees the dog\"}\n";
  const std::vector<BadFile> files = {
      {"", "is empty"},
      {"\n\n\r\n", "has 0 tokens to train on, a window of sequence 4 needs 5"},
      {good + "{\"text\":", "line 2: "},
      {good + "{\"text\":\"x\"", "line 2: "},
      {good + "{\"text\":\"x\"}}", "line 2: "},
      {good + "{\"text\":\"x\"} {\"text\":\"y\"}", "line 2: "},
      {good + "{\"text\":\"x\",}", "line 2: "},
      {good + "{'text':'x'}", "line 2: "},
      {good + "{text:\"x\"}", "line 2: "},
      {good + "{\"text\":\"x\n\"}", "line 2: "},
      {good + "{\"text\":\"\xff\"}", "line 2: "},
      {good + "{\"text\":\"\\ud800\"}", "line 2: "},
      {good + "{\"text\":\"\\u12\"}", "line 2: "},
      {good + "{\"text\":\"\\x41\"}", "line 2: "},
      {good + "[1]", "line 2: expected an object"},
      {good + "\"text\"", "line 2: expected an object"},
      {good + "null", "line 2: expected an object"},
      {good + "{}", "line 2: 'text' is missing"},
      {good + "{\"Text\":\"x\"}", "line 2: 'text' is missing"},
      {good + "{\"text\":1}", "line 2: 'text' is an integer"},
      {good + "{\"text\":null}", "line 2: 'text' is null"},
      {good + "{\"text\":[\"x\"]}", "line 2: 'text' is an array"},
      {good + std::string(5000, '['), "line 2: "},
      {good + "{\"text\":NaN}", "line 2: "},
      {"[" + good + "]", "line 1: "},
      {"\xff\xfe{\0}\0"s, "line 1: "},
  };
  check_bad_files("jsonl", files, [](const BadPlace& place) {
    return opening_error(source("jsonl", place.file, "," + (kSamples / "tokenizer.json").string()),
                         ids_below(1000));
  });
}

TEST_CASE("bad files: tokenizer.json") {
  const std::string good = get(fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/tokenizer/plain.json");
  const std::vector<BadFile> files = {
      {"", "JSON, line 1, column 1: syntax error while parsing value - unexpected"},
      {"{", "JSON, line 1, column 1: syntax error while parsing object key -"},
      {"[]", "has no object 'model'"},
      {"{}", "has no object 'model'"},
      {R"({"model":[]})", "has no object 'model'"},
      {R"({"model":{"type":"Unigram"}})", "of kind Unigram"},
      {R"({"model":{"type":"WordPiece"}})", "of kind WordPiece"},
      {R"({"model":{"type":"BPE"}})", "has no model.vocab"},
      {R"({"model":{"type":"BPE","vocab":{"a":0}}})", "has no model.merges"},
      {R"({"model":{"type":"BPE","vocab":{"a":0},"merges":[]}})", "has no pre_tokenizer"},
      {R"({"model":{"type":"BPE","end_of_word_suffix":"</w>"}})", "model.end_of_word_suffix"},
      {R"({"model":{"type":"BPE","byte_fallback":true}})", "has model.byte_fallback"},
      {R"({"model":{"type":"BPE","byte_fallback":"yes"}})", "expected true or false"},
      {R"({"model":{"type":"BPE","dropout":0.1}})", "drops merges at random"},
      {with(good, "\"normalizer\":null", "\"normalizer\": {\"type\": \"NFC\"}"),
       "has a normalizer (NFC)"},
      {with(good, "\"ByteLevel\"", "\"Whitespace\""), "pre_tokenizer Whitespace"},
      {with(good, "\"truncation\":null", "\"truncation\":{}"), "brings texts to a length"},
      {with(good, "\"added_tokens\":[", "\"added_tokens\":[1, "), "an added token without"},
      {with(good, "\"added_tokens\":[", "\"added_tokens\":[{\"id\": -1, \"content\": \"x\"}, "),
       "an added token without"},
      {with(good, "\"added_tokens\":[",
            "\"added_tokens\":[{\"id\": 99999999999, \"content\": \"x\"}, "),
       "an added token without"},
      {with(good, "\"added_tokens\":[", "\"added_tokens\":[{\"id\": 1, \"content\": \"\"}, "),
       "an added token without"},
      {good.substr(0, good.size() / 2),
       "JSON, line 1, column 2260: syntax error while parsing object -"},
      {std::string(200000, '{'), "JSON, line 1, column 2: syntax error while parsing object key -"},
  };
  check_bad_files("tokenizer.json", files, [](const BadPlace& place) {
    return opening_error(source("jsonl", kSamples / "lines.jsonl", "," + place.file.string()),
                         ids_below(1000));
  });
}

TEST_CASE("bad files: tokens") {
  const auto ids = [](const std::vector<std::uint16_t>& values) { return bytes_of(values); };
  const auto header = [](std::uint32_t magic, std::uint32_t version, std::uint32_t count) {
    std::string bytes = little(magic) + little(version) + little(count);
    bytes.resize(1024, '\0');
    return bytes;
  };
  const std::string five = ids({1, 2, 3, 4, 5});
  constexpr std::uint32_t kGpt2 = 20240520;
  constexpr std::uint32_t kLlama = 20240801;
  const std::vector<BadFile> files = {
      {"", "is empty"},
      {"x", "no whole number"},
      {"xyz", "no whole number"},
      {ids({1, 2, 3}) + "x", "no whole number"},
      {ids({1}), "has 1 tokens to train on, a window of sequence 4 needs 5"},
      {ids({1, 2}), "has 1 tokens to train on, a window of sequence 4 needs 5"},
      {ids({1, 2, 3, 4}), "has 3 tokens to train on, a window of sequence 4 needs 5"},
      {ids({1, 2, 3, 4, 5, 10, 1, 2}), "token 5 is 10: expected 0 to 9"},
      {ids({65535, 2, 3, 4, 5, 6, 7, 8}), "token 0 is 65535: expected 0 to 9"},
      {header(kGpt2, 1, 5), "its header counts 5 tokens of 2 bytes, 0 bytes follow"},
      {header(kGpt2, 1, 4) + five, "its header counts 4 tokens of 2 bytes, 10 bytes follow"},
      {header(kGpt2, 1, 6) + five, "its header counts 6 tokens of 2 bytes, 10 bytes follow"},
      {header(kGpt2, 1, 0), "has 0 tokens to train on, a window of sequence 4 needs 5"},
      {header(kGpt2, 1, 0xFFFFFFFF) + five,
       "its header counts -1 tokens of 2 bytes, 10 bytes follow"},
      {header(kGpt2, 2, 5) + five, "version"},
      {header(kGpt2, 0, 5) + five, "version"},
      {header(kGpt2, 1, 5).substr(0, 1000), "has 1000 bytes: llm.c's header has 1024"},
      {header(kGpt2, 1, 5).substr(0, 12), "has 12 bytes: llm.c's header has 1024"},
      {little(kGpt2), "has 4 bytes: llm.c's header has 1024"},
      {header(kGpt2, 1, 5) + five + "x", "11 bytes follow"},
      {header(kLlama, 7, 5) + five, "its header counts 5 tokens of 4 bytes, 10 bytes follow"},
      {header(kLlama, 7, 0x80000000U) + five,
       "its header counts -2147483648 tokens of 4 bytes, 10 bytes follow"},
      {header(kLlama, 7, 2) + little<std::uint32_t>(1) + little<std::uint32_t>(0x80000000U),
       "token 1 is 2147483648: expected 0 to 9"},
      {header(kGpt2, 1, 8) + ids({1, 2, 3, 4, 5, 6, 99, 8}), "token 6 is 99: expected 0 to 9"},
  };
  check_bad_files("tokens", files, [](const BadPlace& place) {
    return opening_error(source("tokens", place.file), ids_below(10));
  });
}

}  // namespace trainscope
