// Windows over a text: which characters they hold, and what is refused.
#include "datasets/readers/text.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "tests/datasets/dataset_tools.h"
#include "tests/support/shared.h"

namespace trainscope {
namespace {

const Tensor& tensor_of(const Batch& batch, std::size_t i) { return batch.tensors[i].second; }

}  // namespace

TEST_CASE("text: shapes, counts and fields") {
  const TemporaryFolder folder;
  put(folder / "t", "abcdefghij");
  const auto data = open_dataset(source("text", folder / "t", ",validation=0.5"), text_options(2));
  REQUIRE(data->fields().size() == 2);
  CHECK(data->fields()[0].name == "ids");
  CHECK(data->fields()[1].name == "labels");
  CHECK(data->fields()[0].example == TensorType{.dtype = DType::kI64, .shape = {2}});
  CHECK(data->examples(Split::kTrain) == 1);       // (5 - 2) / 2
  CHECK(data->examples(Split::kValidation) == 2);  // 4 predicted characters
  CHECK(data->can_pad());
}

TEST_CASE("text: validation predicts every character but the first once") {
  const TemporaryFolder folder;
  put(folder / "t", "abcdefghij");
  const auto data = open_dataset(source("text", folder / "t", ",validation=1"), text_options(4));
  CHECK(data->examples(Split::kTrain) == 0);
  CHECK(data->examples(Split::kValidation) == 3);
  const Batch batch = read_batch(*data, Split::kValidation, 0, {0, 1, 2, kPaddingExample});
  CHECK(ints_of(tensor_of(batch, 0)) == Ints{0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0});
  const std::int64_t no = -100;
  CHECK(ints_of(tensor_of(batch, 1)) ==
        Ints{1, 2, 3, 4, 5, 6, 7, 8, 9, no, no, no, no, no, no, no});
  CHECK(batch.examples == 3);
  CHECK(batch.tokens == 9);
  CHECK(batch.loss_terms == 9);
}

TEST_CASE("text: validation at the edges of windows") {
  const TemporaryFolder folder;
  const auto count = [&](std::string_view text) {
    put(folder / "t", text);
    return open_dataset(source("text", folder / "t", ",validation=1"), text_options(4))
        ->examples(Split::kValidation);
  };
  CHECK(count("a") == 0);
  CHECK(count("ab") == 1);
  CHECK(count("abcde") == 1);
  CHECK(count("abcdef") == 2);
}

TEST_CASE("text: training windows are pieces of the training split from one phase") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(' ' + i % 90);
  put(folder / "t", text);
  constexpr std::int64_t kSequence = 8;
  const auto data =
      open_dataset(source("text", folder / "t", ",validation=0.3"), text_options(kSequence));
  CHECK(data->examples(Split::kTrain) == 7);  // (70 - 8) / 8
  std::set<std::int64_t> phases;
  std::set<std::int64_t> last_labels;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {
    const Batch batch = read_batch(*data, Split::kTrain, epoch, {0, 1, 2, 3, 4, 5, 6});
    const Ints x = ints_of(tensor_of(batch, 0));
    const Ints y = ints_of(tensor_of(batch, 1));
    const std::int64_t phase = x[0];  // ids are positions here: the characters ascend
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(x[i] == phase + static_cast<std::int64_t>(i));
      CHECK(y[i] == x[i] + 1);
    }
    CHECK(y.back() < 70);
    phases.insert(phase);
    last_labels.insert(y.back());
    CHECK(batch.tokens == 56);
  }
  CHECK(phases == std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("text: a split shorter than two windows gives one") {
  const TemporaryFolder folder;
  put(folder / "t", "abcdefg");
  const auto data = open_dataset(source("text", folder / "t", ",validation=0"), text_options(4));
  CHECK(data->examples(Split::kTrain) == 1);
  std::set<std::int64_t> phases;
  for (std::int64_t epoch = 0; epoch < 60; ++epoch) {
    const Batch batch = read_batch(*data, Split::kTrain, epoch, {0});
    phases.insert(ints_of(tensor_of(batch, 0))[0]);
    CHECK(ints_of(tensor_of(batch, 1))[3] <= 6);
  }
  CHECK(phases == std::set<std::int64_t>{0, 1, 2});
}

TEST_CASE("text: the smallest text that trains") {
  const TemporaryFolder folder;
  put(folder / "t", "abcde");
  const auto data = open_dataset(source("text", folder / "t", ",validation=0"), text_options(4));
  const Batch batch = read_batch(*data, Split::kTrain, 3, {0});
  CHECK(ints_of(tensor_of(batch, 0)) == Ints{0, 1, 2, 3});
  CHECK(ints_of(tensor_of(batch, 1)) == Ints{1, 2, 3, 4});
}

TEST_CASE("text: the same arguments give the same batch, another seed another phase") {
  const TemporaryFolder folder;
  put(folder / "t", std::string(500, 'a') + std::string(500, 'b'));
  DatasetOptions options = text_options(7);
  std::map<std::uint64_t, Ints> first_rows;
  for (const std::uint64_t seed : {1, 2, 3, 4}) {
    options.seed = seed;
    const auto data = open_dataset(source("text", folder / "t"), options);
    const auto again = open_dataset(source("text", folder / "t"), options);
    const Ints rows = {71, 3, 70};
    CHECK(ints_of(tensor_of(read_batch(*data, Split::kTrain, 5, rows), 0)) ==
          ints_of(tensor_of(read_batch(*again, Split::kTrain, 5, rows), 0)));
    first_rows[seed] = ints_of(tensor_of(read_batch(*data, Split::kTrain, 5, rows), 0));
  }
  CHECK((first_rows[1] != first_rows[2] || first_rows[2] != first_rows[3] ||
         first_rows[3] != first_rows[4]));
}

TEST_CASE("text: narrow ids, fixed sequence of the graph, another ignore_index") {
  const TemporaryFolder folder;
  put(folder / "t", "abcdef");
  DatasetOptions options;
  options.inputs = {{.name = "x", .dtype = DType::kI32, .dims = {{4}}, .bound = 6}};
  options.labels = WantedField{.name = "y", .dtype = DType::kI32, .dims = {{4}}, .bound = 6};
  options.ignore_index = -1;
  const auto data = open_dataset(source("text", folder / "t", ",validation=1"), options);
  const Batch batch = read_batch(*data, Split::kValidation, 0, {1});
  CHECK(tensor_of(batch, 0).dtype() == DType::kI32);
  CHECK(ints_of(tensor_of(batch, 1)) == Ints{5, -1, -1, -1});
}

TEST_CASE("text: without labels only the ids are given") {
  const TemporaryFolder folder;
  put(folder / "t", "abcdef");
  DatasetOptions options = text_options(4);
  options.labels.reset();
  const auto data = open_dataset(source("text", folder / "t", ",validation=1"), options);
  CHECK(read_batch(*data, Split::kValidation, 0, {0}).tensors.size() == 1);
}

TEST_CASE("text: the description holds what evaluation needs") {
  const TemporaryFolder folder;
  put(folder / "t", "banana nab");
  const auto data = open_dataset(source("text", folder / "t"), text_options(3));
  const Json description = data->description();
  CHECK(description.get<std::string>("kind") == "text");
  CHECK(description.get<std::string>("vocabulary") == " abn");
  CHECK(description.get<std::int64_t>("characters") == 10);
  CHECK(description.get<std::int64_t>("training_characters") == 9);
  CHECK(description.get<std::int64_t>("sequence") == 3);

  DatasetOptions options = text_options(3);
  options.vocabulary = Vocabulary::from_json(description.at("vocabulary"));
  put(folder / "other", "nnnna");
  const auto other = open_dataset(source("text", folder / "other", ",validation=1"), options);
  CHECK(ints_of(tensor_of(read_batch(*other, Split::kValidation, 0, {0}), 0)) == Ints{3, 3, 3});
  put(folder / "other", "nanz");
  const Error error = opening_error(source("text", folder / "other", ",validation=1"), options);
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "the character 'z' (U+007A) at byte 3"));
}

