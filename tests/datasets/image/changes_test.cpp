// Normalisation, flips and moves of images, and that they depend on seed, epoch and index alone.
#include "datasets/image/changes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "datasets/readers/table.h"
#include "tests/datasets/dataset_tools.h"

namespace trainscope {
namespace {

// 20 images of 2 channels, 3 x 4: image i holds 1000 i + 100 c + 10 y + x + 1, none of them 0.
std::shared_ptr<const Dataset> numbered_images(DType dtype = DType::kF32) {
  Tensor values({.dtype = DType::kF32, .shape = {20, 2, 3, 4}});
  for (std::int64_t i = 0; i < values.elements(); ++i) {
    const std::int64_t x = i % 4;
    const std::int64_t y = i / 4 % 3;
    const std::int64_t c = i / 12 % 2;
    values.values<float>()[static_cast<std::size_t>(i)] =
        static_cast<float>(1000 * (i / 24) + 100 * c + 10 * y + x + 1);
  }
  Tensor labels({.dtype = DType::kI64, .shape = {20}});
  std::ranges::fill(labels.values<std::int64_t>(), 0);
  Table table{.inputs = {},
              .labels = Column{.name = "labels", .values = std::move(labels)},
              .validation_fraction = 0.1,
              .description = Json::object({})};
  table.inputs.push_back({.name = "x", .values = convert(values, dtype)});
  return make_table_dataset(parse_data_spec("synthetic"), std::move(table));
}

std::vector<float> image_of(const Dataset& data, Split split, std::int64_t epoch,
                            std::int64_t index) {
  const Tensor images =
      convert(read_batch(data, split, epoch, {index}).tensors.front().second, DType::kF32);
  const std::span<const float> values = images.values<float>();
  return {values.begin(), values.end()};
}

// The image as it was: flipped back by hand.
std::vector<float> flipped(const std::vector<float>& image) {
  std::vector<float> result = image;
  for (std::size_t row = 0; row < image.size(); row += 4) {
    std::reverse(result.begin() + static_cast<std::ptrdiff_t>(row),
                 result.begin() + static_cast<std::ptrdiff_t>(row) + 4);
  }
  return result;
}

}  // namespace

TEST_CASE("image changes: none leave the data as they are") {
  const auto data = numbered_images();
  CHECK(with_image_changes(data, "labels", {}, 1) == data);
}

TEST_CASE("image changes: normalisation, of each channel, of both splits and of doubles") {
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const auto plain = numbered_images(dtype);
    const auto data =
        with_image_changes(plain, "labels", {.mean = {1.0, 2.0}, .deviation = {2.0}}, 1);
    for (const Split split : {Split::kTrain, Split::kValidation}) {
      const std::vector<float> before = image_of(*plain, split, 0, 1);
      const std::vector<float> after = image_of(*data, split, 0, 1);
      for (std::size_t i = 0; i < before.size(); ++i) {
        CHECK(after[i] == (before[i] - (i < 12 ? 1.0F : 2.0F)) / 2.0F);
      }
    }
    CHECK(data->description().at("mean").dump() == "[1.0,2.0]");
  }
}

TEST_CASE("image changes: about half of the images that train are flipped, anew in each epoch") {
  const auto plain = numbered_images();
  const auto data = with_image_changes(plain, "labels", {.flip = true}, 7);
  int count = 0;
  int changed = 0;
  for (std::int64_t epoch = 0; epoch < 10; ++epoch) {
    for (std::int64_t i = 0; i < 18; ++i) {
      const std::vector<float> before = image_of(*plain, Split::kTrain, epoch, i);
      const std::vector<float> after = image_of(*data, Split::kTrain, epoch, i);
      const bool is_flipped = after == flipped(before);
      CHECK((is_flipped || after == before));
      count += is_flipped ? 1 : 0;
      changed += after != image_of(*data, Split::kTrain, epoch + 1, i) ? 1 : 0;
    }
  }
  CHECK(count > 60);
  CHECK(count < 120);
  CHECK(changed > 60);
  CHECK(image_of(*data, Split::kValidation, 0, 1) == image_of(*plain, Split::kValidation, 0, 1));
}

