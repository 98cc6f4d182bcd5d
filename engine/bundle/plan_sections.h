// The container that plan.bin is: a header, a table of sections, and the rows of each, all hashed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/shared_bytes.h"

namespace trainscope {

// Of each section's offset.
inline constexpr std::size_t kPlanSectionAlignment = 64;

// Rows of one size under a number. It owns nothing.
struct SectionRows {
  std::uint32_t kind = 0;
  std::uint32_t row_bytes = 0;
  std::span<const std::byte> rows = {};
};

// A file of these sections, in pieces: what is there already is not copied.
class SectionFile {
 public:
  explicit SectionFile(std::span<const SectionRows> sections);

  std::size_t bytes() const { return bytes_; }
  // Calls write(bytes) with one piece of the file after the other.
  template <typename Write>
  void write(Write write) const {
    for (const std::span<const std::byte> piece : pieces_) write(piece);
  }

 private:
  std::vector<std::byte> head_;  // header and table
  std::vector<std::span<const std::byte>> pieces_;
  std::size_t bytes_ = 0;
};

// The sections of a file. All throw kBadInput where they are damaged.
class SectionTable {
 public:
  // Of a file whose version is within these two.
  SectionTable(SharedBytes file, std::uint32_t oldest, std::uint32_t newest);

  std::uint32_t version() const { return version_; }
  template <typename Row>
  std::span<const Row> rows(std::uint32_t kind) const {
    const std::span<const std::byte> found = bytes_of(kind, sizeof(Row)).bytes();
    return {reinterpret_cast<const Row*>(found.data()), found.size() / sizeof(Row)};
  }
  // Of a section that is there once, inside the file and undamaged.
  SharedBytes bytes_of(std::uint32_t kind, std::size_t row_bytes) const;

 private:
  struct Section {
    std::uint32_t kind = 0;
    std::uint32_t row_bytes = 0;
    std::uint64_t offset = 0;
    std::uint64_t count = 0;
    std::uint64_t xxh3 = 0;  // of its rows
  };
  static_assert(sizeof(Section) == 32);
  friend class SectionFile;

  const Section& find(std::uint32_t kind) const;
  SharedBytes file_;
  std::uint32_t version_ = 0;
  std::vector<Section> sections_;
};

}  // namespace trainscope
