// Changes the images of a batch in place.
#include "datasets/image/changes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

struct Planes {
  std::size_t channels = 1;
  std::ptrdiff_t height = 0;
  std::ptrdiff_t width = 0;

  std::ptrdiff_t plane() const { return height * width; }
};

// Where the pixels of a changed image come from.
struct Move {
  bool flipped = false;
  std::ptrdiff_t down = 0;  // rows of the margin that come into view, from -crop to crop
  std::ptrdiff_t right = 0;
};

// The form of a field's examples as images, if they can be.
std::optional<Planes> planes_of(const Field& field) {
  const TensorType& type = field.example;
  const int rank = type.shape.rank;
  const bool is_float = type.dtype == DType::kF32 || type.dtype == DType::kF64;
  if (!is_float || rank < 2 || rank > 3 || field.batch_axis != 0) return std::nullopt;
  return Planes{.channels = rank == 3 ? static_cast<std::size_t>(type.shape[0]) : 1,
                .height = type.shape[rank - 2],
                .width = type.shape[rank - 1]};
}

// Which field holds images, and their form.
std::pair<std::size_t, Planes> find_images(std::span<const Field> fields, std::string_view labels) {
  std::optional<std::pair<std::size_t, Planes>> found;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::optional<Planes> planes = planes_of(fields[i]);
    if (!planes || fields[i].name == labels) continue;
    if (found) {
      throw Error(ErrorCode::kUsage,
                  fmt::format("--normalize and --augment are for one input of images: '{}' and "
                              "'{}' could be it",
                              printable(fields[found->first].name), printable(fields[i].name)));
    }
    found = {i, *planes};
  }
  require(found.has_value(), ErrorCode::kUsage,
          "--normalize and --augment need an input of floats with examples [C,H,W] or [H,W]");
  return *found;
}

// What has a place for each pixel would stay as it is when the image moves.
void refuse_masks(std::span<const Field> fields, std::size_t images, const Planes& planes) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Shape& shape = fields[i].example.shape;
    const bool is_mask = i != images && shape.rank >= 2 && shape[shape.rank - 2] == planes.height &&
                         shape[shape.rank - 1] == planes.width;
    if (!is_mask) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("--augment would move the images of '{}' and leave '{}', which has a "
                            "place for each of their pixels, as it is",
                            printable(fields[images].name), printable(fields[i].name)))
        .hint("change both before training, and leave --augment out");
  }
}

std::vector<double> of_each_channel(const std::vector<double>& values, std::size_t channels,
                                    std::string_view what) {
  if (values.size() == 1) return std::vector<double>(channels, values.front());
  require(values.empty() || values.size() == channels, ErrorCode::kUsage,
          "--normalize has {} {}, the images have {} channels", values.size(), what, channels);
  return values;
}

class ChangedImages final : public Dataset {
 public:
  ChangedImages(std::shared_ptr<const Dataset> images, std::string_view labels,
                const ImageChanges& changes, std::uint64_t seed)
      : images_(std::move(images)), changes_(changes), seed_(seed) {
    std::tie(field_, planes_) = find_images(images_->fields(), labels);
    if (changes.flip || changes.crop > 0) refuse_masks(images_->fields(), field_, planes_);
    changes_.mean = of_each_channel(changes.mean, planes_.channels, "means");
    changes_.deviation = of_each_channel(changes.deviation, planes_.channels, "deviations");
  }

  std::span<const Field> fields() const override { return images_->fields(); }
  std::int64_t examples(Split split) const override { return images_->examples(split); }
  bool can_pad() const override { return images_->can_pad(); }

  void read(Split split, std::int64_t epoch, std::span<const std::int64_t> indices,
            Batch& out) const override {
    images_->read(split, epoch, indices, out);
    Tensor& images = out.tensors[field_].second;
    if (images.dtype() == DType::kF32) {
      change(split, epoch, indices, images.values<float>());
    } else {
      change(split, epoch, indices, images.values<double>());
    }
  }

  Json description() const override {
    Json description = images_->description();
    if (!changes_.mean.empty()) {
      description.set("mean", Json::list(changes_.mean));
      description.set("deviation", Json::list(changes_.deviation));
    }
    if (changes_.flip) description.set("flip", true);
    if (changes_.crop > 0) description.set("crop", changes_.crop);
    return description;
  }

 private:
  template <typename T>
  void change(Split split, std::int64_t epoch, std::span<const std::int64_t> indices,
              std::span<T> images) const {
    const auto size = planes_.channels * static_cast<std::size_t>(planes_.plane());
    const bool moves = split == Split::kTrain && (changes_.flip || changes_.crop > 0);
    std::vector<T> before(moves ? size : 0);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == kPaddingExample) continue;
      const std::span<T> image = images.subspan(i * size, size);
      if (moves) {
        std::ranges::copy(image, before.begin());
        shift(std::span<const T>(before), image, drawn(epoch, indices[i]));
      }
      normalize(image);
    }
  }

  Move drawn(std::int64_t epoch, std::int64_t index) const {
    const auto words = random_block(seed_, kImageStreams + static_cast<std::uint64_t>(epoch),
                                    static_cast<std::uint64_t>(index));
    const auto places = static_cast<std::uint32_t>(2 * changes_.crop + 1);
    return {.flipped = changes_.flip && words[0] % 2 == 1,
            .down = static_cast<std::ptrdiff_t>(words[1] % places) - changes_.crop,
            .right = static_cast<std::ptrdiff_t>(words[2] % places) - changes_.crop};
  }

  template <typename T>
  void shift(std::span<const T> from, std::span<T> to, const Move& by) const {
    const std::ptrdiff_t height = planes_.height;
    const std::ptrdiff_t width = planes_.width;
    for (std::size_t c = 0; c < planes_.channels; ++c) {
      const T* plane = from.data() + static_cast<std::ptrdiff_t>(c) * planes_.plane();
      T* result = to.data() + static_cast<std::ptrdiff_t>(c) * planes_.plane();
      for (std::ptrdiff_t y = 0; y < height; ++y) {
        const std::ptrdiff_t row = y + by.down;
        for (std::ptrdiff_t x = 0; x < width; ++x) {
          const std::ptrdiff_t column = (by.flipped ? width - 1 - x : x) + by.right;
          const bool is_inside = row >= 0 && row < height && column >= 0 && column < width;
          result[y * width + x] = is_inside ? plane[row * width + column] : T{0};
        }
      }
    }
  }

  template <typename T>
  void normalize(std::span<T> image) const {
    if (changes_.mean.empty()) return;
    const auto plane = static_cast<std::size_t>(planes_.plane());
    for (std::size_t c = 0; c < planes_.channels; ++c) {
      const T mean = static_cast<T>(changes_.mean[c]);
      const T deviation = static_cast<T>(changes_.deviation[c]);
      for (T& value : image.subspan(c * plane, plane)) value = (value - mean) / deviation;
    }
  }

  std::shared_ptr<const Dataset> images_;
  ImageChanges changes_;
  std::uint64_t seed_;
  std::size_t field_ = 0;
  Planes planes_;
};

}  // namespace

std::shared_ptr<const Dataset> with_image_changes(std::shared_ptr<const Dataset> images,
                                                  std::string_view labels,
                                                  const ImageChanges& changes, std::uint64_t seed) {
  if (!changes.is_any()) return images;
  return std::make_shared<ChangedImages>(std::move(images), labels, changes, seed);
}

}  // namespace trainscope