TEST_CASE("image changes: a crop moves by up to so many pixels, zeros come in") {
  const auto plain = numbered_images();
  const auto data = with_image_changes(plain, "labels", {.crop = 1}, 7);
  std::map<std::pair<int, int>, int> seen;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) {
    const std::vector<float> before = image_of(*plain, Split::kTrain, epoch, 3);
    const std::vector<float> after = image_of(*data, Split::kTrain, epoch, 3);
    // What is in the middle says how far: no other pixel has its number.
    const int number = static_cast<int>(after[5]) - 3001;
    const int down = number / 10 - 1;
    const int right = number % 10 - 1;
    REQUIRE(std::abs(down) <= 1);
    REQUIRE(std::abs(right) <= 1);
    ++seen[{down, right}];
    for (int c = 0; c < 2; ++c) {
      for (int y = 0; y < 3; ++y) {
        for (int x = 0; x < 4; ++x) {
          const bool is_inside = y + down >= 0 && y + down < 3 && x + right >= 0 && x + right < 4;
          const auto at = static_cast<std::size_t>(12 * c + 4 * y + x);
          const auto from = static_cast<std::size_t>(12 * c + 4 * (y + down) + x + right);
          CHECK(after[at] == (is_inside ? before[from] : 0.0F));
        }
      }
    }
  }
  CHECK(seen.size() > 4);
}

TEST_CASE("image changes: the same whatever else is in the batch") {
  const auto data = with_image_changes(numbered_images(), "labels", {.flip = true, .crop = 2}, 3);
  const Batch batch = read_batch(*data, Split::kTrain, 4, {9, 2, kPaddingExample, 11});
  const Tensor& images = batch.tensors.front().second;
  const auto part = [&](std::size_t i) {
    const auto values = images.values<float>().subspan(24 * i, 24);
    return std::vector<float>(values.begin(), values.end());
  };
  CHECK(part(1) == image_of(*data, Split::kTrain, 4, 2));
  CHECK(part(3) == image_of(*data, Split::kTrain, 4, 11));
  CHECK(part(2) == std::vector<float>(24, 0.0F));
  const auto other = with_image_changes(numbered_images(), "labels", {.flip = true, .crop = 2}, 4);
  CHECK(image_of(*other, Split::kTrain, 4, 2) != part(1));
}

TEST_CASE("image changes: data that are no images are refused") {
  const auto refused = [](std::shared_ptr<const Dataset> data, const ImageChanges& changes) {
    const Error error = error_of([&] { with_image_changes(data, "labels", changes, 1); });
    CHECK(error.code() == ErrorCode::kUsage);
    return std::string(error.message());
  };
  CHECK(contains(refused(numbered_images(), {.mean = {1, 2, 3}, .deviation = {1}}),
                 "3 means, the images have 2 channels"));
  Table pair{.inputs = {}, .labels = {}, .description = Json::object({})};
  for (const char* name : {"left", "right"}) {
    pair.inputs.push_back(
        {.name = name, .values = Tensor({.dtype = DType::kF32, .shape = {20, 3, 4, 4}})});
  }
  CHECK(contains(
      refused(make_table_dataset(parse_data_spec("synthetic"), std::move(pair)), {.flip = true}),
      "'left' and 'right' could be it"));
  // A mask would not move with its image; normalised it may be.
  Table masked{.inputs = {}, .labels = {}, .description = Json::object({})};
  masked.inputs.push_back(
      {.name = "x", .values = Tensor({.dtype = DType::kF32, .shape = {20, 3, 4, 4}})});
  masked.labels =
      Column{.name = "mask", .values = Tensor({.dtype = DType::kI64, .shape = {20, 4, 4}})};
  const std::shared_ptr<const Dataset> with_mask =
      make_table_dataset(parse_data_spec("synthetic"), std::move(masked));
  CHECK(contains(refused(with_mask, {.crop = 1}), "leave 'mask', which has a place for each"));
  CHECK(with_image_changes(with_mask, "mask", {.mean = {0.5}, .deviation = {1}}, 1) != with_mask);

  // Labels are no images.
  Table numbers{.inputs = {}, .labels = {}, .description = Json::object({})};
  numbers.inputs.push_back(
      {.name = "ids", .values = Tensor({.dtype = DType::kI64, .shape = {20, 4}})});
  numbers.labels =
      Column{.name = "labels", .values = Tensor({.dtype = DType::kF32, .shape = {20, 4, 4}})};
  CHECK(contains(
      refused(make_table_dataset(parse_data_spec("synthetic"), std::move(numbers)), {.flip = true}),
      "need an input of floats"));
  const std::string flowers =
      (std::filesystem::path(TRAINSCOPE_SOURCE_DIR) / "datasets/samples/flowers.csv").string();
  const std::shared_ptr<const Dataset> rows =
      open_dataset("csv:" + flowers + ",label=kind", flower_options());
  CHECK(contains(refused(rows, {.flip = true}), "need an input of floats with examples [C,H,W]"));
}

}  // namespace trainscope
