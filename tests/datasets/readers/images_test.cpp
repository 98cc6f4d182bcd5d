// Folders of images: classes, forms of the input, splits, and folders that do not fit.
#include "datasets/readers/images.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

namespace fs = std::filesystem;

const fs::path kSample = fs::path(TRAINSCOPE_SOURCE_DIR) / "datasets/samples/images";
const fs::path kFiles = fs::path(TRAINSCOPE_SOURCE_DIR) / "tests/data/images";

// A classifier of images into so many classes.
DatasetOptions classifier(Ints dims, std::int64_t classes = 3, DType dtype = DType::kF32) {
  DatasetOptions options;
  options.inputs = {{.name = "x", .dtype = dtype, .dims = std::move(dims)}};
  options.labels =
      WantedField{.name = "labels", .dtype = DType::kI64, .dims = Ints{}, .bound = classes};
  return options;
}

std::string images_of(const fs::path& folder, std::string_view rest = "") {
  return source("images", folder, rest);
}

// Labels of a split in its order.
Ints labels_of(const Dataset& data, Split split) {
  Ints all(static_cast<std::size_t>(data.examples(split)));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  return ints_of(read_batch(data, split, 0, all).tensors.back().second);
}

std::string problem(const fs::path& folder, const DatasetOptions& options,
                    std::string_view rest = "") {
  const Error error = opening_error(images_of(folder, rest), options);
  return std::string(error.message()) + " | " + std::string(error.hint());
}

}  // namespace

