// Reads IDX files, plain or gzipped, into a table.
#include "datasets/readers/idx.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/format.h"
#include "datasets/inflate.h"
#include "datasets/readers/features.h"
#include "engine/core/error.h"
#include "engine/core/file.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{2} << 30;  // of pixels: 8 GiB as floats
constexpr std::byte kUnsignedByte{0x08};
constexpr std::array kGzipMagic = {std::byte{0x1F}, std::byte{0x8B}};

// The bytes of a file in order, decompressed if they are compressed.
class IdxBytes {
 public:
  explicit IdxBytes(const std::string& file)
      : file_(std::make_shared<const MappedFile>(MappedFile::open(file))), name_(printable(file)) {
    const std::span<const std::byte> bytes = file_->bytes();
    const bool gzipped = bytes.size() >= 2 && std::ranges::equal(bytes.first(2), kGzipMagic);
    if (gzipped) inflater_.emplace(SharedBytes(file_), CompressedForm::kGzip, name_);
  }

  const std::string& name() const { return name_; }
  std::string hash() const { return hash_hex(hash_bytes(file_->bytes())); }

  // Fills `into`, or what there is of it; the number of bytes.
  std::size_t read_some(std::span<std::byte> into) {
    if (inflater_) return inflater_->read(into);
    const std::uint64_t left = file_->size_bytes() - position_;
    const std::size_t count = std::min<std::uint64_t>(left, into.size());
    file_->read(position_, into.first(count));
    position_ += count;
    return count;
  }

  // More than this cannot follow the header.
  std::uint64_t most_bytes() const {
    return inflater_ ? file_->size_bytes() * kMaxInflation : file_->size_bytes();
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::string name_;
  std::optional<Inflater> inflater_;
  std::uint64_t position_ = 0;
};

struct IdxContent {
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
  std::string hash;  // of the file
};

void read_header(IdxBytes& file, std::span<std::byte> into) {
  require(file.read_some(into) == into.size(), ErrorCode::kBadInput,
          "'{}' ends within its IDX header", file.name());
}

// The dimensions that a header gives; `rank` is how many there must be.
std::vector<std::int64_t> read_dims(IdxBytes& file, std::size_t rank) {
  std::array<std::byte, 4> magic{};
  read_header(file, magic);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is no IDX file: it begins with {:02x} {:02x}", file.name(),
                            std::to_integer<int>(magic[0]), std::to_integer<int>(magic[1])))
        .hint("the form is idx:IMAGES,LABELS");
  }
  require(magic[2] == kUnsignedByte, ErrorCode::kBadInput,
          "'{}' holds IDX type 0x{:02x}: expected 0x08, unsigned bytes", file.name(),
          std::to_integer<int>(magic[2]));
  const auto stored = std::to_integer<std::size_t>(magic[3]);
  if (stored != rank) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' has {} dimensions: expected {}", file.name(), stored, rank))
        .hint("images have 3 dimensions, labels 1; the form is idx:IMAGES,LABELS");
  }
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < rank; ++i) {
    std::array<std::byte, 4> dim{};
    read_header(file, dim);
    std::int64_t value = 0;
    for (const std::byte byte : dim) value = (value << 8) | std::to_integer<std::int64_t>(byte);
    require(value > 0, ErrorCode::kBadInput, "'{}': dimension {} is 0", file.name(), i);
    dims.push_back(value);
  }
  return dims;
}

// The number of bytes after the header, known to be possible before memory is taken for them.
std::size_t payload_bytes(const IdxBytes& file, std::span<const std::int64_t> dims) {
  std::uint64_t bytes = 1;
  for (const std::int64_t dim : dims) {
    const bool overflow = __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes);
    require(!overflow && bytes <= kMaxBytes, ErrorCode::kBadInput,
            "'{}' is {}: more than the {} that can be read", file.name(), shape_text(dims),
            human_bytes(kMaxBytes));
  }
  require(bytes <= file.most_bytes(), ErrorCode::kBadInput,
          "'{}' is {} by its header, {} bytes: the file is too short for that", file.name(),
          shape_text(dims), bytes);
  return static_cast<std::size_t>(bytes);
}

IdxContent read_idx(const std::string& path, std::size_t rank) {
  IdxBytes file(path);
  IdxContent content{.dims = read_dims(file, rank), .bytes = {}, .hash = {}};
  content.bytes.resize(payload_bytes(file, content.dims));
  const std::size_t got = file.read_some(content.bytes);
  require(got == content.bytes.size(), ErrorCode::kBadInput,
          "'{}' is {} by its header, but only {} of {} bytes follow", file.name(),
          shape_text(content.dims), got, content.bytes.size());
  std::array<std::byte, 1> more{};
  require(file.read_some(more) == 0, ErrorCode::kBadInput,
          "'{}' is {} by its header, but more than {} bytes follow", file.name(),
          shape_text(content.dims), got);
  content.hash = file.hash();
  return content;
}

