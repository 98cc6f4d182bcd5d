// Safetensors data files: rows, splits, conversions, and files that do not fit.
#include "datasets/readers/tensors.h"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <limits>

#include "engine/core/safetensors.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

struct Stored {
  std::string name;
  Tensor tensor;
};

void put_tensors(const fs::path& file, const std::vector<Stored>& stored) {
  std::vector<NamedTensor> tensors;
  for (const Stored& s : stored) tensors.push_back({s.name, s.tensor.view()});
  write_safetensors(file, tensors);
}

template <typename T>
Tensor tensor(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(shape, std::span<const T>(values));
}

using L = std::int64_t;

// Five pairs with labels 0 1 2 0 1.
std::vector<Stored> five() {
  return {{"x", tensor<float>({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})},
          {"labels", tensor<L>({5}, {0, 1, 2, 0, 1})}};
}

std::vector<float> floats(const Tensor& t) {
  return {t.values<float>().begin(), t.values<float>().end()};
}

}  // namespace

TEST_CASE("tensors: integers of any width are read for inputs of any other, if they fit") {
  const TemporaryFolder folder;
  const auto read = [&](Tensor stored, DType wanted) {
    put_tensors(folder / "d", {{"x", std::move(stored)}});
    DatasetOptions options;
    options.inputs = {{.name = "x", .dtype = wanted, .dims = Ints{}}};
    const auto data = open_dataset(source("tensors", folder / "d", ",validation=0"), options);
    const Batch batch = read_batch(*data, Split::kTrain, 0, {1, 0});
    CHECK(batch.tensors[0].second.dtype() == wanted);
    const Tensor numbers = convert(batch.tensors[0].second, DType::kI64);
    return ints_of(numbers);
  };
  const Tensor bytes = tensor<std::uint8_t>({2}, {7, 255});
  for (DType wanted :
       {DType::kU8, DType::kI16, DType::kU16, DType::kI32, DType::kU32, DType::kI64, DType::kU64}) {
    CHECK(read(bytes, wanted) == Ints{255, 7});
  }
  CHECK(read(tensor<L>({2}, {-128, 127}), DType::kI8) == Ints{127, -128});
  const auto refusal = [&](Tensor stored, DType wanted) {
    return error_of([&] { read(std::move(stored), wanted); }).message();
  };
  CHECK(contains(refusal(bytes, DType::kI8), "'x' holds 255, which does not fit the model's i8"));
  CHECK(contains(refusal(tensor<L>({2}, {0, -1}), DType::kU64), "'x' holds -1"));
  CHECK(contains(refusal(tensor<std::uint64_t>({2}, {0, ~std::uint64_t{0}}), DType::kI64),
                 "does not fit the model's i64"));
}

TEST_CASE("tensors: rows by index, the last rows validate") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", five());
  const auto data =
      open_dataset(source("tensors", folder / "d", ",validation=0.4"), pair_options());
  CHECK(data->examples(Split::kTrain) == 3);
  CHECK(data->examples(Split::kValidation) == 2);
  const Batch train = read_batch(*data, Split::kTrain, 9, {2, 0});
  CHECK(train.tensors[0].first == "x");
  CHECK(floats(train.tensors[0].second) == std::vector<float>{4, 5, 0, 1});
  CHECK(ints_of(train.tensors[1].second) == Ints{2, 0});
  CHECK(train.examples == 2);
  CHECK(train.loss_terms == 2);
  CHECK(train.tokens == 0);
  const Batch validation = read_batch(*data, Split::kValidation, 0, {0, 1, kPaddingExample});
  CHECK(floats(validation.tensors[0].second) == std::vector<float>{6, 7, 8, 9, 0, 0});
  CHECK(ints_of(validation.tensors[1].second) == Ints{0, 1, -100});
  CHECK(validation.examples == 2);
  CHECK(validation.loss_terms == 2);
}