TEST_CASE("images: a folder a class, in the order of names") {
  const auto data = open_dataset(images_of(kSample, ",validation=0"), classifier({3, 16, 16}));
  CHECK(data->examples(Split::kTrain) == 12);
  CHECK(labels_of(*data, Split::kTrain) == Ints{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
  const Json description = data->description();
  CHECK(description.at("class_names").dump() == R"(["circle","cross","square"])");
  CHECK(description.at("examples").as_int() == 12);

  const Batch batch = read_batch(*data, Split::kTrain, 0, {4, 0});
  const Tensor& images = batch.tensors.front().second;
  CHECK(images.shape() == Shape{2, 3, 16, 16});
  const auto [least, most] = std::ranges::minmax(images.values<float>());
  CHECK(least >= 0.0F);
  CHECK(most <= 1.0F);
  CHECK(most > 0.5F);
}

TEST_CASE("images: planes of colours, grey, flat and bytes are the same pixels") {
  const auto read_one = [](Ints dims, DType dtype) {
    const auto data =
        open_dataset(images_of(kSample, ",validation=0"), classifier(std::move(dims), 3, dtype));
    return read_batch(*data, Split::kTrain, 0, {0}).tensors.front().second;
  };
  const Tensor floats = read_one({3, 16, 16}, DType::kF32);
  const Tensor doubles = read_one({3, 16, 16}, DType::kF64);
  const Tensor bytes = read_one({3, 16, 16}, DType::kU8);
  const Tensor grey = read_one({1, 16, 16}, DType::kU8);
  const Tensor flat = read_one({16, 16}, DType::kU8);
  for (std::size_t i = 0; i < 256; ++i) {
    const auto at = [&](std::size_t c) { return bytes.values<std::uint8_t>()[c * 256 + i]; };
    const auto wide = static_cast<float>(at(1));
    REQUIRE(floats.values<float>()[256 + i] == wide / 255.0F);
    REQUIRE(doubles.values<double>()[256 + i] == at(1) / 255.0);
    const double luma = 0.299 * at(0) + 0.587 * at(1) + 0.114 * at(2);
    REQUIRE(std::abs(grey.values<std::uint8_t>()[i] - luma) <= 0.51);
    REQUIRE(grey.values<std::uint8_t>()[i] == flat.values<std::uint8_t>()[i]);
  }
}

TEST_CASE("images: those that validate are drawn from all classes") {
  DatasetOptions options = classifier({3, 16, 16});
  const auto data = open_dataset(images_of(kSample, ",validation=0.5"), options);
  REQUIRE(data->examples(Split::kValidation) == 6);
  Ints labels = labels_of(*data, Split::kValidation);
  labels.erase(std::ranges::unique(labels).begin(), labels.end());
  CHECK(labels.size() > 1);  // the last half would be of one class and a half
  options.validation_seed = 9;
  const auto other = open_dataset(images_of(kSample, ",validation=0.5"), options);
  CHECK(other->description().at("validation_seed").as_int() == 9);
  CHECK(data->description().at("validation_seed").as_int() == 0);
}

TEST_CASE("images: another size is refused, or made to fit") {
  const DatasetOptions options = classifier({3, 8, 12});
  CHECK(contains(problem(kSample, options), "has 16 x 16 pixels, 'x' takes 8 x 12"));
  CHECK(contains(problem(kSample, options), "resize=cover"));
  for (const char* how : {",resize=cover", ",resize=stretch"}) {
    const auto data = open_dataset(images_of(kSample, how), options);
    CHECK(read_batch(*data, Split::kTrain, 0, {0}).tensors.front().second.shape() ==
          Shape{1, 3, 8, 12});
  }
}

TEST_CASE("images: without labels all images of a folder, classes or none") {
  DatasetOptions options = classifier({3, 16, 16});
  options.labels.reset();
  options.without_labels = true;
  const auto in_classes = open_dataset(images_of(kSample), options);
  CHECK(in_classes->examples(Split::kValidation) == 12);
  const auto flat = open_dataset(images_of(kSample / "cross"), options);
  REQUIRE(flat->examples(Split::kValidation) == 4);
  const Batch one = read_batch(*in_classes, Split::kValidation, 0, {5});
  const Batch same = read_batch(*flat, Split::kValidation, 0, {1});
  CHECK(std::ranges::equal(one.tensors.front().second.values<float>(),
                           same.tensors.front().second.values<float>()));
}

TEST_CASE("images: the classes of the training data number those of other folders") {
  DatasetOptions options = classifier({3, 16, 16}, 4);
  options.class_names = {"arrow", "circle", "cross", "square"};
  const auto data = open_dataset(images_of(kSample, ",validation=0"), options);
  CHECK(labels_of(*data, Split::kTrain).front() == 1);
  options.class_names = {"circle", "square"};
  CHECK(contains(problem(kSample, options), "folder 'cross': the classes of the training data"));
}

TEST_CASE("images: folders that do not fit") {
  const TemporaryFolder folder;
  const DatasetOptions options = classifier({3, 9, 7});
  CHECK(contains(problem(folder.path(), options), "holds no images"));
  fs::create_directories(folder / "cat");
  fs::create_directories(folder / "dog");
  CHECK(contains(problem(folder.path(), options), "holds no images"));
  fs::copy_file(kFiles / "rgb.png", folder / "cat/1.PNG");
  fs::copy_file(kFiles / "palette.png", folder / "dog/1.png");
  put(folder / "cat/.hidden", "not looked at");
  CHECK(open_dataset(images_of(folder.path()), options)->examples(Split::kTrain) == 1);

  put(folder / "cat/readme.txt", "text");
  CHECK(contains(problem(folder.path(), options), "readme.txt' is no .png, .jpg or .jpeg file"));
  fs::remove(folder / "cat/readme.txt");
  put(folder / "dog/2.jpg", "no image");
  CHECK(contains(problem(folder.path(), options), "2.jpg' is neither a PNG nor a JPEG file"));
  fs::remove(folder / "dog/2.jpg");
  fs::copy_file(kFiles / "rgb.png", folder / "1.png");
  CHECK(contains(problem(folder.path(), options), "a folder for each class"));
  fs::remove(folder / "1.png");
  CHECK(contains(problem(folder.path(), classifier({3, 9, 7}, 1)), "2 folders of classes"));
  CHECK(contains(problem(folder.path(), classifier({5, 9, 7})), "images are [3,H,W]"));
  CHECK(contains(problem(folder.path(), options, ",resize=zoom"), "resize is 'zoom'"));
  CHECK(opening_error(images_of(folder / "nowhere"), options).code() == ErrorCode::kIo);

  // What is damaged behind its header is found when it is read.
  const auto data = open_dataset(images_of(folder.path(), ",validation=0"), options);
  const std::string good = get(folder / "dog/1.png");
  put(folder / "dog/1.png", good.substr(0, good.size() / 2));
  const Error error = error_of([&] { read_batch(*data, Split::kTrain, 0, {1}); });
  CHECK(error.code() == ErrorCode::kBadInput);
  CHECK(contains(error.message(), "dog/1.png' is a damaged PNG file"));
}

}  // namespace trainscope
