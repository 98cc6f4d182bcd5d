// Offsets and hashes of sections, written and checked.
#include "engine/bundle/plan_sections.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/bundle/plan_rows.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"

namespace trainscope {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are in the file as in memory");

constexpr std::array<char, 8> kMagic = {'T', 'S', 'P', 'L', 'A', 'N', '\r', '\n'};
constexpr std::uint32_t kMostSections = 64;
constexpr std::array<std::byte, kPlanSectionAlignment> kZeros{};

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kPlanRecordVersion;
  std::uint32_t section_count = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t xxh3 = 0;  // of the header with 0 here, then the table of sections
};

static_assert(sizeof(Header) == 32);

std::uint64_t header_hash(Header header, std::span<const std::byte> table) {
  header.xxh3 = 0;
  Hasher hasher;
  hasher.bytes(std::as_bytes(std::span(&header, 1))).bytes(table);
  return hasher.digest();
}

std::size_t aligned(std::size_t offset) {
  return (offset + kPlanSectionAlignment - 1) / kPlanSectionAlignment * kPlanSectionAlignment;
}

}  // namespace

SectionFile::SectionFile(std::span<const SectionRows> sections) {
  std::vector<SectionTable::Section> table;
  bytes_ = sizeof(Header) + sections.size() * sizeof(SectionTable::Section);
  head_.resize(bytes_);
  pieces_.emplace_back(head_);
  for (const SectionRows& section : sections) {
    const std::size_t offset = aligned(bytes_);
    table.push_back({.kind = section.kind,
                     .row_bytes = section.row_bytes,
                     .offset = offset,
                     .count = section.rows.size() / section.row_bytes,
                     .xxh3 = hash_bytes(section.rows)});
    pieces_.push_back(std::span(kZeros).first(offset - bytes_));
    pieces_.push_back(section.rows);
    bytes_ = offset + section.rows.size();
  }
  Header header{.section_count = static_cast<std::uint32_t>(table.size()), .file_bytes = bytes_};
  header.xxh3 = header_hash(header, std::as_bytes(std::span(table)));
  std::memcpy(head_.data(), &header, sizeof(Header));
  std::memcpy(head_.data() + sizeof(Header), table.data(), head_.size() - sizeof(Header));
}

SectionTable::SectionTable(SharedBytes shared, std::uint32_t oldest, std::uint32_t newest)
    : file_(std::move(shared)) {
  const std::span<const std::byte> file = file_.bytes();
  Header header;
  require(file.size() >= sizeof(Header), ErrorCode::kBadInput,
          "the file is cut short: {} bytes are no header", file.size());
  std::memcpy(&header, file.data(), sizeof(Header));
  require(header.magic == kMagic, ErrorCode::kBadInput, "it is no plan of trainscope");
  require(oldest <= header.version && header.version <= newest, ErrorCode::kBadInput,
          "it has version {} of the plan record, this program reads versions {} to {}",
          header.version, oldest, newest);
  require(header.file_bytes == file.size(), ErrorCode::kBadInput,
          "the file has {} bytes, its header says {}", file.size(), header.file_bytes);
  require(header.section_count <= kMostSections &&
              sizeof(Header) + header.section_count * sizeof(Section) <= file.size(),
          ErrorCode::kBadInput, "its table of {} sections is not all there", header.section_count);
  const auto table = file.subspan(sizeof(Header), header.section_count * sizeof(Section));
  require(header_hash(header, table) == header.xxh3, ErrorCode::kBadInput,
          "the header is damaged: its hash is another");
  version_ = header.version;
  sections_.resize(header.section_count);
  if (!sections_.empty()) std::memcpy(sections_.data(), table.data(), table.size());
}

const SectionTable::Section& SectionTable::find(std::uint32_t kind) const {
  const Section* found = nullptr;
  for (const Section& section : sections_) {
    if (section.kind != kind) continue;
    require(found == nullptr, ErrorCode::kBadInput, "section {} is there twice", kind);
    found = &section;
  }
  require(found != nullptr, ErrorCode::kBadInput, "section {} is missing", kind);
  return *found;
}

SharedBytes SectionTable::bytes_of(std::uint32_t kind, std::size_t row_bytes) const {
  const Section& section = find(kind);
  require(section.row_bytes == row_bytes, ErrorCode::kBadInput,
          "section {} has rows of {} bytes instead of {}", kind, section.row_bytes, row_bytes);
  const bool is_inside = section.offset % kPlanSectionAlignment == 0 &&
                         section.offset <= file_.size() &&
                         section.count <= (file_.size() - section.offset) / row_bytes;
  require(is_inside, ErrorCode::kBadInput, "section {} is not inside the file", kind);
  SharedBytes rows = file_.part(section.offset, section.count * row_bytes);
  require(hash_bytes(rows.bytes()) == section.xxh3, ErrorCode::kBadInput,
          "section {} is damaged: its hash is another", kind);
  return rows;
}

}  // namespace trainscope
