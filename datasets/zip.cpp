// Reads the directory of zip archives (PKWARE APPNOTE 6.3, without its zip64 records).
#include "datasets/zip.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "datasets/inflate.h"
#include "engine/core/error.h"
#include "engine/core/system/system_error.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034B50;
constexpr std::uint32_t kCentralSignature = 0x02014B50;
constexpr std::uint32_t kEndSignature = 0x06054B50;
constexpr std::uint64_t kLocalBytes = 30;
constexpr std::uint64_t kCentralBytes = 46;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kMaxComment = 0xFFFF;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // "the number is in a zip64 record"
constexpr std::uint16_t kEncrypted = 1;
constexpr std::uint16_t kStored = 0;
constexpr std::uint16_t kDeflated = 8;

// Little-endian numbers at places of a file, refused beyond its end.
class ZipBytes {
 public:
  explicit ZipBytes(const std::shared_ptr<const MappedFile>& file)
      : bytes_(file), name_(quoted(file->path())) {}

  std::uint64_t size() const { return bytes_.size(); }
  const std::string& name() const { return name_; }

  SharedBytes at(std::uint64_t offset, std::uint64_t count) const {
    require(offset <= bytes_.size() && count <= bytes_.size() - offset, ErrorCode::kBadInput,
            "{}: the zip archive is cut short or damaged: it has no bytes {} to {}", name_, offset,
            offset + count);
    return bytes_.part(offset, count);
  }
  std::uint16_t u16(std::uint64_t offset) const { return number<std::uint16_t>(offset); }
  std::uint32_t u32(std::uint64_t offset) const { return number<std::uint32_t>(offset); }
  std::string text(std::uint64_t offset, std::uint64_t count) const {
    const auto piece = at(offset, count).bytes();
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }

 private:
  template <typename T>
  T number(std::uint64_t offset) const {
    T value{};
    std::memcpy(&value, at(offset, sizeof value).bytes().data(), sizeof value);
    return value;
  }

  SharedBytes bytes_;
  std::string name_;
};

struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t entries = 0;
};

// The end record is followed by a comment alone, so it is looked for from the end on.
std::uint64_t find_end_record(const ZipBytes& zip) {
  require(zip.size() >= kEndBytes, ErrorCode::kBadInput, "{} is too short for a zip archive",
          zip.name());
  const std::uint64_t last = zip.size() - kEndBytes;
  const std::uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (std::uint64_t at = last + 1; at > first;) {
    --at;
    const bool fits = zip.u32(at) == kEndSignature && zip.u16(at + 20) == last - at;
    if (fits) return at;
  }
  throw Error(ErrorCode::kBadInput,
              fmt::format("{}: the zip archive has no end record: it is cut short", zip.name()))
      .hint("copy or save the file again");
}

Directory find_directory(const ZipBytes& zip) {
  const std::uint64_t end = find_end_record(zip);
  const std::uint32_t size = zip.u32(end + 12);
  const std::uint32_t offset = zip.u32(end + 16);
  const std::uint16_t entries = zip.u16(end + 10);
  if (size == kIn64 || offset == kIn64 || entries == 0xFFFF) {
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} is a zip archive of more than 4 GiB (zip64)", zip.name()))
        .hint("save large tensors as safetensors");
  }
  const bool one_disk =
      zip.u16(end + 4) == 0 && zip.u16(end + 6) == 0 && zip.u16(end + 8) == entries;
  require(one_disk && std::uint64_t{offset} + size == end, ErrorCode::kBadInput,
          "{}: the zip archive's directory is not where its end record says", zip.name());
  return {.begin = offset, .end = end, .entries = entries};
}

// An entry as the directory lists it, and where it is.
struct Listed {
  ZipEntry entry;
  std::uint64_t local_offset = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t next = 0;  // offset of the next directory record
};

Listed read_record(const ZipBytes& zip, std::uint64_t at) {
  require(zip.u32(at) == kCentralSignature, ErrorCode::kBadInput,
          "{}: the zip archive's directory is damaged at byte {}", zip.name(), at);
  const std::uint16_t name_bytes = zip.u16(at + 28);
  Listed listed;
  ZipEntry& entry = listed.entry;
  entry.name = zip.text(at + kCentralBytes, name_bytes);
  const std::string shown = printable(entry.name);
  require((zip.u16(at + 8) & kEncrypted) == 0, ErrorCode::kBadInput, "{}: '{}' is encrypted",
          zip.name(), shown);
  const std::uint16_t method = zip.u16(at + 10);
  require(method == kStored || method == kDeflated, ErrorCode::kBadInput,
          "{}: '{}' is compressed by method {}: expected stored (0) or deflated (8)", zip.name(),
          shown, method);
  entry.deflated = method == kDeflated;
  entry.crc32 = zip.u32(at + 16);
  const std::uint32_t stored = zip.u32(at + 20);
  const std::uint32_t size = zip.u32(at + 24);
  const std::uint32_t offset = zip.u32(at + 42);
  require(stored != kIn64 && size != kIn64 && offset != kIn64, ErrorCode::kBadInput,
          "{}: '{}' has more than 4 GiB (zip64): save large tensors as safetensors", zip.name(),
          shown);
  entry.size_bytes = size;
  listed.stored_bytes = stored;
  listed.local_offset = offset;
  listed.next = at + kCentralBytes + name_bytes + zip.u16(at + 30) + zip.u16(at + 32);
  const bool possible =
      entry.deflated ? size <= std::uint64_t{stored} * kMaxInflation : size == stored;
  require(possible, ErrorCode::kBadInput, "{}: '{}' cannot have {} bytes made of {}", zip.name(),
          shown, size, stored);
  return listed;
}

