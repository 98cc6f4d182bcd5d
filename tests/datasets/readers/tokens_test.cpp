// Token files with and without header: windows, widths, and files that change.
#include "datasets/readers/tokens.h"

#include <doctest/doctest.h>

#include "tests/datasets/archive_tools.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

std::string llm_c(std::int32_t magic, std::int32_t version, std::int32_t tokens) {
  std::string header = little(magic) + little(version) + little(tokens);
  header.resize(1024, '\0');
  return header;
}

DatasetOptions bounded_options(std::int64_t sequence, std::int64_t bound) {
  DatasetOptions options = text_options(sequence);
  options.inputs[0].bound = bound;
  return options;
}

Ints first_row(const Dataset& data) {
  return ints_of(read_batch(data, Split::kValidation, 0, {0}).tensors[0].second);
}

}  // namespace

TEST_CASE("tokens: 16 bits without header, as text is cut into windows") {
  const TemporaryFolder folder;
  put(folder / "t.bin", bytes_of(std::vector<std::uint16_t>{5, 6, 7, 8, 9, 65535}));
  const auto data =
      open_dataset(source("tokens", folder / "t.bin", ",validation=1"), text_options(3));
  CHECK(data->examples(Split::kValidation) == 2);
  const Batch batch = read_batch(*data, Split::kValidation, 0, {0, 1, kPaddingExample});
  CHECK(ints_of(batch.tensors[0].second) == Ints{5, 6, 7, 8, 9, 0, 0, 0, 0});
  CHECK(ints_of(batch.tensors[1].second) == Ints{6, 7, 8, 9, 65535, -100, -100, -100, -100});
  CHECK(batch.tokens == 5);
  const Json description = data->description();
  CHECK(description.get<std::string>("kind") == "tokens");
  CHECK(description.get<std::string>("dtype") == "uint16");
  CHECK(description.get<int>("tokens") == 6);
  CHECK(description.get<int>("training_tokens") == 0);
}

TEST_CASE("tokens: 32 bits by option, by header, and the same ids have the same hash") {
  const TemporaryFolder folder;
  const std::vector<std::uint32_t> ids = {1, 70000, 3, 4};
  put(folder / "plain", bytes_of(ids));
  put(folder / "llama", llm_c(20240801, 7, 4) + bytes_of(ids));
  const auto plain = open_dataset(source("tokens", folder / "plain", ",dtype=uint32,validation=1"),
                                  text_options(3));
  const auto llama =
      open_dataset(source("tokens", folder / "llama", ",validation=1"), text_options(3));
  CHECK(first_row(*plain) == Ints{1, 70000, 3});
  CHECK(first_row(*llama) == first_row(*plain));
  CHECK(llama->description().get<std::string>("xxh3") ==
        plain->description().get<std::string>("xxh3"));
  put(folder / "gpt2", llm_c(20240520, 1, 3) + bytes_of(std::vector<std::uint16_t>{1, 50256, 3}));
  const auto gpt2 = open_dataset(source("tokens", folder / "gpt2", ",validation=1,dtype=uint16"),
                                 text_options(2));
  CHECK(first_row(*gpt2) == Ints{1, 50256});
}

TEST_CASE("tokens: rows longer than a piece of the conversion") {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> ids(3000);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(i * 7);
  put(folder / "t.bin", bytes_of(ids));
  DatasetOptions options = text_options(1500);
  options.inputs[0].dtype = DType::kI32;
  const auto data = open_dataset(source("tokens", folder / "t.bin", ",validation=0"), options);
  const Ints row = ints_of(read_batch(*data, Split::kTrain, 0, {0}).tensors[0].second);
  REQUIRE(row.size() == 1500);
  for (std::size_t i = 1; i < row.size(); ++i) CHECK((row[i] - row[i - 1] + 65536) % 65536 == 7);
}

