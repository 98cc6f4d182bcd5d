// plan.bin: a header, a table of its sections, and the rows of each.
#include "engine/bundle/plan_file.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/text.h"

namespace trainscope {
namespace {

static_assert(std::endian::native == std::endian::little, "rows are in the file as in memory");

constexpr std::array<char, 8> kMagic = {'T', 'S', 'P', 'L', 'A', 'N', '\r', '\n'};
constexpr std::uint64_t kAlignment = 64;  // of each section's offset
constexpr std::uint32_t kMostSections = 64;

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kPlanRecordVersion;
  std::uint32_t section_count = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t xxh3 = 0;  // of the header with 0 here, then the table of sections
};

struct Section {
  std::uint32_t kind = 0;
  std::uint32_t row_bytes = 0;
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
  std::uint64_t xxh3 = 0;  // of its rows
};

static_assert(sizeof(Header) == 32 && sizeof(Section) == 32);

// Calls visit(kind, rows) for every table of a view: what the file's sections are. Numbers stay.
template <typename View, typename Visit>
void each_table(View& plan, Visit visit) {
  visit(1, plan.facts_row);
  visit(2, plan.recompute);
  visit(3, plan.text_ends);
  visit(4, plan.text_bytes);
  visit(5, plan.dims);
  visit(6, plan.values);
  visit(7, plan.buffers);
  visit(8, plan.members);
  visit(9, plan.nodes);
  visit(10, plan.calls);
  visit(11, plan.operands);
  visit(12, plan.waits);
  visit(13, plan.names);
  visit(14, plan.refusals);
  visit(15, plan.sections);
}

std::uint64_t header_hash(Header header, std::span<const std::byte> sections) {
  header.xxh3 = 0;
  Hasher hasher;
  hasher.bytes(std::as_bytes(std::span(&header, 1))).bytes(sections);
  return hasher.digest();
}

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

// Header and table, and the bytes of each section, which are the record's own.
struct Layout {
  Header header;
  std::vector<Section> sections;
  std::vector<std::span<const std::byte>> contents;
};

Layout layout_of(const PlanView& plan) {
  Layout layout;
  each_table(plan, [&layout](std::uint32_t kind, const auto& rows) {
    layout.contents.push_back(std::as_bytes(rows));
    layout.sections.push_back({.kind = kind,
                               .row_bytes = sizeof(rows[0]),
                               .count = rows.size(),
                               .xxh3 = hash_bytes(layout.contents.back())});
  });
  std::uint64_t end = sizeof(Header) + layout.sections.size() * sizeof(Section);
  for (std::size_t i = 0; i < layout.sections.size(); ++i) {
    layout.sections[i].offset = aligned(end);
    end = layout.sections[i].offset + layout.contents[i].size();
  }
  layout.header.section_count = static_cast<std::uint32_t>(layout.sections.size());
  layout.header.file_bytes = end;
  layout.header.xxh3 = header_hash(layout.header, std::as_bytes(std::span(layout.sections)));
  return layout;
}

// Calls write(bytes) with one piece of the file after the other.
template <typename Write>
void write_pieces(const Layout& layout, Write write) {
  constexpr std::array<std::byte, kAlignment> kZeros{};
  write(std::as_bytes(std::span(&layout.header, 1)));
  write(std::as_bytes(std::span(layout.sections)));
  std::uint64_t end = sizeof(Header) + layout.sections.size() * sizeof(Section);
  for (std::size_t i = 0; i < layout.sections.size(); ++i) {
    write(std::span(kZeros).first(layout.sections[i].offset - end));
    write(layout.contents[i]);
    end = layout.sections[i].offset + layout.contents[i].size();
  }
}

Header read_header(std::span<const std::byte> bytes) {
  Header header;
  require(bytes.size() >= sizeof(Header), ErrorCode::kBadInput,
          "the file is cut short: {} bytes are no header", bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(Header));
  require(header.magic == kMagic, ErrorCode::kBadInput, "it is no plan of trainscope");
  require(header.version == kPlanRecordVersion, ErrorCode::kBadInput,
          "it has version {} of the plan record, this program reads version {}", header.version,
          kPlanRecordVersion);
  require(header.file_bytes == bytes.size(), ErrorCode::kBadInput,
          "the file has {} bytes, its header says {}", bytes.size(), header.file_bytes);
  require(header.section_count <= kMostSections &&
              sizeof(Header) + header.section_count * sizeof(Section) <= bytes.size(),
          ErrorCode::kBadInput, "its table of {} sections is not all there", header.section_count);
  return header;
}

std::vector<Section> read_sections(std::span<const std::byte> bytes) {
  const Header header = read_header(bytes);
  const auto table = bytes.subspan(sizeof(Header), header.section_count * sizeof(Section));
  require(header_hash(header, table) == header.xxh3, ErrorCode::kBadInput,
          "the header is damaged: its hash is another");
  std::vector<Section> sections(header.section_count);
  if (!sections.empty()) std::memcpy(sections.data(), table.data(), table.size());
  return sections;
}

// The bytes of a section's rows, which are all inside the file and undamaged.
std::span<const std::byte> rows_in_file(const Section& section, std::size_t row_bytes,
                                        std::span<const std::byte> bytes) {
  require(section.row_bytes == row_bytes, ErrorCode::kBadInput,
          "section {} has rows of {} bytes instead of {}", section.kind, section.row_bytes,
          row_bytes);
  const bool is_inside = section.offset % kAlignment == 0 && section.offset <= bytes.size() &&
                         section.count <= (bytes.size() - section.offset) / row_bytes;
  require(is_inside, ErrorCode::kBadInput, "section {} is not inside the file", section.kind);
  const auto rows = bytes.subspan(section.offset, section.count * row_bytes);
  require(hash_bytes(rows) == section.xxh3, ErrorCode::kBadInput,
          "section {} is damaged: its hash is another", section.kind);
  return rows;
}

const Section& find_section(const std::vector<Section>& sections, std::uint32_t kind) {
  const Section* found = nullptr;
  for (const Section& section : sections) {
    if (section.kind != kind) continue;
    require(found == nullptr, ErrorCode::kBadInput, "section {} is there twice", kind);
    found = &section;
  }
  require(found != nullptr, ErrorCode::kBadInput, "section {} is missing", kind);
  return *found;
}

}  // namespace