// Finds the bytes of an entry behind its local header; where they end.
std::uint64_t locate(const ZipBytes& zip, Listed& listed) {
  const std::uint64_t at = listed.local_offset;
  ZipEntry& entry = listed.entry;
  const bool header = zip.u32(at) == kLocalSignature && zip.u16(at + 26) == entry.name.size() &&
                      zip.text(at + kLocalBytes, entry.name.size()) == entry.name;
  require(header, ErrorCode::kBadInput, "{}: the local header of '{}' is damaged", zip.name(),
          printable(entry.name));
  const std::uint64_t begin = at + kLocalBytes + entry.name.size() + zip.u16(at + 28);
  entry.stored_bytes = zip.at(begin, listed.stored_bytes);
  return begin + listed.stored_bytes;
}

// Entries that share bytes are how small archives claim to be endless.
void check_overlap(const ZipBytes& zip, std::vector<std::pair<std::uint64_t, std::uint64_t>> places,
                   std::uint64_t directory) {
  std::ranges::sort(places);
  places.emplace_back(directory, directory);
  for (std::size_t i = 0; i + 1 < places.size(); ++i) {
    require(places[i].second <= places[i + 1].first, ErrorCode::kBadInput,
            "{}: entries of the zip archive overlap at byte {}", zip.name(), places[i + 1].first);
  }
}

}  // namespace

bool is_zip(std::span<const std::byte> bytes) {
  std::uint32_t signature = 0;
  if (bytes.size() < sizeof signature) return false;
  std::memcpy(&signature, bytes.data(), sizeof signature);
  return signature == kLocalSignature || signature == kEndSignature;
}

std::vector<ZipEntry> zip_entries(const std::shared_ptr<const MappedFile>& file) {
  const ZipBytes zip(file);
  const Directory directory = find_directory(zip);
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  std::uint64_t at = directory.begin;
  for (std::size_t i = 0; i < directory.entries; ++i) {
    Listed listed = read_record(zip, at);
    at = listed.next;
    places.emplace_back(listed.local_offset, locate(zip, listed));
    require(names.insert(listed.entry.name).second, ErrorCode::kBadInput,
            "{}: two entries of the zip archive are called '{}'", zip.name(),
            printable(listed.entry.name));
    entries.push_back(std::move(listed.entry));
  }
  require(at == directory.end, ErrorCode::kBadInput,
          "{}: the zip archive's directory has not the length that its end record says",
          zip.name());
  check_overlap(zip, std::move(places), directory.begin);
  return entries;
}

std::vector<std::byte> read_entry_begin(const ZipEntry& entry, std::size_t count) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(count, entry.size_bytes));
  if (!entry.deflated) {
    std::ranges::copy(entry.stored_bytes.bytes().first(bytes.size()), bytes.begin());
    return bytes;
  }
  Inflater inflater(entry.stored_bytes, CompressedForm::kDeflate, printable(entry.name));
  const std::size_t got = inflater.read(bytes);
  require(got == bytes.size(), ErrorCode::kBadInput, "'{}' has {} bytes, its directory says {}",
          printable(entry.name), got, entry.size_bytes);
  return bytes;
}

std::vector<std::byte> read_entry(const ZipEntry& entry) {
  std::vector<std::byte> bytes(entry.size_bytes);
  if (entry.deflated) {
    Inflater inflater(entry.stored_bytes, CompressedForm::kDeflate, printable(entry.name));
    const std::size_t got = inflater.read(bytes);
    std::byte more{};
    require(got == bytes.size() && inflater.read({&more, 1}) == 0, ErrorCode::kBadInput,
            "'{}' has not the {} bytes that its directory says", printable(entry.name),
            entry.size_bytes);
  } else {
    std::ranges::copy(entry.stored_bytes.bytes(), bytes.begin());
  }
  require(crc32_of(bytes) == entry.crc32, ErrorCode::kBadInput,
          "'{}' is damaged: its CRC-32 is {:08x}, expected {:08x}", printable(entry.name),
          crc32_of(bytes), entry.crc32);
  return bytes;
}

}  // namespace trainscope
