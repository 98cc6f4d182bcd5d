// JSON lines as windows of ids: what ends a text, which member it is, and bad lines.
#include "datasets/readers/jsonl.h"

#include <doctest/doctest.h>

#include "datasets/tokenizer/tokenizer_json.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

const fs::path kTokenizer = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/tokenizer/plain.json";

struct Lines {
  TemporaryFolder folder;
  explicit Lines(std::string_view text) { put(folder / "a.jsonl", text); }

  std::string spec(std::string_view rest) const {
    return "jsonl:" + (folder / "a.jsonl").string() + "," + kTokenizer.string() + std::string(rest);
  }
  // The ids from the first on, of windows of 4 that validate.
  Ints ids(std::string_view rest, std::size_t count) const {
    const auto data = open_dataset(spec(std::string(rest) + ",validation=1"), text_options(4));
    Ints all;
    for (std::int64_t i = 0; i < data->examples(Split::kValidation); ++i) {
      const Ints window = ints_of(read_batch(*data, Split::kValidation, 0, {i}).tensors[0].second);
      all.insert(all.end(), window.begin(), window.end());
    }
    REQUIRE(all.size() >= count);
    all.resize(count);
    return all;
  }
  std::string problem(std::string_view rest = "") const {
    const Error error = opening_error(spec(rest), text_options(4));
    return std::string(error.message()) + " | " + std::string(error.hint());
  }
};

Ints encoded(std::string_view text) {
  Ints ids;
  BpeTokenizer::KnownPieces known;
  for (const std::uint32_t id : JsonTokenizer::read(kTokenizer.string()).encode(text, known)) {
    ids.push_back(id);
  }
  return ids;
}

Ints joined(const std::vector<Ints>& parts) {
  Ints all;
  for (const Ints& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

TEST_CASE("jsonl: each text is encoded and ended, empty lines do not count") {
  const Lines lines("{\"text\":\"the cat\"}\r\n\n{\"n\":1,\"text\":\"a dog sees.\"}\n");
  const Ints first = encoded("the cat");
  const Ints second = encoded("a dog sees.");
  const Ints whole = joined({first, {0}, second, {0}});
  CHECK(lines.ids("", whole.size() - 1) == Ints(whole.begin(), whole.end() - 1));
  const Ints other = joined({first, {330}, second});
  CHECK(lines.ids(",end=<|end|>", other.size()) == other);
  const Ints none = joined({first, second});
  CHECK(lines.ids(",end=none", none.size() - 1) == Ints(none.begin(), none.end() - 1));
  // A run goes on with the same end alone.
  const auto recorded = [&](std::string_view rest) {
    return open_dataset(lines.spec(rest), text_options(4))->description().at("end").dump();
  };
  CHECK(recorded("") == "0");
  CHECK(recorded(",end=<|endoftext|>") == "0");
  CHECK(recorded(",end=<|end|>") == "330");
  CHECK(recorded(",end=none") == "null");
}

TEST_CASE("jsonl: another member is the text") {
  const Lines lines(R"({"text":1,"body":"the cat sees the dog"})");
  const Ints expected = encoded("the cat sees the dog");
  CHECK(lines.ids(",field=body", expected.size()) == expected);
  CHECK(contains(lines.problem(), "line 1: 'text' is an integer | field=NAME"));
}

TEST_CASE("jsonl: bad lines, tokens and models") {
  const std::string good = "{\"text\":\"the cat sees the dog\"}\n";
  CHECK(contains(Lines(good + "{\"text\":").problem(), "a.jsonl' line 2: "));
  CHECK(contains(Lines(good + "[1]").problem(), "line 2: expected an object"));
  CHECK(contains(Lines(good + "{}").problem(), "line 2: 'text' is missing"));
  CHECK(contains(Lines(good).problem(",end=<pad>"), "no added token '<pad>' | end=none"));
  CHECK(contains(Lines("").problem(), "is empty"));
  DatasetOptions small = text_options(4);
  small.inputs[0].bound = 100;
  const Error error = opening_error(Lines(good).spec(""), small);
  CHECK(contains(error.message(), "has 331 tokens"));
}

}  // namespace trainscope
