// Reading of safetensors files: nothing in the header is believed before it is checked.
#include "engine/core/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/json.h"
#include "engine/core/system/system_error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::string_view kMetadataKey = "__metadata__";

template <typename... Args>
[[noreturn]] void bad(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::kBadInput, format, std::forward<Args>(args)...);
}

DType stored_type(std::string_view word) {
  const auto* found = std::ranges::find_if(kAllDTypes, [&](DType dtype) {
    return !word.empty() && row_of(dtype).safetensors_name == word;
  });
  if (found == std::end(kAllDTypes)) bad("unknown dtype '{}'", printable(word));
  return *found;
}

// The header's text, after its length in the first eight bytes.
std::string read_header(const MappedFile& file) {
  const std::uint64_t size = file.size_bytes();
  if (size < kLengthBytes) bad("{} bytes are too few: the header's length alone takes 8", size);
  std::uint64_t length = 0;
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kMaxHeaderBytes) {
    bad("a header of {} bytes is beyond the format's limit of {}", length, kMaxHeaderBytes);
  }
  if (length > size - kLengthBytes) {
    bad("the header should have {} bytes, {} are left in the file", length, size - kLengthBytes);
  }
  std::string header(static_cast<std::size_t>(length), '\0');
  file.read(kLengthBytes, std::as_writable_bytes(std::span(header)));
  if (!header.starts_with('{')) bad("the header does not begin with '{{'");
  return header;
}

std::map<std::string, std::string> read_metadata(const Json& json) {
  std::map<std::string, std::string> metadata;
  for (const JsonMember& member : json.as_object()) {
    if (!member.value.is_string()) {
      bad("key '{}': expected a string, found {}", printable(member.key),
          name_of(member.value.type()));
    }
    metadata.emplace(member.key, member.value.as_string());
  }
  return metadata;
}

Shape read_shape(const JsonArray& items) {
  if (items.size() > kMaxRank) bad("rank {} is beyond {}", items.size(), kMaxRank);
  Shape shape;
  for (const Json& item : items) {
    const std::int64_t dim = item.as_int();
    if (dim < 0) bad("dimension {} is negative", dim);
    shape.push_back(dim);
  }
  return shape;
}

std::uint64_t data_bytes(const Shape& shape, std::uint64_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  // A zero counts, whatever the others are: only then is the product small.
  if (std::ranges::find(shape.span(), 0) != shape.span().end()) return 0;
  for (std::int64_t dim : shape.span()) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(dim), &bytes)) {
      bad("the shape {} is too large", shape_text(shape));
    }
  }
  return bytes;
}

SafetensorsEntry read_entry(const Json& json, std::uint64_t file_data_bytes) {
  SafetensorsEntry entry;
  entry.stored_dtype = json.get<std::string>("dtype");
  entry.dtype = stored_type(entry.stored_dtype);
  entry.shape = read_shape(json.array_at("shape"));
  const JsonArray& offsets = json.array_at("data_offsets");
  if (offsets.size() != 2) bad("data_offsets has {} numbers, expected 2", offsets.size());
  const std::int64_t begin = offsets[0].as_int();
  const std::int64_t end = offsets[1].as_int();
  if (begin < 0 || end < begin) bad("data_offsets [{},{}] are not a range", begin, end);
  entry.begin_bytes = static_cast<std::uint64_t>(begin);
  entry.end_bytes = static_cast<std::uint64_t>(end);
  if (entry.end_bytes > file_data_bytes) {
    bad("data up to byte {}, but the file has {} bytes of data", end, file_data_bytes);
  }
  const std::uint64_t expected = data_bytes(entry.shape, size_of(entry.dtype));
  if (entry.end_bytes - entry.begin_bytes != expected) {
    bad("{}{} takes {} bytes, data_offsets give {}", entry.stored_dtype, shape_text(entry.shape),
        expected, entry.end_bytes - entry.begin_bytes);
  }
  return entry;
}

// Runs `read` with the tensor's name in front of its errors.
template <typename F>
auto about(std::string_view name, F read) {
  try {
    return read();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("tensor '{}': {}", printable(name), error.message()))
        .hint(error.hint());
  }
}

