// Reads .npy headers and arrays out of a zip archive.
#include "datasets/npz.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kMaxHeaderBytes = std::size_t{64} << 10;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The Python dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (5, 2), }.
class HeaderText {
 public:
  HeaderText(std::string_view name, std::string_view text) : name_(name), rest_(text) {}

  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;

  void parse() {
    expect('{');
    while (!take('}')) {
      const std::string key = quoted_text();
      expect(':');
      read_value(key);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    require(trim(rest_).empty(), ErrorCode::kBadInput, "'{}': text follows the array's header",
            name_);
    require(!descr.empty() && fortran_order && shape, ErrorCode::kBadInput,
            "'{}': the array's header needs descr, fortran_order and shape", name_);
  }

 private:
  [[noreturn]] void damaged() const {
    fail(ErrorCode::kBadInput, "'{}': the array's header cannot be read at '{}'", name_,
         printable(rest_, 40));
  }
  bool take(char c) {
    rest_ = trim(rest_);
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    rest_ = trim(rest_);
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(char c) {
    if (!take(c)) damaged();
  }

  std::string quoted_text() {
    expect('\'');
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) damaged();
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  void read_value(const std::string& key) {
    if (key == "descr" && descr.empty()) {
      require(!take('['), ErrorCode::kBadInput, "'{}' is an array of records: expected numbers",
              name_);
      descr = quoted_text();
    } else if (key == "fortran_order" && !fortran_order) {
      fortran_order = take("True");
      if (!*fortran_order && !take("False")) damaged();
    } else if (key == "shape" && !shape) {
      shape = dims();
    } else {
      fail(ErrorCode::kBadInput, "'{}': unexpected key '{}' in the array's header", name_,
           printable(key));
    }
  }

  std::vector<std::int64_t> dims() {
    expect('(');
    std::vector<std::int64_t> all;
    while (!take(')')) {
      rest_ = trim(rest_);
      const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
      const std::optional<std::int64_t> dim = parse_int(rest_.substr(0, digits));
      if (!dim) damaged();
      all.push_back(*dim);
      rest_.remove_prefix(digits);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return all;
  }

  std::string name_;
  std::string_view rest_;
};

struct DtypeRow {
  std::string_view stored;
  DType dtype;
  std::size_t bytes;
};

constexpr DtypeRow kDtypes[] = {
    {"f4", DType::kF32, 4},  {"f8", DType::kF64, 8}, {"i4", DType::kI32, 4}, {"i8", DType::kI64, 8},
    {"b1", DType::kBool, 1}, {"i1", DType::kI64, 1}, {"u1", DType::kI64, 1}, {"i2", DType::kI64, 2},
    {"u2", DType::kI64, 2},  {"u4", DType::kI64, 4},
};

const DtypeRow& find_dtype(std::string_view name, std::string_view descr) {
  const char order = descr.front();
  const bool has_order = order == '<' || order == '>' || order == '|' || order == '=';
  const std::string_view stored = has_order ? descr.substr(1) : descr;
  if (order == '>') {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is '{}': big-endian", name, printable(descr)))
        .hint("save it after array.astype('<" + printable(stored) + "')");
  }
  const auto row = std::ranges::find(kDtypes, stored, &DtypeRow::stored);
  if (row == std::end(kDtypes)) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("'{}' is of type '{}', which cannot be read", name, printable(descr)))
        .hint("float32, float64, bool and integers up to int64 can be read");
  }
  return *row;
}

// Checked before memory is taken: dimensions that multiply to what the entry holds.
Shape npy_shape(std::string_view name, const std::vector<std::int64_t>& dims,
                std::uint64_t item_bytes, std::uint64_t data_bytes) {
  require(dims.size() <= kMaxRank, ErrorCode::kBadInput, "'{}' has {} dimensions: at most {}", name,
          dims.size(), kMaxRank);
  std::uint64_t bytes = item_bytes;
  bool overflow = false;
  bool empty = false;
  for (const std::int64_t dim : dims) {
    empty = empty || dim == 0;
    if (dim > 0) {
      overflow = overflow || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes);
    }
  }
  require(!overflow && (empty ? 0 : bytes) == data_bytes, ErrorCode::kBadInput,
          "'{}' is {} of {} bytes each by its header, but {} bytes follow", name, shape_text(dims),
          item_bytes, data_bytes);
  return Shape(dims);
}

template <typename T>
T stored_number(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void upcast(std::span<const std::byte> data, Tensor& tensor) {
  const auto values = tensor.values<std::int64_t>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::int64_t{stored_number<T>(data.data() + i * sizeof(T))};
  }
}

void upcast(const NpyHeader& header, std::span<const std::byte> data, Tensor& tensor) {
  if (header.stored_dtype == "i1") return upcast<std::int8_t>(data, tensor);
  if (header.stored_dtype == "u1") return upcast<std::uint8_t>(data, tensor);
  if (header.stored_dtype == "i2") return upcast<std::int16_t>(data, tensor);
  if (header.stored_dtype == "u2") return upcast<std::uint16_t>(data, tensor);
  CHECK_INVARIANT(header.stored_dtype == "u4");
  upcast<std::uint32_t>(data, tensor);
}

