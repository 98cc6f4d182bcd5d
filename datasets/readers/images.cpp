// Reads folders of images into a table whose rows are decoded when they are needed.
#include "datasets/readers/images.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "datasets/image/decode.h"
#include "datasets/readers/features.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/folder.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{256} << 20;
constexpr std::string_view kForm = "images:FOLDER[,resize=none|stretch|cover,validation=FRACTION]";

// The images of a folder, class by class, each class in the order of names.
struct ImageFiles {
  std::vector<std::filesystem::path> files;
  std::vector<std::int64_t> labels;      // of each file; empty without classes
  std::vector<std::string> class_names;  // of the labels
};

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return text;
}

bool is_image_name(const std::string& name) {
  const std::string ending = lower(name);
  return ending.ends_with(".png") || ending.ends_with(".jpg") || ending.ends_with(".jpeg");
}

// Names of the entries that count, sorted.
std::vector<std::string> entries_of(const std::filesystem::path& folder) {
  std::vector<std::string> names = Folder::open(folder).list();
  std::erase_if(names, [](const std::string& name) { return name.starts_with('.'); });
  return names;
}

void add_images(const std::filesystem::path& folder, std::int64_t label, ImageFiles& found) {
  for (const std::string& name : entries_of(folder)) {
    const std::filesystem::path file = folder / name;
    if (!is_image_name(name)) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("'{}' is no .png, .jpg or .jpeg file", printable(file.string())))
          .hint("convert it, or move it out of the folder");
    }
    found.files.push_back(file);
    found.labels.push_back(label);
  }
}

std::int64_t label_of(const DataSpec& spec, const std::vector<std::string>& names,
                      const std::string& name) {
  const auto found = std::ranges::find(names, name);
  require(found != names.end(), ErrorCode::kBadInput,
          "'{}' has a folder '{}': the classes of the training data are {}", printable(spec.file()),
          printable(name), printable(join(names, ", "), 400));
  return found - names.begin();
}

ImageFiles files_of_classes(const DataSpec& spec, const DatasetOptions& options,
                            const std::vector<std::string>& entries) {
  const std::filesystem::path root = spec.file();
  ImageFiles found{.files = {}, .labels = {}, .class_names = options.class_names};
  if (found.class_names.empty()) found.class_names = entries;
  for (const std::string& name : entries) {
    if (is_image_name(name)) {
      throw Error(ErrorCode::kBadInput, fmt::format("'{}' holds the image '{}' itself",
                                                    printable(spec.file()), printable(name)))
          .hint(
              "a folder for each class: FOLDER/cat/1.png; only `predict` reads images without "
              "classes");
    }
    add_images(root / name, label_of(spec, found.class_names, name), found);
  }
  return found;
}

ImageFiles find_files(const DataSpec& spec, const DatasetOptions& options, bool with_labels) {
  const std::vector<std::string> entries = entries_of(spec.file());
  const bool is_flat = std::ranges::any_of(entries, is_image_name);
  ImageFiles found;
  if (with_labels || !is_flat) {
    found = files_of_classes(spec, options, entries);
  } else {
    add_images(spec.file(), 0, found);
  }
  require(!found.files.empty(), ErrorCode::kBadInput, "'{}' holds no images",
          printable(spec.file()));
  return found;
}

// What the model takes of an image.
struct ImageInput {
  const WantedField* field = nullptr;
  int channels = 1;
  ImageSize size = {};
};

ImageInput image_input(const DataSpec& spec, const FeatureRoles& roles) {
  const WantedField& field = *roles.features.front();
  const bool takes_pixels =
      field.dtype == DType::kU8 || field.dtype == DType::kF32 || field.dtype == DType::kF64;
  require(roles.features.size() == 1 && takes_pixels, ErrorCode::kUsage,
          "data '{}': images feed one input of floats or u8, the model has other inputs",
          printable(spec.text));
  elements_of(spec, field);  // refuses open dimensions
  const std::vector<std::int64_t>& dims = *field.dims;
  const bool is_plane = dims.size() == 2 || (dims.size() == 3 && dims[0] == 1);
  const bool is_rgb = dims.size() == 3 && dims[0] == 3;
  const std::int64_t height = dims.size() < 2 ? 0 : dims[dims.size() - 2];
  const std::int64_t width = dims.empty() ? 0 : dims.back();
  const bool fits = (is_plane || is_rgb) && height > 0 && width > 0 && height <= kMostPixels &&
                    width <= kMostPixels && height * width <= kMostPixels;
  require(fits, ErrorCode::kUsage,
          "data '{}': '{}' takes {} an example: images are [3,H,W], [1,H,W] or [H,W]",
          printable(spec.text), printable(field.name), shape_text(dims));
  return {.field = &field,
          .channels = is_rgb ? 3 : 1,
          .size = {.height = static_cast<int>(height), .width = static_cast<int>(width)}};
}

Resize resize_of(const DataSpec& spec) {
  const std::string how = spec.option("resize", "none");
  if (how == "none") return Resize::kNone;
  if (how == "stretch") return Resize::kStretch;
  if (how == "cover") return Resize::kCover;
  throw Error(ErrorCode::kUsage,
              fmt::format("data '{}': resize is '{}'", printable(spec.text), printable(how)))
      .hint("resize is none, stretch or cover");
}

// [height, width, channels] to [channels, height, width].
template <typename T, class Value>
void to_planes(const Image& image, T* planes, const Value& value) {
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t pixels = image.pixels.size() / channels;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = 0; i < pixels; ++i) {
      planes[c * pixels + i] = value(image.pixels[i * channels + c]);
    }
  }
}