// Every byte of data belongs to exactly one tensor.
void check_layout(std::span<const SafetensorsEntry> entries, std::uint64_t file_data_bytes) {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(entries[a].begin_bytes, entries[a].end_bytes) <
           std::pair(entries[b].begin_bytes, entries[b].end_bytes);
  });
  std::uint64_t end = 0;
  for (std::size_t i : order) {
    const SafetensorsEntry& entry = entries[i];
    if (entry.begin_bytes < end) {
      bad("tensor '{}' overlaps the one before it: it begins at byte {}, that ends at {}",
          printable(entry.name), entry.begin_bytes, end);
    }
    if (entry.begin_bytes > end) {
      bad("bytes {} to {} before tensor '{}' belong to no tensor", end, entry.begin_bytes,
          printable(entry.name));
    }
    end = entry.end_bytes;
  }
  if (end != file_data_bytes) {
    bad("{} bytes after the last tensor belong to none", file_data_bytes - end);
  }
}

Tensor read_bool(std::span<const std::byte> stored, const Shape& shape) {
  Tensor tensor(TensorType{.dtype = DType::kBool, .shape = shape});
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const auto value = std::to_integer<int>(stored[i]);
    // Any other value in a C++ bool is undefined behaviour.
    if (value > 1) bad("element {} is {}, expected 0 or 1 in a BOOL tensor", i, value);
    tensor.values<bool>()[i] = value == 1;
  }
  return tensor;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(MappedFile mapped) {
  SafetensorsFile file(std::move(mapped));
  try {
    file.read_entries();
  } catch (Error& error) {
    error.at(fmt::format("safetensors file {}", quoted(file.path())))
        .hint("the file is damaged, cut short, or not a safetensors file");
    throw;
  }
  return file;
}

void SafetensorsFile::read_entries() {
  const std::string text = read_header(file_);
  const std::uint64_t data_begin = kLengthBytes + text.size();
  const std::uint64_t file_data_bytes = file_.size_bytes() - data_begin;
  const Json header = Json::parse(text, {.max_bytes = kMaxHeaderBytes});
  for (const JsonMember& member : header.as_object()) {
    about(member.key, [&] {
      if (member.key == kMetadataKey) {
        metadata_ = read_metadata(member.value);
        return;
      }
      entries_.push_back(read_entry(member.value, file_data_bytes));
      entries_.back().name = member.key;
    });
  }
  check_layout(entries_, file_data_bytes);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].begin_bytes += data_begin;
    entries_[i].end_bytes += data_begin;
    index_.emplace(entries_[i].name, i);
  }
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const SafetensorsEntry& entry : entries_) names.push_back(entry.name);
  return names;
}

const SafetensorsEntry& SafetensorsFile::entry(std::string_view name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return entries_[found->second];
  throw Error(ErrorCode::kBadInput,
              fmt::format("{} has no tensor '{}'", quoted(path()), printable(name)))
      .hint(nearest_hint(name, names()));
}

TensorType SafetensorsFile::type(std::string_view name) const {
  const SafetensorsEntry& found = entry(name);
  return {.dtype = found.dtype, .shape = found.shape};
}

Tensor SafetensorsFile::tensor(std::string_view name) const {
  const TensorType wanted = type(name);
  const SafetensorsEntry& found = entry(name);
  if (wanted.dtype != DType::kBool) {
    Tensor result(wanted);
    file_.read(found.begin_bytes, {result.data(), result.bytes()});
    return result;
  }
  std::vector<std::byte> stored(static_cast<std::size_t>(found.end_bytes - found.begin_bytes));
  file_.read(found.begin_bytes, stored);
  return about(name, [&] { return read_bool(stored, found.shape); });
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  const SafetensorsEntry& found = entry(name);
  return file_.bytes().subspan(static_cast<std::size_t>(found.begin_bytes),
                               static_cast<std::size_t>(found.end_bytes - found.begin_bytes));
}

std::uint64_t SafetensorsFile::content_hash() const {
  Hasher hasher;
  std::vector<std::byte> block(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < file_.size_bytes(); at += block.size()) {
    const std::uint64_t left = file_.size_bytes() - at;
    const std::span<std::byte> part(
        block.data(), static_cast<std::size_t>(std::min<std::uint64_t>(left, block.size())));
    file_.read(at, part);
    hasher.bytes(part);
  }
  return hasher.digest();
}

}  // namespace trainscope