TEST_CASE("tensors: all examples train when nothing validates") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", five());
  const auto data = open_dataset(source("tensors", folder / "d", ",validation=0"), pair_options());
  CHECK(data->examples(Split::kTrain) == 5);
  CHECK(data->examples(Split::kValidation) == 0);
}

TEST_CASE("tensors: labels in forms that mean the same") {
  const TemporaryFolder folder;
  const Tensor x = tensor<float>({3, 2}, {0, 1, 2, 3, 4, 5});
  const auto labels = [&](Tensor stored, const DatasetOptions& options) {
    put_tensors(folder / "d", {{"x", x}, {"labels", std::move(stored)}});
    const auto data = open_dataset(source("tensors", folder / "d", ",validation=0"), options);
    return read_batch(*data, Split::kTrain, 0, {0, 1, 2}).tensors[1].second;
  };
  // Classes: whole numbers in floats, and a column of them.
  const DatasetOptions classes = pair_options();
  CHECK(ints_of(labels(tensor<float>({3}, {2, 0, 1}), classes)) == Ints{2, 0, 1});
  CHECK(ints_of(labels(tensor<L>({3, 1}, {2, 0, 1}), classes)) == Ints{2, 0, 1});
  // Numbers for an output [N, 1]: [N], and integers.
  DatasetOptions numbers = pair_options();
  numbers.labels = WantedField{.name = "labels", .dtype = DType::kF32, .dims = Ints{1}};
  const Tensor flat = labels(tensor<float>({3}, {0.5F, 1, 2}), numbers);
  CHECK(flat.shape() == Shape{3, 1});
  CHECK(floats(flat) == std::vector<float>{0.5F, 1, 2});
  CHECK(floats(labels(tensor<L>({3}, {1, 0, 1}), numbers)) == std::vector<float>{1, 0, 1});
  const auto refused = [&](Tensor stored, const DatasetOptions& options) {
    return error_of([&] { labels(std::move(stored), options); }).message();
  };
  CHECK(contains(refused(tensor<float>({3}, {2, 0.5F, 1}), classes),
                 "'labels' holds 0.5 at element 1: labels of this loss are whole numbers"));
  CHECK(contains(refused(tensor<float>({3, 2}, {0, 0, 0, 0, 0, 0}), numbers),
                 "'labels' is f32[3,2], expected [N,1]"));
  // Inputs are taken as they are.
  put_tensors(folder / "d", {{"x", tensor<L>({3, 2}, {0, 1, 2, 3, 4, 5})},
                             {"labels", tensor<L>({3}, {2, 0, 1})}});
  CHECK(contains(opening_error(source("tensors", folder / "d"), classes).message(),
                 "'x' is i64[3,2], the model takes f32"));
}

TEST_CASE("tensors: examples along another axis than the first") {
  const TemporaryFolder folder;
  // Two times of three pairs, the labels of each time.
  put_tensors(folder / "d",
              {{"x", tensor<float>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15})},
               {"labels", tensor<L>({2, 3}, {0, 1, 2, 2, 1, 0})}});
  DatasetOptions options = pair_options();
  options.inputs[0].dims = Ints{2, 2};
  options.inputs[0].batch_axis = 1;
  options.labels->dims = Ints{2};
  options.labels->batch_axis = 1;
  const auto data = open_dataset(source("tensors", folder / "d", ",validation=0"), options);
  CHECK(data->examples(Split::kTrain) == 3);
  const Batch batch = read_batch(*data, Split::kTrain, 0, {2, 0, kPaddingExample});
  CHECK(batch.tensors[0].second.shape() == Shape{2, 3, 2});
  CHECK(floats(batch.tensors[0].second) ==
        std::vector<float>{4, 5, 0, 1, 0, 0, 14, 15, 10, 11, 0, 0});
  CHECK(ints_of(batch.tensors[1].second) == Ints{2, 0, -100, 0, 2, -100});
  CHECK(batch.examples == 2);
  CHECK(batch.loss_terms == 4);
  options.labels->batch_axis = 0;
  options.labels->dims = Ints{3};
  const Error error = opening_error(source("tensors", folder / "d"), options);
  CHECK(contains(error.message(), "'labels' has 2 examples, 'x' has 3"));
  CHECK(contains(error.hint(), "--batch-axis"));
}