TEST_CASE("text: bad content and texts that do not suit the model") {
  const TemporaryFolder folder;
  put(folder / "t", "abcdefghijklmnopqrstuvwxyz");
  put(folder / "empty", "");
  put(folder / "latin", "abc\xE9");
  put(folder / "zip", std::string("PK\x03\x04\x8f", 5));
  std::filesystem::create_directory(folder / "dir");
  const auto error = [&](const char* file, const DatasetOptions& options) {
    return opening_error(source("text", folder / file), options);
  };
  const DatasetOptions plain = text_options(4);
  CHECK(error("absent", plain).code() == ErrorCode::kIo);
  CHECK(error("dir", plain).code() == ErrorCode::kIo);
  CHECK(opening_error("text:/dev/zero", plain).code() == ErrorCode::kIo);
  CHECK(error("empty", plain).code() == ErrorCode::kBadInput);
  CHECK(contains(error("empty", plain).message(), "is empty"));
  CHECK(error("latin", plain).code() == ErrorCode::kBadInput);
  CHECK(contains(error("latin", plain).message(), "byte 3 (0xe9) is not valid UTF-8"));
  CHECK(contains(error("latin", plain).message(), (folder / "latin").string()));
  CHECK(contains(error("zip", plain).message(), "byte 4 (0x8f)"));
  const Error too_short = error("t", text_options(23));
  CHECK(too_short.code() == ErrorCode::kBadInput);
  CHECK(contains(too_short.message(),
                 "has 23 characters to train on, a window of sequence 23 "
                 "needs 24"));

  DatasetOptions options = plain;
  options.inputs[0].bound = 25;
  CHECK(error("t", options).code() == ErrorCode::kBadInput);
  CHECK(contains(error("t", options).message(),
                 "26 distinct characters, but 'ids' takes ids below 25"));
  options = plain;
  options.labels->bound = 10;
  CHECK(contains(error("t", options).message(), "'labels' takes ids below 10"));
}