// [1,H,W], [H,W] or [H*W], by the rank that the model has.
bool image_fits(const WantedField& wanted, std::int64_t height, std::int64_t width) {
  const std::vector<std::int64_t>& dims = *wanted.dims;
  using Dims = std::vector<std::int64_t>;
  if (dims.size() == 1) return dims == Dims{height * width};
  if (dims.size() == 2) return dims == Dims{height, width};
  return dims == Dims{1, height, width};
}

const WantedField& image_input(const DataSpec& spec, const FeatureRoles& roles,
                               const IdxContent& images) {
  const WantedField& input = *roles.features.front();
  const bool takes_pixels = input.dtype == DType::kU8 || is_float(input.dtype);
  require(roles.features.size() == 1 && takes_pixels, ErrorCode::kUsage,
          "data '{}': idx feeds one input of floats or u8, the model has other inputs",
          printable(spec.text));
  elements_of(spec, input);  // refuses open dimensions
  require(image_fits(input, images.dims[1], images.dims[2]), ErrorCode::kBadInput,
          "'{}' has images of {}x{}, but '{}' takes {} an example", printable(spec.file()),
          images.dims[1], images.dims[2], printable(input.name), shape_text(*input.dims));
  return input;
}

template <typename T>
void scale(std::span<const std::byte> pixels, std::span<T> values) {
  std::ranges::transform(pixels, values.begin(), [](std::byte pixel) {
    return static_cast<T>(std::to_integer<int>(pixel)) / T{255};
  });
}

Tensor image_tensor(const WantedField& input, const IdxContent& images) {
  Tensor tensor(table_type(input, images.dims[0]));
  if (input.dtype == DType::kU8) {
    std::ranges::copy(images.bytes, tensor.data());  // as they are: the model scales them
  } else if (input.dtype == DType::kF32) {
    scale(images.bytes, tensor.values<float>());
  } else {
    scale(images.bytes, tensor.values<double>());
  }
  return tensor;
}

Tensor label_tensor(const DataSpec& spec, const WantedField& wanted, const IdxContent& labels) {
  const bool integers = wanted.dtype == DType::kI64 || wanted.dtype == DType::kI32;
  const std::int64_t elements = elements_of(spec, wanted);
  require(integers && elements == 1, ErrorCode::kUsage,
          "data '{}': idx has one integer label an example, '{}' is {} of {}", printable(spec.text),
          printable(wanted.name), shape_text(*wanted.dims), name_of(wanted.dtype));
  Tensor tensor(table_type(wanted, labels.dims[0]));
  const auto upcast = [](std::byte label) { return std::to_integer<std::uint8_t>(label); };
  if (wanted.dtype == DType::kI64) {
    std::ranges::transform(labels.bytes, tensor.values<std::int64_t>().begin(), upcast);
  } else {
    std::ranges::transform(labels.bytes, tensor.values<std::int32_t>().begin(), upcast);
  }
  return tensor;
}

}  // namespace

std::unique_ptr<Dataset> open_idx(const DataSpec& spec, const DatasetOptions& options) {
  const FeatureRoles roles = feature_roles(spec, options);
  const IdxContent images = read_idx(spec.files[0], 3);
  const WantedField& input = image_input(spec, roles, images);
  const IdxContent labels = read_idx(spec.files[1], 1);
  require(images.dims[0] == labels.dims[0], ErrorCode::kBadInput,
          "'{}' has {} images, '{}' has {} labels", printable(spec.files[0]), images.dims[0],
          printable(spec.files[1]), labels.dims[0]);
  Table table = make_table(spec, options,
                           Json::object({{"kind", spec.format},
                                         {"file", Json::list(spec.files)},
                                         {"examples", images.dims[0]},
                                         {"images_xxh3", images.hash},
                                         {"labels_xxh3", labels.hash}}));
  add_column(table, roles, input, image_tensor(input, images));
  if (roles.labels != nullptr) {
    add_column(table, roles, *roles.labels, label_tensor(spec, *roles.labels, labels));
  }
  return make_table_dataset(spec, std::move(table));
}

DataFormat idx_format() {
  return {.name = "idx",
          .form = "idx:IMAGES,LABELS[,validation=FRACTION]",
          .files = 2,
          .endings = {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"},
          .open = open_idx};
}

}  // namespace trainscope