TEST_CASE("tensors: sequences count tokens, ignored labels do not count") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", {{"ids", tensor<L>({2, 3}, {1, 2, 3, 4, 5, 6})},
                             {"labels", tensor<L>({2, 3}, {-100, 2, -100, 4, 5, -100})}});
  DatasetOptions options = text_options(0);
  options.inputs[0].bound = 7;
  options.labels->bound = 7;
  const auto data = open_dataset(source("tensors", folder / "d", ",validation=0"), options);
  const Batch batch = read_batch(*data, Split::kTrain, 0, {0, 1, kPaddingExample});
  CHECK(batch.tokens == 6);
  CHECK(batch.loss_terms == 3);
}

TEST_CASE("tensors: widths are converted, labels may be called labels") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", {{"x", tensor<double>({1, 2}, {0.5, 1.5})},
                             {"labels", tensor<std::int32_t>({1}, {2})},
                             {"unused", tensor<L>({7}, {0, 0, 0, 0, 0, 0, 0})}});
  DatasetOptions options = pair_options();
  options.labels->name = "target";
  const auto data = open_dataset(source("tensors", folder / "d"), options);
  const Batch batch = read_batch(*data, Split::kTrain, 0, {0});
  CHECK(floats(batch.tensors[0].second) == std::vector<float>{0.5F, 1.5F});
  CHECK(batch.tensors[1].first == "target");
  CHECK(ints_of(batch.tensors[1].second) == Ints{2});
}

TEST_CASE("tensors: labels that are numbers cannot be padded") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", {{"x", tensor<float>({2, 2}, {1, 2, 3, 4})},
                             {"y", tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6})}});
  DatasetOptions options = pair_options();
  options.labels = WantedField{.name = "y", .dtype = DType::kF32, .dims = {{3}}};
  const auto data = open_dataset(source("tensors", folder / "d", ",validation=0"), options);
  CHECK(!data->can_pad());
  CHECK(read_batch(*data, Split::kTrain, 0, {1, 0}).loss_terms == 6);
}

TEST_CASE("tensors: a graph with its own loss needs no labels") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", {{"x", tensor<float>({2, 2}, {1, 2, 3, 4})}});
  DatasetOptions options = pair_options();
  options.labels.reset();
  const auto data = open_dataset(source("tensors", folder / "d"), options);
  CHECK(data->fields().size() == 1);
  CHECK(read_batch(*data, Split::kTrain, 0, {0}).loss_terms == 1);
}