TEST_CASE("text: models that text cannot feed are refused as usage") {
  const TemporaryFolder folder;
  put(folder / "t", "abcdefghijklmnopqrstuvwxyz");
  const auto message = [&](const DatasetOptions& options) {
    const Error error = opening_error(source("text", folder / "t"), options);
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  };
  DatasetOptions options = text_options(0);
  CHECK(contains(message(options), "leaves the sequence length of input 'ids' open"));
  options = text_options(5);
  options.inputs[0].dims = {{4}};
  CHECK(contains(message(options),
                 "--seq 5 does not fit the model: input 'ids' takes sequences of 4"));
  options = text_options(4);
  options.inputs[0].dtype = DType::kF32;
  CHECK(contains(message(options), "the model has none"));
  options = text_options(4);
  options.inputs.push_back({.name = "mask", .dtype = DType::kI64});
  CHECK(contains(message(options), "feeds 'ids' only, the model also needs 'mask'"));
  options = text_options(4);
  options.inputs[0].dims = {{2, 2}};
  CHECK(contains(message(options), "has 3 dimensions"));
  options = text_options(4);
  options.labels->dtype = DType::kF32;
  CHECK(contains(message(options), "are not a sequence of 4 integers"));
  options = text_options(4);
  options.labels->dims = {{5}};
  CHECK(contains(message(options), "are not a sequence of 4 integers"));
  options = text_options(4);
  options.inputs.clear();
  CHECK(contains(message(options), "the model has none"));
}

TEST_CASE("text: tiny-shakespeare has the customary split" *
          doctest::skip(!test::has_shared("data/tinyshakespeare/input.txt"))) {
  const auto file = test::shared_path("data/tinyshakespeare/input.txt");
  const std::shared_ptr<const Dataset> data = open_dataset(source("text", file), text_options(64));
  CHECK(data->description().get<std::int64_t>("training_characters") == 1003854);
  CHECK(Vocabulary::from_json(data->description().at("vocabulary")).size() == 65);
  CHECK(data->examples(Split::kTrain) == 15684);
  CHECK(data->examples(Split::kValidation) == 1743);
  std::int64_t terms = 0;
  Batch batch;
  const BatchOrder order = BatchOrder::validation(1743, 12, LastBatch::kPad);
  DirectBatches batches(data, order, {.first = 0, .count = order.batches_per_epoch()});
  while (const Batch* next = batches.next()) terms += next->loss_terms;
  CHECK(terms == 111539);  // 111,540 validation characters, the first has no predecessor
}

}  // namespace trainscope
