// IDX images and labels, plain and gzipped: shapes, values, and files that do not fit.
#include "datasets/readers/idx.h"

#include <doctest/doctest.h>

#include "tests/datasets/archive_tools.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

// A classifier of 2x3 images into ten classes.
DatasetOptions image_options(Ints dims) {
  DatasetOptions options;
  options.inputs = {{.name = "x", .dtype = DType::kF32, .dims = std::move(dims)}};
  options.labels = WantedField{.name = "labels", .dtype = DType::kI64, .dims = Ints{}, .bound = 10};
  return options;
}

const std::string kPixels(
    "\x00\x33\xff\x01\x02\x03"
    "abcdef",
    12);

std::string idx_source(const TemporaryFolder& folder, std::string_view rest = ",validation=0") {
  return "idx:" + (folder / "images").string() + "," + (folder / "labels").string() +
         std::string(rest);
}

void put_pair(const TemporaryFolder& folder, std::string_view images, std::string_view labels) {
  put(folder / "images", images);
  put(folder / "labels", labels);
}

}  // namespace

TEST_CASE("idx: pixels over 255, labels as they are, plain or gzipped") {
  const TemporaryFolder folder;
  const std::string images = idx_file({2, 2, 3}, kPixels);
  const std::string labels = idx_file({2}, "\x03\x09");
  for (const bool zipped : {false, true}) {
    put_pair(folder, zipped ? gzip(images) : images, zipped ? gzip(labels) : labels);
    const auto data = open_dataset(idx_source(folder), image_options({1, 2, 3}));
    const Batch batch = read_batch(*data, Split::kTrain, 0, {0, 1});
    CHECK(batch.tensors[0].second.shape() == Shape{2, 1, 2, 3});
    const auto x = batch.tensors[0].second.values<float>();
    CHECK(x[0] == 0.0F);
    CHECK(x[1] == 0.2F);
    CHECK(x[2] == 1.0F);
    CHECK(x[6] == 97.0F / 255.0F);
    CHECK(ints_of(batch.tensors[1].second) == Ints{3, 9});
  }
}

TEST_CASE("idx: an input of bytes gets the pixels as they are") {
  const TemporaryFolder folder;
  put_pair(folder, idx_file({2, 2, 3}, kPixels), idx_file({2}, "\x03\x09"));
  DatasetOptions options = image_options({1, 2, 3});
  options.inputs[0].dtype = DType::kU8;
  const auto data = open_dataset(idx_source(folder), options);
  const Batch batch = read_batch(*data, Split::kTrain, 0, {1, 0});
  REQUIRE(batch.tensors[0].second.dtype() == DType::kU8);
  const auto x = batch.tensors[0].second.values<std::uint8_t>();
  CHECK(x[0] == 'a');
  CHECK(x[8] == 255);
}

TEST_CASE("idx: the input's rank decides the shape") {
  const TemporaryFolder folder;
  put_pair(folder, idx_file({2, 2, 3}, kPixels), idx_file({2}, "\x03\x09"));
  const auto shape = [&](Ints dims) {
    const auto data = open_dataset(idx_source(folder), image_options(std::move(dims)));
    return data->fields()[0].example.shape;
  };
  CHECK(shape({1, 2, 3}) == Shape{1, 2, 3});
  CHECK(shape({2, 3}) == Shape{2, 3});
  CHECK(shape({6}) == Shape{6});
  for (const Ints& dims : {Ints{3, 2, 3}, Ints{1, 3, 2}, Ints{7}, Ints{1, 1, 2, 3}, Ints{}}) {
    const Error error = opening_error(idx_source(folder), image_options(dims));
    CHECK(error.code() == ErrorCode::kBadInput);
    CHECK(contains(error.message(), "has images of 2x3, but 'x' takes"));
  }
}

TEST_CASE("idx: labels as narrow integers, as an input of the graph, or not wanted") {
  const TemporaryFolder folder;
  put_pair(folder, idx_file({2, 2, 3}, kPixels), idx_file({2}, "\x03\x09"));
  DatasetOptions options = image_options({6});
  options.labels->dtype = DType::kI32;
  options.labels->name = "target";
  CHECK(ints_of(read_batch(*open_dataset(idx_source(folder), options), Split::kTrain, 0, {1})
                    .tensors[1]
                    .second) == Ints{9});
  options.labels.reset();
  CHECK(open_dataset(idx_source(folder), options)->fields().size() == 1);
  options.inputs.push_back({.name = "labels", .dtype = DType::kI64, .dims = Ints{}});
  const auto data = open_dataset(idx_source(folder), options);
  CHECK(ints_of(read_batch(*data, Split::kTrain, 0, {0}).tensors[1].second) == Ints{3});
}