// A bool that is neither 0 nor 1 would be undefined to read.
void copy_truths(std::string_view name, std::span<const std::byte> data, Tensor& tensor) {
  const bool fine =
      std::ranges::all_of(data, [](std::byte b) { return b == std::byte{0} || b == std::byte{1}; });
  require(fine, ErrorCode::kBadInput, "'{}' holds a truth value that is neither 0 nor 1", name);
  std::ranges::copy(data, tensor.data());
}

Tensor tensor_of(std::string_view name, const NpyHeader& header, std::span<const std::byte> data) {
  Tensor tensor(header.type);
  if (header.type.dtype == DType::kBool) {
    copy_truths(name, data, tensor);
  } else if (header.type.dtype == DType::kI64 && header.stored_dtype != "i8") {
    upcast(header, data, tensor);
  } else {
    std::ranges::copy(data, tensor.data());
  }
  return tensor;
}

// An error of an array says in which file it is.
template <typename F>
auto in_file(const MappedFile& file, F read) {
  try {
    return read();
  } catch (Error& error) {
    error.at(printable(file.path().string()));
    throw;
  }
}

class NpzArchive final : public TensorArchive {
 public:
  explicit NpzArchive(MappedFile file)
      : file_(std::make_shared<const MappedFile>(std::move(file))) {
    for (ZipEntry& entry : zip_entries(file_)) {
      if (!entry.name.ends_with(kEnding)) continue;
      std::string name = entry.name.substr(0, entry.name.size() - kEnding.size());
      entries_.emplace(std::move(name), std::move(entry));
    }
    require(!entries_.empty(), ErrorCode::kBadInput, "'{}' is a zip archive without .npy arrays",
            printable(file_->path().string()));
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }
  bool contains(std::string_view name) const override { return entries_.contains(name); }
  std::uint64_t content_hash() const override { return hash_bytes(file_->bytes()); }

  TensorType type(std::string_view name) const override {
    const ZipEntry& found = entry(name);
    return in_file(*file_, [&] {
      const std::vector<std::byte> begin = read_entry_begin(found, kMaxHeaderBytes);
      return parse_npy_header(printable(name), begin, found.size_bytes).type;
    });
  }
  Tensor tensor(std::string_view name) const override {
    const ZipEntry& found = entry(name);
    return in_file(*file_, [&] {
      const std::vector<std::byte> bytes = read_entry(found);
      const NpyHeader header = parse_npy_header(printable(name), bytes, bytes.size());
      return tensor_of(printable(name), header, std::span(bytes).subspan(header.data_offset));
    });
  }

 private:
  const ZipEntry& entry(std::string_view name) const {
    const auto found = entries_.find(name);
    require(found != entries_.end(), ErrorCode::kBadInput, "'{}' is missing in '{}'",
            printable(name), printable(file_->path().string()));
    return found->second;
  }

  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, ZipEntry, std::less<>> entries_;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view name, std::span<const std::byte> begin,
                           std::uint64_t size_bytes) {
  const std::string_view text = as_text(begin);
  require(text.size() >= 10 && text.starts_with(kMagic), ErrorCode::kBadInput,
          "'{}' is no .npy array", name);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned version = byte(6);
  require(version >= 1 && version <= 3 && byte(7) == 0, ErrorCode::kBadInput,
          "'{}' is an .npy array of version {}.{}: 1.0, 2.0 and 3.0 can be read", name, version,
          byte(7));
  const std::size_t before = version == 1 ? 10 : 12;
  require(text.size() >= before, ErrorCode::kBadInput, "'{}' ends within its header", name);
  std::size_t length = 0;
  for (std::size_t i = before; i > 8; --i) length = (length << 8) | byte(i - 1);
  require(length <= kMaxHeaderBytes - before, ErrorCode::kBadInput,
          "'{}' has a header of {} bytes: at most {}", name, length, kMaxHeaderBytes);
  require(length <= text.size() - before, ErrorCode::kBadInput, "'{}' ends within its header",
          name);
  HeaderText header(name, text.substr(before, length));
  header.parse();
  if (*header.fortran_order) {
    throw Error(ErrorCode::kBadInput, fmt::format("'{}' is stored in Fortran order", name))
        .hint("save it after numpy.ascontiguousarray(array)");
  }
  const DtypeRow& row = find_dtype(name, header.descr);
  NpyHeader result{.type = {.dtype = row.dtype, .shape = {}},
                   .stored_dtype = std::string(row.stored),
                   .item_bytes = row.bytes,
                   .data_offset = before + length};
  result.type.shape = npy_shape(name, *header.shape, row.bytes, size_bytes - result.data_offset);
  return result;
}

std::unique_ptr<TensorArchive> open_npz(MappedFile file) {
  return std::make_unique<NpzArchive>(std::move(file));
}

}  // namespace trainscope