TEST_CASE("tensors: files that do not fit are refused, all problems at once") {
  struct Row {
    std::vector<Stored> stored;
    const char* message;
  };
  const Tensor x = tensor<float>({2, 2}, {1, 2, 3, 4});
  const Tensor y = tensor<L>({2}, {0, 1});
  const Row rows[] = {
      {{{"x", x}}, "'labels' is missing"},
      {{{"z", x}, {"other", y}}, "'x' is missing; 'labels' is missing"},
      {{{"x", tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6})}, {"labels", y}},
       "'x' is f32[2,3], expected [N,2]"},
      {{{"x", tensor<float>({4}, {1, 2, 3, 4})}, {"labels", y}}, "'x' is f32[4], expected [N,2]"},
      {{{"x", tensor<L>({2, 2}, {1, 2, 3, 4})}, {"labels", y}},
       "'x' is i64[2,2], the model takes f32"},
      {{{"x", x}, {"labels", tensor<float>({2}, {0, 0.5F})}},
       "'labels' holds 0.5 at element 1: labels of this loss are whole numbers"},
      {{{"x", x}, {"labels", tensor<L>({2, 2}, {0, 1, 0, 1})}},
       "'labels' is i64[2,2], expected [N]"},
      {{{"x", x}, {"labels", Tensor::scalar<L>(0)}}, "'labels' is i64[], expected [N]"},
      {{{"x", x}, {"labels", tensor<L>({3}, {0, 1, 2})}}, "'labels' has 3 examples, 'x' has 2"},
      {{{"x", tensor<float>({0, 2}, {})}, {"labels", tensor<L>({0}, {})}},
       "must count at least one example"},
      {{{"x", x}, {"labels", tensor<L>({2}, {0, 3})}}, "'labels'[1] is 3: expected 0 to 2 or -100"},
      {{{"x", x}, {"labels", tensor<L>({2}, {-1, 0})}}, "'labels'[0] is -1"},
      {{{"x", x}, {"labels", tensor<L>({2}, {0, std::numeric_limits<L>::min()})}},
       "'labels'[1] is -9223372036854775808"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    CAPTURE(row.message);
    put_tensors(folder / "d", row.stored);
    const Error error = opening_error(source("tensors", folder / "d"), pair_options());
    CHECK(error.code() == ErrorCode::kBadInput);
    CAPTURE(error.message());
    CHECK(contains(error.message(), row.message));
    CHECK(contains(error.message(), (folder / "d").string()));
  }
}

TEST_CASE("tensors: ids outside their table are named with their place") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", {{"ids", tensor<L>({2, 3}, {0, 1, 2, 3, 4, 5})},
                             {"labels", tensor<L>({2, 3}, {0, 0, 0, 0, 0, 0})}});
  DatasetOptions options = text_options(0);
  options.inputs[0].bound = 5;
  const Error error = opening_error(source("tensors", folder / "d"), options);
  CHECK(contains(error.message(), "'ids'[1,2] is 5: expected 0 to 4"));
}

TEST_CASE("tensors: integers that do not fit a narrow input are refused") {
  const TemporaryFolder folder;
  put_tensors(folder / "d", {{"x", tensor<float>({1, 2}, {1, 2})},
                             {"labels", tensor<L>({1}, {std::int64_t{1} << 31})}});
  DatasetOptions options = pair_options();
  options.labels->dtype = DType::kI32;
  const Error error = opening_error(source("tensors", folder / "d"), options);
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "2147483648, which does not fit"));
}

TEST_CASE("tensors: files that are damaged or not there") {
  using namespace std::string_literals;
  const TemporaryFolder folder;
  const auto code = [&](const char* file) {
    return opening_error(source("tensors", folder / file), pair_options()).code();
  };
  CHECK(code("absent") == ErrorCode::kIo);
  CHECK(code("") == ErrorCode::kIo);  // the folder itself
  put_tensors(folder / "d", five());
  const std::string good = get(folder / "d");
  const auto code_of_content = [&](std::string_view text) {
    put(folder / "d", text);
    return code("d");
  };
  CHECK(code_of_content("") == ErrorCode::kBadInput);
  CHECK(code_of_content("x,labels\n1,2\n") == ErrorCode::kBadInput);
  CHECK(code_of_content(std::string_view(good).substr(0, good.size() - 1)) == ErrorCode::kBadInput);
  CHECK(code_of_content(good + "x") == ErrorCode::kBadInput);
  CHECK(code_of_content("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F{}"s) == ErrorCode::kBadInput);
  const std::string small = R"({"x":{"dtype":"I16","shape":[1,2],"data_offsets":[0,4]},)"
                            R"("labels":{"dtype":"I64","shape":[1],"data_offsets":[4,12]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(small.size());
  CHECK(code_of_content(file + small + std::string(12, '\0')) == ErrorCode::kBadInput);
}

TEST_CASE("tensors: a model without inputs takes no data") {
  DatasetOptions options;
  CHECK(opening_error("tensors:x", options).code() == ErrorCode::kUsage);
}

}  // namespace trainscope