TEST_CASE("idx: models that it cannot feed are refused as usage") {
  const TemporaryFolder folder;
  put_pair(folder, idx_file({2, 2, 3}, kPixels), idx_file({2}, "\x03\x09"));
  const auto refused = [&](const DatasetOptions& options, const char* message) {
    const Error error = opening_error(idx_source(folder), options);
    CHECK(error.code() == ErrorCode::kUsage);
    CAPTURE(error.message());
    CHECK(contains(error.message(), message));
  };
  DatasetOptions options = image_options({6});
  options.inputs[0].dtype = DType::kI64;
  refused(options, "idx feeds one input of floats");
  options = image_options({6});
  options.inputs.push_back(options.inputs[0]);
  refused(options, "idx feeds one input of floats");
  refused(image_options({WantedField::kAnySize}), "a dimension of 'x' is left open");
  options = image_options({6});
  options.labels->dtype = DType::kF32;
  refused(options, "one integer label an example");
  options.inputs.clear();
  refused(options, "no input for features");
}

TEST_CASE("idx: bad headers, lengths and labels") {
  struct Row {
    std::string images;
    std::string labels;
    const char* message;
  };
  const std::string good = idx_file({2, 2, 3}, kPixels);
  const std::string labels = idx_file({2}, "\x03\x09");
  std::string flipped = gzip(good);
  flipped[flipped.size() - 6] = static_cast<char>(flipped[flipped.size() - 6] ^ 1);  // its CRC
  const std::string zipped = gzip(good);
  const Row rows[] = {
      {"", labels, "ends within its IDX header"},
      {good.substr(0, 3), labels, "ends within its IDX header"},
      {good.substr(0, 15), labels, "ends within its IDX header"},
      {"text", labels, "is no IDX file: it begins with 74 65"},
      {idx_header({2, 2, 3}, 0x0D) + std::string(48, 'x'), labels, "IDX type 0x0d: expected 0x08"},
      {labels, labels, "has 1 dimensions: expected 3"},
      {good, good, "has 3 dimensions: expected 1"},
      {idx_header({}), labels, "has 0 dimensions: expected 3"},
      {good.substr(0, good.size() - 1), labels, "but only 11 of 12 bytes follow"},
      {good + "x", labels, "more than 12 bytes follow"},
      {idx_file({2, 0, 3}, ""), labels, "dimension 1 is 0"},
      {idx_file({0, 2, 3}, ""), labels, "dimension 0 is 0"},
      {idx_file({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, ""), labels, "more than the 2 GiB"},
      {idx_file({1 << 20, 32, 32}, "abc"), labels, "the file is too short for that"},
      {gzip(idx_file({1 << 20, 32, 32}, "abc")), labels, "the file is too short for that"},
      {gzip(idx_file({4, 2, 3}, kPixels)), labels, "but only 12 of 24 bytes follow"},
      {gzip(good + std::string(1 << 20, 'x')), labels, "more than 12 bytes follow"},
      {zipped.substr(0, zipped.size() - 9), labels, "the compressed data end too early"},
      {zipped.substr(0, 12), labels, "the compressed data end too early"},
      {zipped + "x", labels, "1 bytes follow the compressed data"},
      {flipped, labels, "the compressed data are damaged"},
      {"\x1f\x8b", labels, "the compressed data end too early"},
      {"\x1f\x8b\x08\xff garbage and more of it", labels, "the compressed data"},
      {good, idx_file({3}, "\x01\x02\x03"), "has 2 images, '"},
      {good, idx_file({2}, "\x03\x0a"), "'labels'[1] is 10: expected 0 to 9"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.message);
    put_pair(folder, row.images, row.labels);
    const Error error = opening_error(idx_source(folder), image_options({1, 2, 3}));
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
  }
  CHECK(opening_error("idx:" + (folder / "no").string() + ",x", image_options({6})).code() ==
        ErrorCode::kIo);
}

}  // namespace trainscope
