// Zip archives: the entries of the central directory, each read with its checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/shared_bytes.h"

namespace trainscope {

struct ZipEntry {
  std::string name;
  bool deflated = false;
  std::uint32_t crc32 = 0;
  std::uint64_t size_bytes = 0;  // decompressed
  SharedBytes stored_bytes;      // as they are in the file
};

// Whether a file begins as a zip archive does.
bool is_zip(std::span<const std::byte> bytes);

// Entries of a file, of which each has a share. Stored and deflated ones without encryption, below
// 4 GiB, at most 65,534 of them, names distinct. Throws kBadInput when the directory or a local
// header is damaged, entries overlap, or an entry claims more bytes than deflate can make.
std::vector<ZipEntry> zip_entries(const std::shared_ptr<const MappedFile>& file);

// The first `count` bytes of an entry.
std::vector<std::byte> read_entry_begin(const ZipEntry& entry, std::size_t count);
// All of it; checks its length and CRC-32.
std::vector<std::byte> read_entry(const ZipEntry& entry);

}  // namespace trainscope