TEST_CASE("tokens: an id that the model does not know is refused on opening, with its place") {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> ids(100000, 3);
  ids[77777] = 96;
  put(folder / "t.bin", bytes_of(ids));
  const Error error = opening_error(source("tokens", folder / "t.bin"), bounded_options(24, 96));
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "token 77777 is 96: expected 0 to 95"));
  CHECK(open_dataset(source("tokens", folder / "t.bin"), bounded_options(24, 97)) != nullptr);
}

TEST_CASE("tokens: ids too wide for the input") {
  const TemporaryFolder folder;
  put(folder / "t.bin", bytes_of(std::vector<std::uint32_t>{1, 0x80000000U, 3}));
  DatasetOptions options = text_options(2);
  const std::string spec = source("tokens", folder / "t.bin", ",dtype=uint32,validation=1");
  CHECK(first_row(*open_dataset(spec, options)) == Ints{1, 0x80000000});
  options.inputs[0].dtype = DType::kI32;
  CHECK(contains(opening_error(spec, options).message(), "token 1 is 2147483648"));
}

TEST_CASE("tokens: a file that is cut short or changed while it is read") {
  const TemporaryFolder folder;
  const auto file = folder / "t.bin";
  put(file, bytes_of(std::vector<std::uint16_t>(5000, 3)));
  const auto data = open_dataset(source("tokens", file, ",validation=1"), bounded_options(10, 4));
  {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(2 * 15);
    stream << little(std::uint16_t{4});
  }
  const Error changed = error_of([&] { read_batch(*data, Split::kValidation, 0, {1}); });
  CHECK(changed.code() == ErrorCode::kBadInput);
  CHECK(contains(changed.message(), "token 15 is 4"));
  std::filesystem::resize_file(file, 100);
  const Error cut = error_of([&] { read_batch(*data, Split::kValidation, 0, {400}); });
  CHECK(cut.code() == ErrorCode::kIo);
  CHECK(contains(cut.message(), "has been cut short"));
}

TEST_CASE("tokens: sizes, headers and options that do not fit") {
  struct Row {
    std::string content;
    const char* option;
    ErrorCode code;
    const char* message;
  };
  const std::string three = bytes_of(std::vector<std::uint16_t>{1, 2, 3});
  const Row rows[] = {
      {"", "", ErrorCode::kBadInput, "is empty"},
      {three + "x", "", ErrorCode::kBadInput, "has 7 bytes: no whole number of uint16 ids"},
      {three, ",dtype=uint32", ErrorCode::kBadInput, "6 bytes: no whole number of uint32 ids"},
      {three, ",dtype=int16", ErrorCode::kUsage, "option 'dtype' is 'int16'"},
      {three, ",validation=0", ErrorCode::kBadInput, "has 3 tokens to train on"},
      {llm_c(20240520, 1, 3) + three, ",dtype=uint32", ErrorCode::kUsage,
       "header of the file says"},
      {llm_c(20240520, 1, 4) + three, "", ErrorCode::kBadInput, "counts 4 tokens of 2 bytes, 6 "},
      {llm_c(20240520, 1, 2) + three, "", ErrorCode::kBadInput, "counts 2 tokens of 2 bytes, 6 "},
      {llm_c(20240520, 1, -3) + three, "", ErrorCode::kBadInput, "counts -3 tokens"},
      {llm_c(20240520, 2, 3) + three, "", ErrorCode::kBadInput, "of version 2: expected 1"},
      {llm_c(20240801, 1, 3) + three, "", ErrorCode::kBadInput, "of version 1: expected 7"},
      {llm_c(20240520, 1, 3).substr(0, 1023), "", ErrorCode::kBadInput, "llm.c's header has 1024"},
      {llm_c(20240520, 1, 3).substr(0, 4), "", ErrorCode::kBadInput, "has 4 bytes: llm.c's header"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.message);
    put(folder / "t.bin", row.content);
    const Error error =
        opening_error(source("tokens", folder / "t.bin", row.option), text_options(4));
    CHECK(error.code() == row.code);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
  }
}

}  // namespace trainscope