void write_plan_file(const PlanRecord& record, const FolderEntry& entry) {
  AtomicFile file(entry);
  write_pieces(layout_of(view_of(record)),
               [&file](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

std::string plan_file_bytes(const PlanRecord& record) {
  std::string text;
  write_pieces(layout_of(view_of(record)), [&text](std::span<const std::byte> bytes) {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return text;
}

PlanView view_of_plan_file(std::span<const std::byte> bytes) {
  const std::vector<Section> sections = read_sections(bytes);
  PlanView plan;
  each_table(plan, [&]<typename Row>(std::uint32_t kind, std::span<const Row>& rows) {
    const auto found = rows_in_file(find_section(sections, kind), sizeof(Row), bytes);
    rows = {reinterpret_cast<const Row*>(found.data()), found.size() / sizeof(Row)};
  });
  const std::string fault = find_fault(plan);
  require(fault.empty(), ErrorCode::kBadInput, "{}", fault);
  return plan;
}

StoredPlan::StoredPlan(PlanRecord record)
    : record_(std::make_unique<PlanRecord>(std::move(record))) {}

StoredPlan::StoredPlan(MappedFile file)
    : file_(std::make_unique<MappedFile>(std::move(file))),
      mapped_(view_of_plan_file(file_->bytes())) {}

StoredPlan StoredPlan::open(const FolderEntry& entry) {
  MappedFile file = MappedFile::open(entry);
  try {
    return StoredPlan(std::move(file));
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("'{}': {}", printable(entry.path().string()), error.message()))
        .hint(kPlanFileHint);
  }
}

}  // namespace trainscope
