// Made-up sets: the same bytes for the same seed, readable by the readers, something to learn.
#include "datasets/make/make.h"

#include <doctest/doctest.h>

#include <set>

#include "datasets/bpe.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

DatasetOptions options_for(std::string_view kind) {
  if (kind == "mnist") return digit_options();
  if (kind == "csv" || kind == "tensors") return flower_options();
  return text_options(16);
}

std::string all_bytes(const MadeData& made) {
  std::string bytes;
  for (const auto& file : made.files) bytes += get(file);
  return bytes;
}

}  // namespace

TEST_CASE("make: every kind is read by its reader, and the seed decides every byte") {
  for (const MakerRow& row : makers()) {
    CAPTURE(row.name);
    const TemporaryFolder a;
    const TemporaryFolder b;
    const TemporaryFolder c;
    const std::int64_t few = row.name == "tokens" ? 500 : 40;
    const MadeData made = make_data(row.name, {.folder = a.path(), .examples = few});
    CHECK(all_bytes(made) ==
          all_bytes(make_data(row.name, {.folder = b / "new/folder", .examples = few})));
    CHECK(all_bytes(made) !=
          all_bytes(make_data(row.name, {.folder = c.path(), .examples = few, .seed = 1})));
    const auto data = open_dataset(made.source, options_for(row.name));
    CHECK(data->examples(Split::kTrain) > 0);
    CHECK(data->examples(Split::kValidation) > 0);
  }
}

TEST_CASE("make: digits of ten classes, dark on light, also to test on") {
  const TemporaryFolder folder;
  const MadeData made = make_data("mnist", {.folder = folder.path(), .examples = 100});
  REQUIRE(made.files.size() == 4);
  const auto data = open_dataset(made.source + ",validation=0", digit_options());
  std::set<std::int64_t> classes;
  for (std::int64_t i = 0; i < 100; ++i) {
    const Batch batch = read_batch(*data, Split::kTrain, 0, {i});
    classes.insert(ints_of(batch.tensors[1].second)[0]);
    float sum = 0.0F;
    for (const float value : batch.tensors[0].second.values<float>()) sum += value;
    CHECK(sum > 20.0F);   // there is ink
    CHECK(sum < 250.0F);  // and paper
  }
  CHECK(classes.size() == 10);
  const auto test =
      open_dataset("idx:" + made.files[2].string() + "," + made.files[3].string() + ",validation=1",
                   digit_options());
  CHECK(test->examples(Split::kValidation) == 20);
}

TEST_CASE("make: bpe merges what is frequent and covers every byte") {
  const TemporaryFolder folder;
  const MadeData made =
      make_data("bpe", {.folder = folder.path(), .examples = 60, .vocabulary = 300});
  const BpeTokenizer tokenizer = BpeTokenizer::read(made.files[1].string(), made.files[2].string());
  CHECK(tokenizer.size() == 300);
  const std::string text = get(made.files[0]);
  CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  CHECK(tokenizer.encode(text).size() * 3 < text.size() * 2);
  CHECK(tokenizer.encode("\x01é€😀").size() == 10);
}

TEST_CASE("make: unknown kinds and sizes that a format does not have") {
  const TemporaryFolder folder;
  const auto message = [&](const char* kind, std::int64_t vocabulary) {
    const Error error =
        error_of([&] { make_data(kind, {.folder = folder.path(), .vocabulary = vocabulary}); });
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message() + " " + error.hint();
  };
  CHECK(contains(message("minst", 0), "did you mean 'mnist'?"));
  CHECK(contains(message("bpe", 256), "a byte-pair vocabulary has 257 to 65536 tokens"));
  CHECK(contains(message("tokens", 65537), "a vocabulary of 2 to 65536"));
}

}  // namespace trainscope