class ImageRows final : public RowSource {
 public:
  ImageRows(std::vector<std::filesystem::path> files, const ImageInput& input, Resize resize)
      : files_(std::move(files)),
        type_(table_type(*input.field, static_cast<std::int64_t>(files_.size()))),
        channels_(input.channels),
        size_(input.size),
        resize_(resize) {}

  TensorType type() const override { return type_; }

  void read(std::int64_t row, std::span<std::byte> into) const override {
    const std::filesystem::path& file = files_[static_cast<std::size_t>(row)];
    const std::string content = read_file(file, kMostFileBytes);
    Image image = decode_image(std::as_bytes(std::span(content)), file.string());
    if (resize_ != Resize::kNone) image = resized(image, size_, resize_);
    require(ImageSize{.height = image.height, .width = image.width} == size_, ErrorCode::kBadInput,
            "'{}' is another image than when the folder was opened", printable(file.string()));
    image = with_channels(std::move(image), channels_);
    if (type_.dtype == DType::kU8) {
      to_planes(image, reinterpret_cast<std::uint8_t*>(into.data()),
                [](std::uint8_t v) { return v; });
    } else if (type_.dtype == DType::kF32) {
      to_planes(image, reinterpret_cast<float*>(into.data()),
                [](std::uint8_t v) { return static_cast<float>(v) / 255.0F; });
    } else {
      to_planes(image, reinterpret_cast<double*>(into.data()),
                [](std::uint8_t v) { return v / 255.0; });
    }
  }

 private:
  std::vector<std::filesystem::path> files_;
  TensorType type_;
  int channels_;
  ImageSize size_;
  Resize resize_;
};

// Reads every header; the hash of names, lengths and content (of each file the first MiB), which
// tells another set.
std::string check_files(const ImageFiles& found, const ImageInput& input, Resize resize) {
  constexpr std::size_t kHashed = std::size_t{1} << 20;
  std::string all;
  for (const std::filesystem::path& file : found.files) {
    const MappedFile mapped = MappedFile::open(file);
    require(mapped.size_bytes() <= kMostFileBytes, ErrorCode::kBadInput,
            "'{}' is {}: more than the {} that an image may have", printable(file.string()),
            human_bytes(mapped.size_bytes()), human_bytes(kMostFileBytes));
    const ImageSize size = image_size(mapped.bytes(), file.string());
    if (resize == Resize::kNone && size != input.size) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("'{}' has {} x {} pixels, '{}' takes {} x {}",
                              printable(file.string()), size.height, size.width,
                              printable(input.field->name), input.size.height, input.size.width))
          .hint("resize=cover takes the middle of an image, resize=stretch all of it");
    }
    const auto begin = mapped.bytes().first(std::min<std::size_t>(mapped.size_bytes(), kHashed));
    all += fmt::format("{}/{} {} {}\n", file.parent_path().filename().string(),
                       file.filename().string(), mapped.size_bytes(), hash_hex(hash_bytes(begin)));
  }
  return hash_hex(hash_bytes(std::as_bytes(std::span(all))));
}

Tensor label_tensor(const DataSpec& spec, const WantedField& wanted, const ImageFiles& found) {
  const std::int64_t elements = elements_of(spec, wanted);
  require(is_index_type(wanted.dtype) && elements == 1, ErrorCode::kUsage,
          "data '{}': images have one class an example, '{}' is {} of {}", printable(spec.text),
          printable(wanted.name), shape_text(*wanted.dims), name_of(wanted.dtype));
  const auto classes = static_cast<std::int64_t>(found.class_names.size());
  require(wanted.bound == 0 || classes <= wanted.bound, ErrorCode::kBadInput,
          "'{}' has {} folders of classes, the model has {} classes", printable(spec.file()),
          classes, wanted.bound);
  Tensor labels(table_type(wanted, static_cast<std::int64_t>(found.labels.size())));
  if (wanted.dtype == DType::kI64) {
    std::ranges::copy(found.labels, labels.values<std::int64_t>().begin());
  } else {
    std::ranges::transform(found.labels, labels.values<std::int32_t>().begin(),
                           [](std::int64_t label) { return static_cast<std::int32_t>(label); });
  }
  return labels;
}

}  // namespace

std::unique_ptr<Dataset> open_images(const DataSpec& spec, const DatasetOptions& options) {
  const FeatureRoles roles = feature_roles(spec, options);
  const ImageInput input = image_input(spec, roles);
  const Resize resize = resize_of(spec);
  ImageFiles found = find_files(spec, options, roles.labels != nullptr);
  const std::string hash = check_files(found, input, resize);
  Json description = Json::object({{"kind", spec.format},
                                   {"file", spec.file()},
                                   {"resize", spec.option("resize", "none")},
                                   {"examples", found.files.size()},
                                   {"xxh3", hash}});
  if (!found.class_names.empty()) {
    description.set(std::string(kClassNames), Json::list(found.class_names));
  }
  DatasetOptions drawn = options;
  if (!drawn.validation_seed) drawn.validation_seed = 0;
  Table table = make_table(spec, options.without_labels ? options : drawn, std::move(description));
  table.inputs.push_back({.name = input.field->name,
                          .rows = std::make_shared<ImageRows>(found.files, input, resize),
                          .batch_axis = input.field->batch_axis});
  if (roles.labels != nullptr) {
    add_column(table, roles, *roles.labels, label_tensor(spec, *roles.labels, found));
  }
  return make_table_dataset(spec, std::move(table));
}

DataFormat images_format() {
  return {
      .name = "images", .form = kForm, .options = {"validation", "resize"}, .open = open_images};
}

}  // namespace trainscope
